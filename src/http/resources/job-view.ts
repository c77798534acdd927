// A durable job as the gateway shows it: its schemas, and its text, made in pieces where it may be large. In lists the job
// alone; by itself with what its latest run came to; in the full view with manifest, graph, recent runs and events.

import { extensionsOfJob, toolsOfJob } from "../../ask/tools.ts";
import type { Bundles } from "../../bundles/bundles.ts";
import { isoTime } from "../../engine/event.ts";
import type { Graph } from "../../engine/graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { storedBundle } from "../../launch/job-sources.ts";
import type { GatewayRecords, JobView, RunRecord } from "../../launch/records.ts";
import { summarizedRun } from "../../launch/run-ends.ts";
import { renderEvent } from "../../runs/history/line.ts";
import { readSummary, reasonMembers } from "../../runs/history/summary.ts";
import { readHistory } from "../../runs/run-history.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { noPaths, ofEach, secretPathsIn } from "../../security/secret-detection.ts";
import { inPieces, listText } from "../core/text-stream.ts";
import { Type } from "../core/type.ts";
import { historyOf, type RunParts } from "./find-run.ts";
import { ObservabilitySummarySchema } from "./results.ts";
import { RunSummarySchema, renderRunSummary, waitingReasonOf } from "./run-view.ts";
import { reasonFields } from "./schemas.ts";

/** What a job's detail tells of its latest run; all of it null without one. */
const latestRunFields = {
  failure: Type.Nullable(Type.JsonObject("svc.error.v1; null unless the latest run failed.")),
  ...reasonFields,
  trace_id: Type.Nullable(Type.String("W3C trace id of the latest run.")),
  observability_summary: Type.Nullable(ObservabilitySummarySchema),
};

const Source = Type.Union([
  Type.Object({ bundle_id: Type.String() }),
  Type.Object({ blueprint_id: Type.String() }),
]);

const compact = {
  job_id: Type.String({ examples: ["job_01k9z1v7m3e8q2x4c6t8b0n5dg"] }),
  name: Type.String(),
  status: Type.OneOf(
    ["ready", "preparing", "failed_preparation"],
    "preparing: its blueprint is being added. failed_preparation: that failed, and a later addition may fix it.",
  ),
  source: Source,
  graph_id: Type.String(),
  resolved_configuration: Type.JsonObject('Secrets are shown as "********".'),
  weight: Type.Integer("Slots that the job is granted in its turn while others wait for them, too."),
  extensions: Type.Array(
    Type.String({ examples: ["svc.response"] }),
    "What its package and its configuration switch on. svc.response: it can be asked at links.mcp; svc.collaboration: the same without ask_job.",
  ),
  revision: Type.Integer("From 1; each change adds one. The ETag is made of it."),
  created_at: Type.Time("When the job was created."),
  updated_at: Type.Time("Last change of the definition."),
  latest_run: Type.Nullable(RunSummarySchema),
  active_runs: Type.Integer("Runs that have not ended."),
  links: Type.Record(
    Type.String(),
    "Where to look next: self, runs, workflow_progress, and mcp where the job can be asked.",
  ),
};

export const JobSchema = Type.Object(compact, "A durable definition of work.");

const GraphSchema = Type.Object({
  nodes: Type.Array(
    Type.Object({ node_id: Type.String(), agent_type: Type.String(), role: Type.Nullable(Type.String()) }),
  ),
  edges: Type.Array(
    Type.Object({
      edge_id: Type.Nullable(Type.String()),
      from_node: Type.String(),
      to_node: Type.String(),
      message_type: Type.Nullable(Type.String("Null: every message.")),
    }),
  ),
  entrypoints: Type.Array(Type.String()),
});

