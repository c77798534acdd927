// `troupe jobs …`: durable definitions of work; and the jobs of the runtime API, each of which is one run.

import type { Job, RuntimeJob, RuntimeJobDetail } from "../../sdk/src/index.ts";
import { WEIGHT_MAX } from "../engine/share.ts";
import { printAnswer, UsageError } from "./command.ts";
import { eventLine, readEvent } from "./event-text.ts";
import { idKind, idOf } from "./ids.ts";
import { jsonOption, readObject } from "./input.ts";
import { countOf, limitOf, printList } from "./lists.ts";
import { placed, runtimeRun } from "./named-run.ts";
import { agentTable, ago, jobLines, progressLines } from "./record-text.ts";
import { endLines } from "./result-text.ts";
import { show as showRun } from "./runs.ts";
import type { ServerCall } from "./session.ts";
import { summaryLines } from "./summary-text.ts";
import type { Terminal } from "./terminal.ts";
import { cleanText, plural } from "./text.ts";

const EVENTS_SHOWN = 10;

export async function list(call: ServerCall): Promise<number> {
  const limit = limitOf(call);
  const open = call.flag("open") ? { include_terminal: false } : {};
  if (call.flag("runtime")) return listRuntime(call, limit, open);
  return printList<Job>(call, {
    limit,
    items: (pageSize) => call.client.jobs.list({ page_size: pageSize, ...open }),
    head: ["JOB", "STATUS", "LATEST RUN", "CHANGED", "NAME"],
    row: (job) => [job.job_id, job.status, job.latest_run?.status ?? "-", ago(job.updated_at), job.name],
    nothing: "No jobs. `troupe run <folder>` creates and runs one.",
  });
}

function listRuntime(call: ServerCall, limit: number | null, open: object): Promise<number> {
  return printList<RuntimeJob>(call, {
    limit,
    async *items(pageSize) {
      yield* await call.runtime.jobs({ ...open, ...(limit !== null && { limit: pageSize }) });
    },
    head: ["JOB", "STATUS", "SUBMITTED", "NAME"],
    row: (job) => [job.job_id, job.status, ago(job.submitted_at), job.job_name ?? job.graph_id],
    nothing: "No jobs.",
  });
}

export async function create(call: ServerCall): Promise<number> {
  const id = idOf(call, "bundle");
  const job = await call.client.jobs.create({
    bundle_id: id,
    name: call.text("name") ?? undefined,
    resolved_configuration: readObject(call, "config"),
    weight: weightOf(call),
  });
  if (!call.flag("json")) call.terminal.note(`Created. Run it with: troupe runs start ${job.job_id} --watch`);
  return printAnswer(call, job, () => cleanText(job.job_id));
}

/** `troupe job`: a job of either API, or a run. */
export async function showAny(call: ServerCall): Promise<number> {
  switch (idKind(call.words[0] ?? "")) {
    case "job":
      return show(call);
    case "run":
      return showRun(call);
    case "runtime":
      return showRuntime(call);
  }
}

export async function show(call: ServerCall): Promise<number> {
  const view = call.flag("full") ? "full" : "compact";
  const job = await call.client.jobs.get(idOf(call, "job"), { view });
  const { paint } = call.terminal;
  return printAnswer(call, job, () => [
    ...jobLines(job, paint),
    ...eventLines(job.recent_events ?? [], call.terminal),
  ]);
}

async function showRuntime(call: ServerCall): Promise<number> {
  const { terminal } = call;
  const run = runtimeRun(call, call.words[0] ?? "");
  const detail = await call.runtime.job(run.id);
  const files = await run.files();
  return printAnswer(call, { ...detail, artifacts: files }, () => {
    const { failure = null, ...job } = detail.job;
    const [head = "", ...ending] = endLines(run, { ...job, failure }, placed(run, files), terminal.paint);
    return [
      ...agentTable(detail.agents.map(agentRow)),
      ...eventLines(detail.recent_events, terminal),
      head,
      ...summaryLines(job.observability_summary, run.address),
      ...ending,
    ];
  });
}

const agentRow = (agent: RuntimeJobDetail["agents"][number]) => ({ ...agent, state: agent.status });

/** @param events newest first */
function eventLines(events: readonly unknown[], { paint }: Terminal): readonly string[] {
  const lines = events
    .slice(0, EVENTS_SHOWN)
    .toReversed()
    .map((event) => `  ${eventLine(readEvent(0, event), paint)}`);
  return lines.length === 0 ? [] : [paint("bold", "Last events"), ...lines];
}

export async function update(call: ServerCall): Promise<number> {
  const id = idOf(call, "job");
  const name = call.text("name");
  const config = readObject(call, "config");
  const weight = weightOf(call);
  if (name === null && config === undefined && weight === undefined) {
    throw new UsageError("Nothing to change. Give --name NAME, --config FILE or --weight N.");
  }
  const patch = { name: name ?? undefined, resolved_configuration: config, weight };
  const job = await call.client.jobs.update(anyVersion(id), patch);
  return printAnswer(call, job, () => `${cleanText(job.job_id)} changed, revision ${job.revision}`);
}

const weightOf = (call: ServerCall) => countOf(call, "weight", { max: WEIGHT_MAX, example: 3 }) ?? undefined;

export async function remove(call: ServerCall): Promise<number> {
  const id = idOf(call, "job");
  await call.client.jobs.delete(anyVersion(id), { force: call.flag("force") === true });
  return printAnswer(call, { job_id: id, deleted: true }, () => `${id} deleted`);
}

/** A person who changes a job by its id has not read a version of it. */
const anyVersion = (jobId: string) => ({ job_id: jobId, etag: "*" });

export async function progress(call: ServerCall): Promise<number> {
  const found = await call.client.jobs.workflowProgress(idOf(call, "job"));
  return printAnswer(call, found, () => progressLines(found, call.terminal.paint));
}

// ---------------------------------------------------------------------------------- the runtime's alone

/** `troupe send`. */
export async function send(call: ServerCall): Promise<number> {
  const [jobId = "", agentId = ""] = call.words;
  const sent = await call.runtime.send(jobId, {
    agent_id: agentId,
    body: jsonOption(call, "body", '{"city":"Ghent"}') ?? {},
    type: call.text("type") ?? undefined,
  });
  return printAnswer(call, sent, () => `sent ${cleanText(sent.message_id)}`);
}

/** `troupe cleanup`. */
export async function cleanup(call: ServerCall): Promise<number> {
  const removed = await call.runtime.cleanup(call.flag("all") === true ? { all: true } : {});
  return printAnswer(call, removed, () => `${plural(removed.deleted_count, "job")} removed`);
}
