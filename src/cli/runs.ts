// `troupe runs …`: list, start, show and wait for runs.

import type { NewRun, Run, RunStatus } from "../../sdk/src/index.ts";
import { isPriority, priorities } from "../engine/share.ts";
import { printAnswer, UsageError } from "./command.ts";
import { checkedId, idOf } from "./ids.ts";
import { readObject } from "./input.ts";
import { limitOf, oneOf, printList } from "./lists.ts";
import { gatewayRun, outcomeOf, placed } from "./named-run.ts";
import { ago, runLines } from "./record-text.ts";
import { endLines } from "./result-text.ts";
import type { ServerCall } from "./session.ts";
import { summaryFields } from "./summary-text.ts";
import { cleanText, duration } from "./text.ts";
import { awaitRun, started, watchesAsked, watchRun } from "./watching.ts";

const statuses: readonly RunStatus[] = [
  "pending",
  "queued",
  "running",
  "paused",
  "completed",
  "failed",
  "cancelled",
];

export async function list(call: ServerCall): Promise<number> {
  const limit = limitOf(call);
  const job = call.text("job");
  const query = {
    job_id: job === null ? undefined : checkedId(job, "job"),
    status: oneOf(call, "status", statuses),
    q: call.text("search") ?? undefined,
  };
  // A job without runs and a job that does not exist are two answers.
  if (query.job_id !== undefined) await call.client.jobs.get(query.job_id);
  return printList<Run>(call, {
    limit,
    items: (pageSize) => call.client.runs.list({ ...query, page_size: pageSize }),
    head: ["RUN", "STATUS", "ACCEPTED", "TOOK", "JOB"],
    row: (run) => [
      run.run_id,
      run.status,
      ago(run.created_at),
      run.duration_ms === null ? "-" : duration(run.duration_ms),
      run.job_id,
    ],
    nothing: "No runs. `troupe run <folder>` starts one.",
  });
}

export async function start(call: ServerCall): Promise<number> {
  return startOf(call, idOf(call, "job"), {});
}

/** `troupe runs rerun`: the same again, or with other inputs. */
export async function rerun(call: ServerCall): Promise<number> {
  const id = idOf(call, "run");
  const { job_id: jobId } = await call.client.runs.get(id);
  return startOf(call, jobId, { rerun_of: id });
}

async function startOf(call: ServerCall, jobId: string, given: NewRun): Promise<number> {
  const inputs = readObject(call, "input");
  const watches = watchesAsked(call, call.flag("watch") === true || call.text("save") !== null);
  const priority = oneOf(call, "priority", priorities);
  const run = await call.client.runs.start(jobId, { ...given, inputs, priority });
  if (!watches) return started(call, run.run_id, run);
  if (!call.flag("json")) call.terminal.print(`Run ${cleanText(run.run_id)}`);
  return watchRun(call, gatewayRun(call, run.run_id));
}

export async function prioritize(call: ServerCall): Promise<number> {
  const [, word = ""] = call.words;
  if (!isPriority(word))
    throw new UsageError(`${JSON.stringify(cleanText(word))} is not one of ${priorities.join(", ")}.`);
  const run = await call.client.runs.prioritize(idOf(call, "run"), word);
  return printAnswer(call, run, () => cleanText(`${run.run_id} ${run.status}, ${run.priority}`));
}

export async function show(call: ServerCall): Promise<number> {
  const id = idOf(call, "run");
  const { client } = call;
  const run = await client.runs.get(id);
  const named = gatewayRun(call, id);
  const outputs = placed(named, await named.files());
  const summary = call.flag("json") ? null : await client.runs.summary(id);
  return printAnswer(call, { ...run, outputs }, () => {
    const [head = "", ...ending] = endLines(named, outcomeOf(run), outputs, call.terminal.paint);
    return [head, ...runLines(run, summaryFields(summary, named.address)), ...ending];
  });
}

export async function wait(call: ServerCall): Promise<number> {
  return awaitRun(call, gatewayRun(call, idOf(call, "run")));
}