export const JobDetailSchema = Type.Object(
  {
    ...compact,
    manifest: Type.Optional(Type.JsonObject("view=full: the bundle's manifest.")),
    graph: Type.Optional(GraphSchema),
    recent_runs: Type.Optional(Type.Array(RunSummarySchema)),
    recent_events: Type.Optional(
      Type.Array(
        Type.JsonObject("An event of the latest run.", { id: 1, type: "job_pending" }),
        "view=full: of the latest run, newest first.",
      ),
    ),
    services: Type.Optional(
      Type.Array(
        Type.JsonObject("A service that the manifest, or a node of it, declares."),
        "view=full. What open runs offer is at GET /services.",
      ),
    ),
    ...latestRunFields,
  },
  "A job with the summary of its latest run; with view=full also its manifest, graph, recent runs and events, and services.",
);

export interface JobViewParts extends RunParts {
  readonly records: Pick<GatewayRecords, "run" | "latestRun" | "recentRuns">;
  readonly bundles: Bundles;
  readonly secrets: ConfigurationSecrets;
}

/** The members of a job, without the braces, so that the full view can add its own. */
function renderJobMembers(job: JobView, secrets: ConfigurationSecrets): string {
  const { source } = job;
  const shownSource =
    source.kind === "bundle" ? { bundle_id: source.bundleId } : { blueprint_id: source.blueprintId };
  return (
    `"job_id":${JSON.stringify(job.jobId)},"name":${JSON.stringify(job.name)},"status":"${job.status}",` +
    `"source":${JSON.stringify(shownSource)},"graph_id":${JSON.stringify(job.graphId)},` +
    `"resolved_configuration":${renderConfiguration(job.configurationJson, secrets)},` +
    `"weight":${job.weight},"extensions":${JSON.stringify(extensionsOfJob(job))},"revision":${job.revision},` +
    `"created_at":"${isoTime(job.createdAtMs)}","updated_at":"${isoTime(job.updatedAtMs)}",` +
    `"latest_run":${job.latestRun === null ? "null" : renderRunSummary(job.latestRun)},` +
    `"active_runs":${job.activeRuns},"links":${renderLinks(job)}`
  );
}

function renderLinks(job: JobView): string {
  const self = `/api/v1/jobs/${job.jobId}`;
  const mcp = toolsOfJob(job).length === 0 ? "" : `,"mcp":"${self}/mcp"`;
  return `{"self":"${self}","runs":"${self}/runs","workflow_progress":"${self}/workflow-progress"${mcp}}`;
}

export function renderJob(job: JobView, secrets: ConfigurationSecrets): string {
  return `{${renderJobMembers(job, secrets)}}`;
}

function renderConfiguration(configurationJson: string, secrets: ConfigurationSecrets): string {
  if (configurationJson === "{}") return "{}";
  return JSON.stringify(secrets.mask(JSON.parse(configurationJson) as JsonObject));
}

/** Nodes and edges for drawing, a few at a time: of an edge only what is drawn, whatever else the manifest says of it. */
function* renderGraph(graph: Graph, manifest: JsonObject): Generator<string> {
  yield '{"nodes":';
  yield* listText(graph.nodes, (nodes) =>
    JSON.stringify(
      nodes.map(({ nodeId, agentType, role }) => ({ node_id: nodeId, agent_type: agentType, role })),
    ),
  );
  yield ',"edges":';
  yield* listText(objectsIn(manifest.edges), (edges) =>
    JSON.stringify(
      edges.map(({ edge_id, from_node, to_node, message_type }) => ({
        edge_id: edge_id ?? null,
        from_node,
        to_node,
        message_type: message_type ?? null,
      })),
    ),
  );
  const entrypoints = graph.entrypoints.map((index) => graph.nodes[index]?.nodeId);
  yield `,"entrypoints":${JSON.stringify(entrypoints)}}`;
}

