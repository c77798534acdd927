// Commands that change a job: cancel, pause, resume, send, cleanup.

import { type JsonObject, type JsonValue, parseJson } from "../engine/json.ts";
import { limits } from "../engine/limits.ts";
import { type Call, exitCodes, UsageError } from "./command.ts";
import { clientFor } from "./connection.ts";
import { cleanText, plural } from "./text.ts";

/** The command that asks for one change of state. */
export function control(action: "cancel" | "pause" | "resume"): (call: Call) => Promise<number> {
  return async (call) => {
    const answer = await clientFor(call).control(call.words[0] ?? "", action);
    return report(call, answer, `${cleanText(answer.job_id)} ${cleanText(answer.status)}`);
  };
}

export async function send(call: Call): Promise<number> {
  const [jobId = "", agentId = ""] = call.words;
  const type = call.text("type");
  const answer = await clientFor(call).message(jobId, {
    agent_id: agentId,
    body: bodyOf(call.text("body")),
    ...(type !== null && { type }),
  });
  return report(call, answer, `sent ${cleanText(answer.message_id)}`);
}

function bodyOf(text: string | null): JsonValue {
  if (text === null) return {};
  const parsed = parseJson(text, limits.jsonDepthMax);
  if (parsed === null) throw new UsageError(`--body is no JSON. Example: --body '{"city":"Ghent"}'`);
  return parsed.value;
}

export async function cleanup(call: Call): Promise<number> {
  const answer = await clientFor(call).cleanup(call.flag("all") === true);
  const count = typeof answer.deleted_count === "number" ? answer.deleted_count : 0;
  return report(call, answer, `${plural(count, "job")} removed`);
}

function report(call: Call, answer: JsonObject, line: string): number {
  call.terminal.print(call.flag("json") ? JSON.stringify(answer) : line);
  return exitCodes.success;
}
