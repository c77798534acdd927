// A job of the runtime API as it is shown (spec "Resources and their fields"). What is stored as JSON text is put into
// the answer as it is.

import { join } from "node:path";
import type { NodeNames } from "../../cluster/node-names.ts";
import { isoTime } from "../../engine/event.ts";
import { isSandboxRunner, MANIFEST_VERSION } from "../../engine/graph.ts";
import { type AgentRecord, isTerminal, type TaskRecord } from "../../engine/journal.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { parsePolicy, shownLimits } from "../../engine/manifest/sandbox-policy.ts";
import type { SandboxEngineName } from "../../engine/sandbox.ts";
import type { TaskRef } from "../../engine/task-port.ts";
import type { Peaks } from "../../execution/process/usage.ts";
import { Slices } from "../../lib/slices.ts";
import { withoutNullAgent } from "../../runs/history/line.ts";
import { unbegun } from "../../runs/history/progress.ts";
import type { ObservabilitySummary } from "../../runs/history/summary.ts";
import { failureMembers, reasonMembers, waitingReason } from "../../runs/history/summary.ts";
import type { JobDetail, JobRecord, JobRecords, WholeJob } from "../../runs/job-records.ts";
import { LastManifest } from "../../runs/last-manifest.ts";
import { storedObject } from "../../runs/stored-json.ts";

export interface RenderContext {
  readonly nodeNames: NodeNames;
  readonly home: string;
}

/** What is known here of running commands. */
export interface CommandPeaks {
  /** What makes the sandboxes of this node. */
  readonly sandboxEngine: SandboxEngineName;
  /** The most that one was seen to use; null when that is not known here. */
  readonly peaksOf: (ref: TaskRef) => Promise<Peaks | null>;
}

/** Agents that are read and rendered while everything else waits: a few milliseconds. */
const AGENTS_PER_CHUNK = 200;

const str = (text: string | null) => (text === null ? "null" : JSON.stringify(text));

/** An item of the job list. */
export function renderSummary(job: JobRecord, context: RenderContext): string {
  return `{${identity(job)},"run_id":${str(job.runId)},${aggregate(job, context)}${failureAndTrace(job)}}`;
}

/** What went wrong, if anything did, and where its traces are; a comma before each member. */
function failureAndTrace({ failureJson, trace, status, humanPending, tally }: JobRecord): string {
  const waiting = waitingReason(status, tally);
  return (
    `${waiting === null ? failureMembers(failureJson) : `,${reasonMembers(null, waiting)}`},"trace_id":${str(trace.traceId)},` +
    `"human_pending":${isTerminal(status) ? 0 : humanPending}`
  );
}

function identity(job: JobRecord): string {
  return (
    `"job_id":${str(job.jobId)},"graph_id":${str(job.graphId)},"job_name":${str(job.jobName)},` +
    `"status":"${job.status}","submitted_at":"${isoTime(job.submittedAtMs)}","updated_at":"${isoTime(job.updatedAtMs)}",` +
    `"placement_policy":${str(job.placementPolicy)},"recovery_policy":${str(job.recoveryPolicy)},` +
    `"priority":"${job.priority}","weight":${job.weight}`
  );
}

/** @param others nodes that run attempts of it, by name */
function aggregate(job: JobRecord, context: RenderContext, others: readonly string[] = []): string {
  const own = isTerminal(job.status) ? null : context.nodeNames.ofOwner(job.owner);
  const nodes = own === null ? [] : [...new Set([own, ...others])];
  return (
    `"executor_count":${job.executorCount},"active_executors":${job.activeExecutors},` +
    `"nodes":${JSON.stringify(nodes)},"sandbox_names":${job.sandboxNamesJson},"last_event":${lastEvent(job)}`
  );
}

function lastEvent({ lastEventJson, updatedAtMs }: JobRecord): string {
  if (!lastEventJson.startsWith('{"type":')) return withoutNullAgent(lastEventJson);
  return `{"timestamp":"${isoTime(updatedAtMs)}",${lastEventJson.slice(1)}`;
}

