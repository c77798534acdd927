// `troupe jobs …`: durable definitions of work, and what is asked of all runs of one.

import type { DeadLetter, Job, JobControl } from "../../sdk/src/index.ts";
import type { JsonObject } from "../engine/json.ts";
import { letterHead, letterRow } from "./attention-text.ts";
import { type Call, exitCodes, UsageError } from "./command.ts";
import { eventLine } from "./event-text.ts";
import { idOf } from "./ids.ts";
import { printList } from "./lists.ts";
import { ago, jobLines, progressLines } from "./record-text.ts";
import { followEvents } from "./run-records.ts";
import { limitOf, runtimeJobs } from "./runtime-jobs.ts";
import { withGateway } from "./session.ts";
import { readObject } from "./submission.ts";
import { cleanText } from "./text.ts";
import { readEvent } from "./wire.ts";

const EVENTS_SHOWN = 10;

export async function list(call: Call): Promise<number> {
  if (call.flag("runtime")) return runtimeJobs(call);
  const limit = limitOf(call);
  const open = call.flag("open") ? { include_terminal: false } : {};
  return withGateway(call, ({ client }) =>
    printList<Job>(
      call,
      {
        items: (pageSize) => client.jobs.list({ page_size: pageSize, ...open }),
        head: ["JOB", "STATUS", "LATEST RUN", "CHANGED", "NAME"],
        row: (job) => [
          cleanText(job.job_id),
          cleanText(job.status),
          cleanText(job.latest_run?.status ?? "-"),
          ago(job.updated_at),
          cleanText(job.name),
        ],
        nothing: "No jobs. `troupe launch <folder>` creates and runs one.",
      },
      limit,
    ),
  );
}

export async function create(call: Call): Promise<number> {
  const id = idOf(call, "bundle");
  const fields = { name: call.text("name") ?? undefined, resolved_configuration: readObject(call, "config") };
  return withGateway(call, async ({ client }) => {
    const job = await client.jobs.create({ bundle_id: id, ...fields });
    call.terminal.print(call.flag("json") ? JSON.stringify(job) : cleanText(job.job_id));
    if (!call.flag("json"))
      call.terminal.note(`Created. Run it with: troupe runs start ${job.job_id} --watch`);
    return exitCodes.success;
  });
}

export async function show(call: Call): Promise<number> {
  const id = idOf(call, "job");
  return withGateway(call, async ({ client }) => {
    const { terminal } = call;
    const job = await client.jobs.get(id, { view: call.flag("full") ? "full" : "compact" });
    if (call.flag("json")) {
      terminal.print(JSON.stringify(job));
      return exitCodes.success;
    }
    for (const line of jobLines(job, terminal.paint)) terminal.print(line);
    const events = (job.recent_events ?? []).slice(0, EVENTS_SHOWN).toReversed();
    if (events.length > 0) terminal.print(terminal.paint("bold", "Last events"));
    for (const event of events)
      terminal.print(`  ${eventLine(readEvent(0, event as JsonObject), terminal.paint)}`);
    return exitCodes.success;
  });
}

export async function update(call: Call): Promise<number> {
  const id = idOf(call, "job");
  const name = call.text("name");
  const config = readObject(call, "config");
  if (name === null && config === undefined) {
    throw new UsageError("Nothing to change. Give --name NAME, --config FILE, or both.");
  }
  return withGateway(call, async ({ client }) => {
    const job = await client.jobs.update(whateverItIs(id), {
      name: name ?? undefined,
      resolved_configuration: config,
    });
    call.terminal.print(
      call.flag("json") ? JSON.stringify(job) : `${cleanText(job.job_id)} changed, revision ${job.revision}`,
    );
    return exitCodes.success;
  });
}

export async function remove(call: Call): Promise<number> {
  const id = idOf(call, "job");
  return withGateway(call, async ({ client }) => {
    await client.jobs.delete(whateverItIs(id), { force: call.flag("force") === true });
    call.terminal.print(call.flag("json") ? JSON.stringify({ job_id: id, deleted: true }) : `${id} deleted`);
    return exitCodes.success;
  });
}

/** A person who changes a job by its id has not read a version of it: the change is laid over whatever it is. */
const whateverItIs = (jobId: string) => ({ job_id: jobId, etag: "*" });

/** The command that asks for one change of state of every open run. */
export function control(action: "pause" | "resume" | "cancel"): (call: Call) => Promise<number> {
  return async (call) => {
    const id = idOf(call, "job");
    return withGateway(call, async ({ client }) => {
      const answer: JobControl = await client.jobs[action](id);
      if (call.flag("json")) call.terminal.print(JSON.stringify(answer));
      else for (const run of answer.runs) call.terminal.print(cleanText(`${run.run_id} ${run.status}`));
      return exitCodes.success;
    });
  };
}

export async function events(call: Call): Promise<number> {
  const id = idOf(call, "job");
  return withGateway(call, async (session) => {
    const { latest_run: latest } = await session.client.jobs.get(id);
    if (latest !== null) return followEvents(session, latest.run_id);
    call.terminal.note(`${id} has no run yet. Start one: troupe runs start ${id}`);
    return exitCodes.success;
  });
}

export async function progress(call: Call): Promise<number> {
  const id = idOf(call, "job");
  return withGateway(call, async ({ client }) => {
    const { terminal } = call;
    const found = await client.jobs.workflowProgress(id);
    if (call.flag("json")) terminal.print(JSON.stringify(found));
    else for (const line of progressLines(found, terminal.paint)) terminal.print(line);
    return exitCodes.success;
  });
}

export async function deadLetters(call: Call): Promise<number> {
  const id = idOf(call, "job");
  const limit = limitOf(call);
  return withGateway(call, ({ client }) =>
    printList<DeadLetter>(
      call,
      {
        items: (pageSize) => client.jobs.deadLetters(id, { page_size: pageSize }),
        head: letterHead,
        row: letterRow,
        nothing: "No dead letters.",
      },
      limit,
    ),
  );
}