/** The objects of a list that a manifest may have. */
function objectsIn(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

const RECENT_RUNS = 10;
const RECENT_EVENTS = 20;

export async function renderCompactJob(parts: JobViewParts, job: JobView): Promise<string> {
  return renderJobAfter(parts, job, await parts.records.latestRun(job.jobId));
}

/** The compact view. @param latest the job's latest run; null, as of a job that is just being made, reads nothing */
export async function renderJobAfter(
  parts: JobViewParts,
  job: JobView,
  latest: RunRecord | null,
): Promise<string> {
  return `{${renderJobMembers(job, parts.secrets)},${await latestRunMembers(parts, latest)}}`;
}

/**
 * Made in pieces, between which everything else has its turn: a graph may be large.
 *
 * @throws DomainError `conflict` when the content of the job's bundle is gone
 */
export function renderFullJob(parts: JobViewParts, job: JobView): Promise<readonly Buffer[]> {
  return inPieces(fullJob(parts, job));
}

async function* fullJob(parts: JobViewParts, job: JobView): AsyncGenerator<string> {
  const { records, secrets } = parts;
  const runs = await records.recentRuns(job.jobId, RECENT_RUNS);
  const latest = await records.latestRun(job.jobId);
  yield `{${renderJobMembers(job, secrets)}`;
  yield* packageMembers(parts, job);
  yield `,"recent_runs":[${runs.map(renderRunSummary).join(",")}],` +
    `"recent_events":[${(await recentEvents(parts, latest)).join(",")}],` +
    `${await latestRunMembers(parts, latest)}}`;
}

/** Nothing while the job waits for its package; a comma before each member. */
async function* packageMembers(
  { bundles, secrets }: JobViewParts,
  { bundleFingerprint }: JobView,
): AsyncGenerator<string> {
  if (bundleFingerprint === null) return;
  const { graph, manifest } = await storedBundle(bundles, bundleFingerprint);
  const { initial_inputs: inputs } = manifest;
  const paths = isObject(inputs)
    ? new Map([["initial_inputs", ofEach(inputs, secretPathsIn(manifest))]])
    : noPaths;
  const masked = (items: readonly JsonValue[]) => secrets.mask({ items: [...items] }).items;
  const { nodes, edges, ...others } = manifest;
  const shown = secrets.mask(others, paths);
  const services = [...oneOrMany(shown.services)];
  yield `,"manifest":${JSON.stringify(shown).slice(0, -1)},"nodes":`;
  yield* listText(objectsIn(nodes), (some) => {
    const shownNodes = masked(some);
    services.push(...servicesOf(objectsIn(shownNodes)));
    return JSON.stringify(shownNodes);
  });
  if (Array.isArray(edges)) {
    yield ',"edges":';
    yield* listText(edges, (some: readonly JsonValue[]) => JSON.stringify(masked(some)));
  }
  yield '},"graph":';
  yield* renderGraph(graph, manifest);
  yield ',"services":';
  yield* listText(services);
}

/** Those of the nodes, each with its node. */
function servicesOf(nodes: readonly JsonObject[]): readonly JsonObject[] {
  return nodes.flatMap(({ node_id = null, services }) =>
    oneOrMany(services).map((service) => ({ ...service, node_id })),
  );
}

function oneOrMany(value: JsonValue | undefined): readonly JsonObject[] {
  return isObject(value) ? [value] : objectsIn(value);
}

/** Of the latest run, as of its last batch: the answer has an ETag, which a clock must not change. */
async function latestRunMembers({ journal }: JobViewParts, run: RunRecord | null): Promise<string> {
  const failureJson = run?.failureJson ?? null;
  const summary = run === null ? null : await readSummary(journal, summarizedRun(run));
  return (
    `"failure":${failureJson ?? "null"},${reasonMembers(failureJson, run === null ? null : waitingReasonOf(run))},` +
    `"trace_id":${JSON.stringify(run?.traceId ?? null)},"observability_summary":${JSON.stringify(summary)}`
  );
}

/** Of the latest run, newest first. */
async function recentEvents(parts: JobViewParts, run: RunRecord | null): Promise<string[]> {
  if (run === null) return [];
  const { items } = await readHistory(historyOf(parts, run), {
    afterSeq: Math.max(0, run.progress.eventCount - RECENT_EVENTS),
    limit: RECENT_EVENTS,
    view: (seq, line) => renderEvent(run.runId, seq, line),
  });
  return [...items].reverse();
}
