// `troupe runs …`: start, list, show, wait for and steer runs.

import type { Run, RunStatus, RunsQuery } from "../../sdk/src/index.ts";
import { type Call, exitCodes, UsageError } from "./command.ts";
import { checkedId, idOf } from "./ids.ts";
import { printList } from "./lists.ts";
import { ago, runLines } from "./record-text.ts";
import { filesOf, linkTo, placed } from "./run-files.ts";
import { limitOf } from "./runtime-jobs.ts";
import { checkSaveFolder } from "./save.ts";
import { type Session, withGateway } from "./session.ts";
import { readObject } from "./submission.ts";
import { summaryFields } from "./summary-text.ts";
import { cleanText, duration } from "./text.ts";
import { awaitRun, runEndLines, watchRun } from "./watching.ts";

const statuses: readonly RunStatus[] = [
  "pending",
  "queued",
  "running",
  "paused",
  "completed",
  "failed",
  "cancelled",
];

export async function list(call: Call): Promise<number> {
  const limit = limitOf(call);
  const query = filterOf(call);
  return withGateway(call, async ({ client }) => {
    // A job without runs and a job that does not exist are two answers.
    if (query.job_id !== undefined) await client.jobs.get(query.job_id);
    const code = await printList<Run>(
      call,
      {
        items: (pageSize) => client.runs.list({ ...query, page_size: pageSize }),
        head: ["RUN", "STATUS", "ACCEPTED", "TOOK", "JOB"],
        row: (run) => [
          cleanText(run.run_id),
          cleanText(run.status),
          ago(run.created_at),
          run.duration_ms === null ? "-" : duration(run.duration_ms),
          cleanText(run.job_id),
        ],
        nothing: "No runs. `troupe runs start <job-id>` starts one.",
      },
      limit,
    );
    const isFiltered = query.job_id !== undefined || query.status !== undefined;
    if (!isFiltered && !call.flag("json")) {
      call.terminal.note("What `troupe run` started is not among them: `troupe jobs --runtime` lists it.");
    }
    return code;
  });
}

function filterOf(call: Call): RunsQuery {
  const job = call.text("job");
  const text = call.text("status");
  const status = statuses.find((known) => known === text);
  if (text !== null && status === undefined) {
    throw new UsageError(`--status: ${JSON.stringify(cleanText(text))} is none of ${statuses.join(", ")}.`);
  }
  return { job_id: job === null ? undefined : checkedId(job, "job"), status };
}

export async function start(call: Call): Promise<number> {
  const id = idOf(call, "job");
  const inputs = readObject(call, "input");
  const watches = watchesAsked(call, call.flag("watch") === true || call.text("save") !== null);
  return withGateway(call, async (session) => {
    const run = await session.client.runs.start(id, { inputs });
    if (!watches) return started(session, run);
    if (!call.flag("json")) call.terminal.print(`Run ${cleanText(run.run_id)}`);
    return watchRun(session, run.run_id);
  });
}

/**
 * Whether a command follows the run that it starts.
 *
 * @throws UsageError when it must, for --save, and was told not to; or when the folder of --save is not empty
 */
export function watchesAsked(call: Call, unlessSaid: boolean): boolean {
  if (call.flag("watch") === false && call.text("save") !== null) {
    throw new UsageError(
      "--save needs the end of the run: leave --no-watch out, or later use `troupe runs save`.",
    );
  }
  checkSaveFolder(call);
  return call.flag("watch") ?? unlessSaid;
}

/** What is said about a run that goes on without us. */
export function started({ call }: Session, run: Run, also: object = {}): number {
  const id = cleanText(run.run_id);
  call.terminal.print(call.flag("json") ? JSON.stringify({ ...also, ...run }) : id);
  if (!call.flag("json")) call.terminal.note(`Started. Follow it with: troupe runs events ${id} --follow`);
  return exitCodes.success;
}

export async function show(call: Call): Promise<number> {
  const id = idOf(call, "run");
  return withGateway(call, async (session) => {
    const { terminal } = call;
    const run = await session.client.runs.get(id);
    const files = await filesOf(session, id);
    if (call.flag("json")) {
      const outputs = files.map((file) => placed(session, file, new Map()));
      terminal.print(JSON.stringify({ ...run, outputs }));
      return exitCodes.success;
    }
    const [head = "", ...ending] = runEndLines(session, run, files);
    const summary = summaryFields(await session.client.runs.summary(id), (url) => linkTo(session, { url }));
    for (const line of [head, ...runLines(run, summary), ...ending]) terminal.print(line);
    return exitCodes.success;
  });
}

export async function wait(call: Call): Promise<number> {
  const id = idOf(call, "run");
  return withGateway(call, (session) => awaitRun(session, id));
}

/** The command that asks for one change of state. */
export function control(action: "pause" | "resume" | "cancel"): (call: Call) => Promise<number> {
  return async (call) => {
    const id = idOf(call, "run");
    return withGateway(call, async ({ client }) => {
      const run = await client.runs[action](id);
      call.terminal.print(call.flag("json") ? JSON.stringify(run) : cleanText(`${run.run_id} ${run.status}`));
      return exitCodes.success;
    });
  };
}