/** The whole detail of a job: record, summary, agents a few at a time, recent events, sandboxes. */
export async function* renderDetail(
  records: Pick<JobRecords, "agents">,
  detail: JobDetail,
  nodes: readonly NodeView[],
  summary: ObservabilitySummary,
  context: RenderContext & CommandPeaks,
): AsyncGenerator<string> {
  yield `{"job":${renderJob(detail, summary, context)},` +
    `"summary":{${identity(detail.job)},${aggregate(detail.job, context, attemptNodes(detail, context))}},"agents":[`;
  for (let from = 0; from < nodes.length; from += AGENTS_PER_CHUNK) {
    const found = await records.agents(detail.job.jobId, from, from + AGENTS_PER_CHUNK);
    yield (from === 0 ? "" : ",") + renderAgents(detail, nodes, from, found, context).join(",");
  }
  yield `],"recent_events":[${detail.recentEvents.map(withoutNullAgent).join(",")}],` +
    `"sandboxes":${JSON.stringify(await sandboxes(detail, nodes, context))}}`;
}

/** The record of a job, as `job` in its detail. */
export function renderJob(
  { job, resultJson }: WholeJob,
  summary: ObservabilitySummary,
  context: RenderContext,
): string {
  // Paths on another machine say nothing here.
  const home = context.nodeNames.isHere(job.owner) ? context.home : null;
  const { bundleFingerprint } = job;
  const bundle =
    home === null || bundleFingerprint === null ? null : join(home, "bundles", bundleFingerprint);
  const manifestRef = {
    graph_id: job.graphId,
    manifest_version: MANIFEST_VERSION,
    manifest_path: bundle === null ? null : join(bundle, "manifest.json"),
    job_path: home === null ? null : join(home, "runs", job.runId),
    cache_path: bundle,
  };
  return (
    `{${identity(job)},"run_id":${str(job.runId)},"type":"${job.type}",` +
    `"root_agent_ids":${job.rootAgentIdsJson},"result":${resultJson ?? "{}"}` +
    `${failureAndTrace(job)},"partial":${job.partial},` +
    `"manifest_ref":${JSON.stringify(manifestRef)},"observability_summary":${JSON.stringify(summary)}}`
  );
}

/** What a detail shows of a manifest's node, as far as it is the same in every answer. */
export interface NodeView {
  readonly nodeId: string;
  /** The members that come first, and those of `outbound_edges`, as JSON. */
  readonly headJson: string;
  readonly edgesJson: string;
  /** What the records of its sandboxes say of its policy; null: its commands have none. */
  readonly sandbox: JsonObject | null;
}

export const lastNodeViews = new LastManifest(readNodes);

/** The stored manifest was valid when it was accepted, so this only picks fields. */
async function readNodes(manifestJson: string): Promise<readonly NodeView[]> {
  const manifest = await storedObject(manifestJson);
  const slices = new Slices();
  const edgesFrom = new Map<string, JsonObject[]>();
  for (const edge of objects(manifest.edges)) {
    if (slices.isOver) await slices.breathe();
    const shown = {
      ...(edge.edge_id != null && { edge_id: edge.edge_id }),
      to_node: edge.to_node ?? null,
      ...(edge.message_type != null && { message_type: edge.message_type }),
    };
    const from = String(edge.from_node);
    const list = edgesFrom.get(from);
    if (list === undefined) edgesFrom.set(from, [shown]);
    else list.push(shown);
  }
  const nodes: NodeView[] = [];
  for (const node of objects(manifest.nodes)) {
    if (slices.isOver) await slices.breathe();
    const nodeId = String(node.node_id);
    const type = typeof node.type === "string" ? node.type : "generic";
    const headJson = `"agent_id":${str(nodeId)},"agent_type":${str(String(node.agent_type))},"type":${str(type)}`;
    const edgesJson = JSON.stringify(edgesFrom.get(nodeId) ?? []);
    nodes.push({ nodeId, headJson, edgesJson, sandbox: sandboxOf(node) });
  }
  return nodes;
}

function sandboxOf(node: JsonObject): JsonObject | null {
  const config = isObject(node.config) ? node.config : {};
  const runner = config.runner_module ?? node.runner_module;
  if (typeof runner !== "string" || !isSandboxRunner(runner)) return null;
  if (typeof config.policy === "string") return { policy: config.policy };
  const { network, readOnly, devices, environment, limits } = parsePolicy(config.sandbox ?? {}).policy;
  return {
    ...{ network_allow: network.allow, read_only: readOnly, devices, environment },
    limits: shownLimits(limits),
  };
}

