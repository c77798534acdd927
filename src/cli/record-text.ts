// The gateway's records as lines for people. Pure but for `ago`; every text from outside is cleaned here.

import type { JobDetail, LogRecord, Run, TimelineRecord, WorkflowProgress } from "../../sdk/src/index.ts";
import { historyLine } from "./event-text.ts";
import { statusWord } from "./result-text.ts";
import type { Paint, Style } from "./terminal.ts";
import { cleanText, columns, duration, plural, table } from "./text.ts";

const TEXT_CHARS_MAX = 2_000;
const AGENTS_SHOWN = 40;
const NODES_SHOWN = 40;

/** How long ago a time was. */
export function ago(timestamp: string): string {
  return `${duration(Date.now() - Date.parse(timestamp))} ago`;
}

/** How long it is until a time. */
export function away(timestamp: string): string {
  const ms = Date.parse(timestamp) - Date.now();
  return ms <= 0 ? "now" : `in ${duration(ms)}`;
}

/** A named value; null leaves it out. */
export type Field = readonly [name: string, value: string | number | null];

/** Named values below one another, indented; those without a value are left out. */
export function fieldLines(fields: readonly Field[]): readonly string[] {
  return columns(fields.filter(([, value]) => value !== null)).map((line) => `  ${line}`);
}

/** The state of a run, without its result. @param more what its summary adds */
export function runLines(run: Run, more: readonly Field[] = []): readonly string[] {
  const { progress } = run;
  const agents = `${progress.agents_done} of ${plural(progress.agents_total, "agent")} done${endsText(progress.agents)}`;
  return fieldLines([
    ["job", run.job_id],
    ["accepted", ago(run.created_at)],
    ["priority", run.priority === "normal" ? null : run.priority],
    ["took", run.duration_ms === null ? null : duration(run.duration_ms)],
    ["progress", `${agents}, ${plural(progress.messages, "message")}`],
    ["now", progress.label],
    ["wanted", run.desired_state === run.status || run.finished_at !== null ? null : run.desired_state],
    ["attempt", run.attempt > 1 ? run.attempt : null],
    ...more,
    ["trace", run.trace_id],
  ]);
}

/** How the other agents of an ended run ended. */
function endsText(ends: Run["progress"]["agents"]): string {
  if (ends === undefined) return "";
  const { failed, cancelled, skipped, not_reached } = ends;
  const parts = Object.entries({ failed, cancelled, skipped, "not reached": not_reached });
  return parts.flatMap(([word, count]) => (count === 0 ? [] : [`, ${count} ${word}`])).join("");
}

export function jobLines(job: JobDetail, paint: Paint): readonly string[] {
  const source = "bundle_id" in job.source ? job.source.bundle_id : job.source.blueprint_id;
  const latest = job.latest_run;
  const settings = Object.keys(job.resolved_configuration).length;
  const lines = [
    `${cleanText(job.job_id)} ${statusWord(job.status, paint)}`,
    ...fieldLines([
      ["name", job.name],
      ["source", source],
      ["graph", job.graph_id],
      ["config", settings === 0 ? null : JSON.stringify(job.resolved_configuration)],
      ["weight", job.weight === 1 ? null : job.weight],
      ["created", ago(job.created_at)],
      ["changed", job.revision > 1 ? `${ago(job.updated_at)}, revision ${job.revision}` : null],
      ["latest run", latest === null ? "none yet" : `${latest.run_id} ${latest.status}`],
      ["open runs", job.active_runs],
    ]),
  ];
  return [...lines, ...graphLines(job, paint)];
}

/** The nodes, each with whom it sends to, and the recent runs; nothing without view=full. */
function graphLines({ graph, recent_runs }: JobDetail, paint: Paint): readonly string[] {
  const lines: string[] = [];
  if (graph !== undefined) {
    const rows = graph.nodes.slice(0, NODES_SHOWN).map(({ node_id, agent_type }) => {
      const to = graph.edges.filter((edge) => edge.from_node === node_id).map((edge) => edge.to_node);
      return [node_id, agent_type, [...new Set(to)].join(", ")];
    });
    const more = graph.nodes.length - rows.length;
    lines.push(
      paint("bold", "Graph"),
      ...table(["NODE", "TYPE", "SENDS TO"], rows).map((line) => `  ${line}`),
    );
    if (more > 0) lines.push(`  … and ${plural(more, "more node")}`);
  }
  if (recent_runs !== undefined && recent_runs.length > 0) {
    const rows = recent_runs.map((run) => [run.run_id, run.status, ago(run.created_at)]);
    lines.push(paint("bold", "Recent runs"));
    lines.push(...table(["RUN", "STATUS", "ACCEPTED"], rows).map((line) => `  ${line}`));
  }
  return lines;
}

export function progressLines(found: WorkflowProgress, paint: Paint): readonly string[] {
  if (found.run_id === null || found.status === null) {
    return [`${cleanText(found.job_id)} has no run yet. Start one: troupe runs start ${found.job_id}`];
  }
  const { percent, done, total, label } = found.progress;
  const rest = found.eta_ms === null ? "" : `, about ${duration(found.eta_ms)} left`;
  const head = `${cleanText(found.run_id)} ${statusWord(found.status, paint)}`;
  const counts = `${Math.round(percent)} %, ${done} of ${plural(total, "agent")} done${rest}. ${cleanText(label)}`;
  return [`${head}  ${counts}`, ...agentTable(found.agents)];
}

/** An agent as both APIs have it. */
type ShownAgent = Pick<
  WorkflowProgress["agents"][number],
  "agent_id" | "agent_type" | "processed_messages" | "mailbox_depth" | "last_error"
> & { readonly state: string; readonly attempt?: number | null };

export function agentTable(agents: readonly ShownAgent[]): readonly string[] {
  const rows = agents
    .slice(0, AGENTS_SHOWN)
    .map(({ attempt, ...agent }) => [
      agent.agent_id,
      agent.agent_type,
      agent.state + (attempt != null && attempt > 1 ? ` (attempt ${attempt})` : ""),
      agent.processed_messages,
      agent.mailbox_depth,
      agent.last_error,
    ]);
  const more = agents.length - rows.length;
  const lines = table(["AGENT", "TYPE", "STATE", "MESSAGES", "WAITING", "LAST ERROR"], rows);
  return more > 0 ? [...lines, `… and ${plural(more, "more agent")}`] : lines;
}

const levelStyles: Readonly<Partial<Record<LogRecord["level"], Style>>> = {
  fatal: "red",
  error: "red",
  warn: "yellow",
  debug: "dim",
  trace: "dim",
};

export function logLine({ ts, agent_id, level, message, fields }: LogRecord, paint: Paint): string {
  const style = levelStyles[level];
  const more = Object.keys(fields).length === 0 ? "" : ` ${cleanText(fields)}`;
  const text = (cleanText(message) + more).slice(0, TEXT_CHARS_MAX);
  return historyLine(ts, agent_id ?? "run", style === undefined ? text : paint(style, text), paint);
}

export function timelineLine(record: TimelineRecord, paint: Paint): string {
  const took = record.duration_ms === null ? "" : ` (${duration(record.duration_ms)})`;
  const text = cleanText(record.summary).slice(0, TEXT_CHARS_MAX) + took;
  const isBad = record.status === "failed";
  return historyLine(record.ts, record.agent_id ?? "run", isBad ? paint("red", text) : text, paint);
}
