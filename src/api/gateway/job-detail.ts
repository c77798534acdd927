// A job in detail: what its latest run came to; and in the full view manifest, graph for drawing, recent runs and
// events, services.

import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import type { JobView, RunRecord } from "../../jobs/records.ts";
import { summarizedRun } from "../../jobs/run-summary.ts";
import { storedBundle } from "../../jobs/stored-bundle.ts";
import { renderEvent } from "../../runs/evidence/public-event.ts";
import { readSummary, reasonMembers } from "../../runs/evidence/read-summary.ts";
import { readHistory } from "../../runs/run-history.ts";
import { noPaths, ofEach, secretPathsIn } from "../../secrets/secret-paths.ts";
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

/** @throws Refusal `conflict` when the content of the job's bundle is gone */
export async function renderFullJob(services: GatewayServices, job: JobView): Promise<string> {
  const { records, secrets } = services;
  const runs = await records.recentRuns(job.jobId, RECENT_RUNS);
  const latest = await records.latestRun(job.jobId);
  return (
    `{${renderJobMembers(job, secrets)}${await packageMembers(services, job)},` +
    `"recent_runs":[${runs.map(renderRunSummary).join(",")}],` +
    `"recent_events":[${(await recentEvents(services, latest)).join(",")}],` +
    `${await evidenceMembers(services, latest)}}`
  );
}

/** Nothing while the job waits for its package; a comma before each member. */
async function packageMembers(
  { bundles, secrets }: GatewayServices,
  { bundleFingerprint }: JobView,
): Promise<string> {
  if (bundleFingerprint === null) return "";
  const { graph, manifest } = await storedBundle(bundles, bundleFingerprint);
  const { initial_inputs: inputs } = manifest;
  const paths = isObject(inputs)
    ? new Map([["initial_inputs", ofEach(inputs, secretPathsIn(manifest))]])
    : noPaths;
  const shown = secrets.mask(manifest, paths);
  return (
    `,"manifest":${JSON.stringify(shown)},"graph":${renderGraph(graph, manifest)},` +
    `"services":${JSON.stringify(declaredServices(shown))}`
  );
}

/** The services of a manifest; those of a node name it. */
function declaredServices(manifest: JsonObject): readonly JsonObject[] {
  const ofNodes = objectsIn(manifest.nodes).flatMap(({ node_id = null, services }) =>
    oneOrMany(services).map((service) => ({ ...service, node_id })),
  );
  return [...oneOrMany(manifest.services), ...ofNodes];
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
