// Records as the runtime API shows them (spec "Resources and their fields"). What is stored as JSON text is put
// into the answer as it is.

import { join } from "node:path";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { type AgentRecord, type ArtifactRecord, isTerminal } from "../../engine/ports.ts";
import type { JobDetail, JobRecord } from "../../runs/job-records.ts";

export interface RenderContext {
  readonly nodeName: string;
  readonly home: string;
}

const iso = (ms: number) => new Date(ms).toISOString();
const str = (text: string | null) => (text === null ? "null" : JSON.stringify(text));

/** An item of the job list. */
export function renderSummary(job: JobRecord, context: RenderContext): string {
  return `{${identity(job)},"run_id":${str(job.runId)},${aggregate(job, context)}}`;
}

function identity(job: JobRecord): string {
  return (
    `"job_id":${str(job.jobId)},"graph_id":${str(job.graphId)},"job_name":${str(job.jobName)},` +
    `"status":"${job.status}","submitted_at":"${iso(job.submittedAtMs)}","updated_at":"${iso(job.updatedAtMs)}",` +
    `"placement_policy":${str(job.placementPolicy)},"recovery_policy":${str(job.recoveryPolicy)}`
  );
}

function aggregate(job: JobRecord, context: RenderContext): string {
  const nodes = isTerminal(job.status) ? [] : [context.nodeName];
  return (
    `"executor_count":${job.executorCount},"active_executors":${job.activeExecutors},` +
    `"nodes":${JSON.stringify(nodes)},"sandbox_names":${job.sandboxNamesJson},"last_event":${job.lastEventJson}`
  );
}

/** The whole detail of a job: record, summary, agents, recent events, sandboxes. */
export function renderDetail(detail: JobDetail, context: RenderContext): string {
  const manifest = readManifest(detail.manifestJson);
  return (
    `{"job":${renderJob(detail, manifest, context)},` +
    `"summary":{${identity(detail.job)},${aggregate(detail.job, context)}},` +
    `"agents":[${renderAgents(detail, manifest, context).join(",")}],` +
    `"recent_events":[${detail.recentEvents.join(",")}],` +
    `"sandboxes":${JSON.stringify(sandboxes(detail, manifest))}}`
  );
}

function renderJob(detail: JobDetail, manifest: ManifestView, context: RenderContext): string {
  const { job } = detail;
  const bundle = job.bundleFingerprint === null ? null : join(context.home, "bundles", job.bundleFingerprint);
  const manifestRef = {
    graph_id: job.graphId,
    manifest_version: manifest.version,
    manifest_path: bundle === null ? null : join(bundle, "manifest.json"),
    job_path: join(context.home, "runs", job.runId),
    cache_path: bundle,
  };
  return (
    `{${identity(job)},"run_id":${str(job.runId)},"type":"${job.type}",` +
    `"root_agent_ids":${job.rootAgentIdsJson},"result":${detail.resultJson ?? "{}"},` +
    `"failure":${detail.failureJson ?? "null"},"partial":${job.partial},` +
    `"manifest_ref":${JSON.stringify(manifestRef)}}`
  );
}

interface ManifestView {
  readonly version: string;
  readonly nodes: readonly {
    readonly nodeId: string;
    readonly agentType: string;
    readonly type: string | null;
  }[];
  readonly edgesFrom: ReadonlyMap<string, readonly JsonObject[]>;
}

/** The stored manifest was valid when it was accepted, so this only picks fields. */
function readManifest(manifestJson: string): ManifestView {
  const manifest = JSON.parse(manifestJson) as JsonObject;
  const edgesFrom = new Map<string, JsonObject[]>();
  for (const edge of objects(manifest.edges)) {
    const view = {
      edge_id: edge.edge_id ?? null,
      to_node: edge.to_node ?? null,
      message_type: edge.message_type ?? null,
    };
    const from = String(edge.from_node);
    const list = edgesFrom.get(from);
    if (list === undefined) edgesFrom.set(from, [view]);
    else list.push(view);
  }
  const nodes = objects(manifest.nodes).map((node) => ({
    nodeId: String(node.node_id),
    agentType: String(node.agent_type),
    type: typeof node.type === "string" ? node.type : null,
  }));
  return { version: String(manifest.manifest_version), nodes, edgesFrom };
}

function objects(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function renderAgents(detail: JobDetail, manifest: ManifestView, context: RenderContext): string[] {
  const records = new Map(detail.agents.map((agent) => [agent.index, agent]));
  const sandboxNames = new Map<number, string>();
  for (const { agentIndex, state } of detail.tasks) {
    if (state.kind === "running") sandboxNames.set(agentIndex, state.sandboxName);
  }
  return manifest.nodes.map((node, index) => {
    const record = records.get(index);
    const status = shownStatus(detail.job, record);
    const isPaused = status === "paused";
    const metadata = { paused: isPaused, outbound_edges: manifest.edgesFrom.get(node.nodeId) ?? [] };
    const lease =
      record?.lease == null
        ? "null"
        : JSON.stringify({
            lease_id: record.lease.leaseId,
            pool: record.lease.pool,
            slots: record.lease.slots,
          });
    return (
      `{"agent_id":${str(node.nodeId)},"agent_type":${str(node.agentType)},"type":${str(node.type)},` +
      `"assigned_node":${str(context.nodeName)},"status":"${status}","running?":${status === "running"},` +
      `"processed_messages":${record?.processedMessages ?? 0},` +
      `"mailbox_depth":${detail.mailboxDepths.get(index) ?? 0},"paused?":${isPaused},` +
      `"last_error":${str(record?.lastError ?? null)},"sandbox_name":${str(sandboxNames.get(index) ?? null)},` +
      `"lease":${lease},"current_state":${stateObject(record)},"metadata":${JSON.stringify(metadata)}}`
    );
  });
}

/** The agent's own status, seen with its job's: a completed job's agents are done, a held job's wait. */
function shownStatus(job: JobRecord, record: AgentRecord | undefined): string {
  const own = record?.status ?? "pending";
  if (own === "failed" || own === "done" || own === "pending") return own;
  if (isTerminal(job.status)) return "done";
  return job.status === "paused" && own !== "running" ? "paused" : own;
}

function stateObject(record: AgentRecord | undefined): string {
  const state = record?.stateJson ?? "{}";
  return state.startsWith("{") ? state : `{"value":${state}}`;
}

function sandboxes(detail: JobDetail, manifest: ManifestView) {
  return detail.tasks.flatMap((task) =>
    task.kind === "command" && task.state.kind === "running"
      ? [
          {
            sandbox_name: task.state.sandboxName,
            agent_id: manifest.nodes[task.agentIndex]?.nodeId ?? null,
            status: "running",
            attempt: task.attempt,
            pool: task.state.lease?.pool ?? null,
            started_at: iso(task.state.startedAtMs),
          },
        ]
      : [],
  );
}

/** An entry of a run's artifact list. */
export function renderArtifact(runId: string, artifact: ArtifactRecord) {
  return {
    artifact_id: artifact.artifactId,
    name: artifact.name,
    kind: artifact.kind,
    title: artifact.title,
    primary: artifact.primary,
    size: artifact.size,
    sha256: artifact.sha256,
    content_type: artifact.contentType,
    url: `/api/v1/runs/${encodeURIComponent(runId)}/artifacts/${encodeURIComponent(artifact.artifactId)}`,
    created_at: iso(artifact.createdAtMs),
    producer: artifact.agentId,
  };
}
