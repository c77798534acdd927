// A job in detail: what its latest run came to; and in the full view manifest, graph for drawing, recent runs and
// events, services.

import type { JobView, RunRecord } from "../../jobs/records.ts";
import { summarizedRun } from "../../jobs/run-summary.ts";
import { storedBundle } from "../../jobs/stored-bundle.ts";
import { renderEvent } from "../../runs/evidence/public-event.ts";
import { readSummary, reasonMembers } from "../../runs/evidence/read-summary.ts";
import { readHistory } from "../../runs/run-history.ts";
import { objectsIn, renderGraph, renderJobMembers } from "./render-job.ts";
import { renderRunSummary } from "./render-run.ts";
import { historyOf } from "./run-source.ts";
import type { GatewayServices } from "./services.ts";

const RECENT_RUNS = 10;
const RECENT_EVENTS = 20;

export async function renderCompactJob(services: GatewayServices, job: JobView): Promise<string> {
  const latest = await services.records.latestRun(job.jobId);
  return `{${renderJobMembers(job, services.secrets)},${await evidenceMembers(services, latest)}}`;
}

/** @throws Refusal `conflict` when the content of the job's bundle is gone */
export async function renderFullJob(services: GatewayServices, job: JobView): Promise<string> {
  const { bundles, records, secrets } = services;
  const { graph, manifest } = await storedBundle(bundles, job.bundleFingerprint);
  const runs = await records.recentRuns(job.jobId, RECENT_RUNS);
  const latest = await records.latestRun(job.jobId);
  const shown = secrets.mask(manifest);
  return (
    `{${renderJobMembers(job, secrets)},"manifest":${JSON.stringify(shown)},` +
    `"graph":${renderGraph(graph, manifest)},"recent_runs":[${runs.map(renderRunSummary).join(",")}],` +
    `"recent_events":[${(await recentEvents(services, latest)).join(",")}],` +
    `"services":${JSON.stringify(objectsIn(shown.services))},${await evidenceMembers(services, latest)}}`
  );
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
