// `troupe ask`: a question to a job, answered from what it has published.

import { printAnswer, UsageError } from "./command.ts";
import { checkedId, idOf } from "./ids.ts";
import type { ServerCall } from "./session.ts";
import { cleanLines, cleanText } from "./text.ts";

export async function ask(call: ServerCall): Promise<number> {
  const jobId = idOf(call, "job");
  const question = (call.words[1] ?? "").trim();
  if (question === "") throw new UsageError('Ask something: troupe ask <job-id> "Why did it fail?"');
  const run = call.text("run");
  const earlier = call.text("about");
  const answer = await call.client.jobs.ask(jobId, {
    question,
    ...(run !== null && { run_id: checkedId(run, "run") }),
    ...(earlier !== null && { earlier_ids: earlier.split(",") }),
  });
  const ids = [...new Set(answer.citations.map(({ id }) => id))];
  const { paint } = call.terminal;
  const lines = [...cleanLines(answer.answer), ...ids.map((id) => paint("dim", `  from ${cleanText(id)}`))];
  return printAnswer(call, answer, () => lines);
}
