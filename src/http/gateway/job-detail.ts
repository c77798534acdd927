// A job in detail: what its latest run came to; and in the full view manifest, graph for drawing, recent runs and
// events, services.

import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { storedBundle } from "../../launch/job-sources.ts";
import type { JobView, RunRecord } from "../../launch/records.ts";
import { summarizedRun } from "../../launch/run-ends.ts";
import { renderEvent } from "../../runs/history/public-event.ts";
import { readSummary, reasonMembers } from "../../runs/history/read-summary.ts";
import { readHistory } from "../../runs/run-history.ts";
import { noPaths, ofEach, secretPathsIn } from "../../security/secret-paths.ts";
import { joined, listText, textStream } from "../core/text-stream.ts";
import { objectsIn, renderGraph, renderJobMembers } from "./render-job.ts";
import { renderRunSummary } from "./render-run.ts";
import { historyOf } from "./run-source.ts";
import type { GatewayServices } from "./services.ts";

const RECENT_RUNS = 10;
const RECENT_EVENTS = 20;

export async function renderCompactJob(services: GatewayServices, job: JobView): Promise<string> {
  return renderJobAfter(services, job, await services.records.latestRun(job.jobId));
}

/** The compact view. @param latest the job's latest run; null, as of a job that is just being made, reads nothing */
export async function renderJobAfter(
  services: GatewayServices,
  job: JobView,
  latest: RunRecord | null,
): Promise<string> {
  return `{${renderJobMembers(job, services.secrets)},${await evidenceMembers(services, latest)}}`;
}

/**
 * Made in pieces, between which everything else has its turn: a graph may be large.
 *
 * @throws DomainError `conflict` when the content of the job's bundle is gone
 */
export function renderFullJob(services: GatewayServices, job: JobView): Promise<string> {
  return joined(textStream(fullJob(services, job)));
}

async function* fullJob(services: GatewayServices, job: JobView): AsyncGenerator<string> {
  const { records, secrets } = services;
  const runs = await records.recentRuns(job.jobId, RECENT_RUNS);
  const latest = await records.latestRun(job.jobId);
  yield `{${renderJobMembers(job, secrets)}`;
  yield* packageMembers(services, job);
  yield `,"recent_runs":[${runs.map(renderRunSummary).join(",")}],` +
    `"recent_events":[${(await recentEvents(services, latest)).join(",")}],` +
    `${await evidenceMembers(services, latest)}}`;
}

/** Nothing while the job waits for its package; a comma before each member. */
async function* packageMembers(
  { bundles, secrets }: GatewayServices,
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
async function evidenceMembers({ journal }: GatewayServices, run: RunRecord | null): Promise<string> {
  const failureJson = run?.failureJson ?? null;
  const summary = run === null ? null : await readSummary(journal, summarizedRun(run));
  return (
    `"failure":${failureJson ?? "null"},${reasonMembers(failureJson)},` +
    `"trace_id":${JSON.stringify(run?.traceId ?? null)},"observability_summary":${JSON.stringify(summary)}`
  );
}

/** Of the latest run, newest first. */
async function recentEvents(services: GatewayServices, run: RunRecord | null): Promise<string[]> {
  if (run === null) return [];
  const { items } = await readHistory(historyOf(services, run), {
    afterSeq: Math.max(0, run.progress.eventCount - RECENT_EVENTS),
    limit: RECENT_EVENTS,
    view: (seq, line) => renderEvent(run.runId, seq, line),
  });
  return [...items].reverse();
}
