// The runtime's own jobs, `troupe jobs --runtime` and `troupe job`: what there is, and how one of them stands.

import { ApiError, type RuntimeClient } from "./client.ts";
import { type Call, exitCodes, UsageError } from "./command.ts";
import { clientFor } from "./connection.ts";
import { eventLine } from "./event-text.ts";
import { endLines } from "./result-text.ts";
import { summaryLines } from "./summary-text.ts";
import { cleanText, duration, plural, table } from "./text.ts";
import { type AgentSnapshot, type JobSummary, type RunArtifact, readEvent } from "./wire.ts";

const ITEMS_SHOWN = 20;
const AGENTS_SHOWN = 40;
const EVENTS_SHOWN = 10;

/** `troupe jobs --runtime`. */
export async function runtimeJobs(call: Call): Promise<number> {
  const limit = limitOf(call);
  const found = await clientFor(call).jobs({ limit, openOnly: call.flag("open") === true });
  if (call.flag("json")) {
    call.terminal.print(JSON.stringify(found));
    return exitCodes.success;
  }
  if (found.length === 0) call.terminal.note("No jobs.");
  else for (const line of jobTable(found, Date.now())) call.terminal.print(line);
  if (found.length === limit) call.terminal.note(`The newest ${limit}; --all shows all.`);
  return exitCodes.success;
}

/** How many items a list shows: --limit, or 20; null with --all. */
export function limitOf(call: Call): number | null {
  if (call.flag("all")) return null;
  const text = call.text("limit");
  if (text === null) return ITEMS_SHOWN;
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new UsageError("--limit needs a whole number, 1 or more: --limit 50");
  return Number(text);
}

function jobTable(found: readonly JobSummary[], nowMs: number): readonly string[] {
  return table(
    ["JOB", "STATUS", "SUBMITTED", "NAME"],
    found.map((job) => [
      cleanText(job.job_id),
      cleanText(job.status),
      `${duration(nowMs - Date.parse(job.submitted_at))} ago`,
      cleanText(job.job_name ?? job.graph_id),
    ]),
  );
}

export async function job(call: Call): Promise<number> {
  const { terminal } = call;
  const client = clientFor(call);
  const detail = await client.job(call.words[0] ?? "");
  const artifacts = await artifactsOf(client, detail.job.run_id);
  if (call.flag("json")) {
    terminal.print(JSON.stringify({ ...detail, artifacts }));
    return exitCodes.success;
  }
  for (const line of agentTable(detail.agents)) terminal.print(line);
  const recent = detail.recent_events.slice(0, EVENTS_SHOWN).toReversed();
  if (recent.length > 0) terminal.print(terminal.paint("bold", "Last events"));
  for (const event of recent) terminal.print(`  ${eventLine(readEvent(0, event), terminal.paint)}`);
  const { job_id: id, status, result, failure = null } = detail.job;
  const address = (url: string) => client.address(url);
  const place = ({ url }: { readonly url: string }) => address(url);
  const lines = endLines({ id, status, result, failure, files: artifacts, place, address }, terminal.paint);
  const [head = "", ...ending] = lines;
  const summary = summaryLines(detail.job.observability_summary, address);
  for (const line of [head, ...summary, ...ending]) terminal.print(line);
  return exitCodes.success;
}

/** The files of a run; none when the server knows the run no longer. */
export async function artifactsOf(
  client: RuntimeClient,
  runId: string | undefined,
): Promise<readonly RunArtifact[]> {
  if (runId === undefined) return [];
  try {
    return await client.artifacts(runId);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  }
}

function agentTable(agents: readonly AgentSnapshot[]): readonly string[] {
  const rows = agents
    .slice(0, AGENTS_SHOWN)
    .map((agent) => [
      cleanText(agent.agent_id),
      cleanText(agent.agent_type),
      cleanText(agent.status),
      String(agent.processed_messages),
      String(agent.mailbox_depth),
      cleanText(agent.last_error ?? ""),
    ]);
  const lines = table(["AGENT", "TYPE", "STATUS", "MESSAGES", "WAITING", "LAST ERROR"], rows);
  const more = agents.length - rows.length;
  return more > 0 ? [...lines, `… and ${plural(more, "more agent")}`] : lines;
}