function objects(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Those of the nodes from `from` on; `found` are the records of a chunk of them. */
function renderAgents(
  detail: JobDetail,
  nodes: readonly NodeView[],
  from: number,
  found: readonly AgentRecord[],
  context: RenderContext,
): string[] {
  const records = new Map(found.map((agent) => [agent.index, agent]));
  const running = new Map<number, RunningState>();
  for (const { agentIndex, state } of detail.tasks) {
    if (state.kind === "running") running.set(agentIndex, state);
  }
  return nodes.slice(from, from + AGENTS_PER_CHUNK).map((node, offset) => {
    const index = from + offset;
    const record = records.get(index);
    const status = shownStatus(detail.job, record);
    const isPaused = status === "paused";
    const lease =
      record?.lease == null
        ? "null"
        : JSON.stringify({
            lease_id: record.lease.leaseId,
            pool: record.lease.pool,
            slots: record.lease.slots,
          });
    return (
      `{${node.headJson},"assigned_node":${str(nodeOfAttempt(detail, running.get(index), context))},"status":"${status}","running?":${status === "running"},` +
      `"processed_messages":${record?.processedMessages ?? 0},` +
      `"mailbox_depth":${detail.mailboxDepths.get(index) ?? 0},"paused?":${isPaused},` +
      `"last_error":${str(record?.lastError ?? null)},"sandbox_name":${str(running.get(index)?.sandboxName ?? null)},` +
      `"lease":${lease},"current_state":${stateObject(record)},` +
      `"metadata":{"paused":${isPaused},"outbound_edges":${node.edgesJson}}}`
    );
  });
}

type RunningState = Extract<TaskRecord["state"], { kind: "running" }>;

/** The name of the node that runs an attempt, which is the job's, if any, unless another one has granted its slots. */
function nodeOfAttempt(
  { job }: JobDetail,
  running: RunningState | undefined,
  { nodeNames }: RenderContext,
): string | null {
  const node = running?.lease?.node;
  return node === undefined ? nodeNames.ofOwner(job.owner) : nodeNames.ofNode(node);
}

function attemptNodes(detail: JobDetail, context: RenderContext): readonly string[] {
  return detail.tasks.flatMap(({ state }) =>
    state.kind === "running" ? (nodeOfAttempt(detail, state, context) ?? []) : [],
  );
}

/** The agent's own status, seen with its job's: a completed job's agents are done, a held job's wait. */
function shownStatus(job: JobRecord, record: AgentRecord | undefined): string {
  const own = record?.status ?? "pending";
  if (own === "failed" || own === "done" || own === "cancelled") return own;
  if (isTerminal(job.status)) return own === "pending" ? unbegun(job.tally.ends?.agents ?? null) : "done";
  return job.status === "paused" && own !== "running" && own !== "pending" ? "paused" : own;
}

function stateObject(record: AgentRecord | undefined): string {
  const state = record?.stateJson ?? "{}";
  return state.startsWith("{") ? state : `{"value":${state}}`;
}

async function sandboxes(
  detail: JobDetail,
  nodes: readonly NodeView[],
  { peaksOf, sandboxEngine, nodeNames }: CommandPeaks & RenderContext,
) {
  const { jobId, owner } = detail.job;
  const shown = detail.tasks.map(async ({ kind, state, agentIndex, taskSeq, attempt }) => {
    if (kind !== "command" || state.kind !== "running") return [];
    const { nodeId, sandbox } = nodes[agentIndex]!;
    const peaks = await peaksOf({ jobId, taskSeq, attempt });
    // Another node may have another engine.
    const engine = state.lease?.node === undefined && nodeNames.isHere(owner) ? sandboxEngine : null;
    return [
      {
        sandbox_name: state.sandboxName,
        agent_id: nodeId,
        status: "running",
        attempt,
        ...(state.lease !== null && { pool: state.lease.pool }),
        started_at: isoTime(state.startedAtMs),
        ...(sandbox !== null && { engine, ...sandbox }),
        peaks: peaks && {
          memory_bytes: peaks.memoryBytes,
          processes: peaks.processes,
          cpu_ms: peaks.cpuMs,
        },
      },
    ];
  });
  return (await Promise.all(shown)).flat();
}
