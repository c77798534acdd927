// The full view of a job: manifest, graph for drawing, recent runs and events, services.

import type { JobView } from "../../jobs/records.ts";
import { storedBundle } from "../../jobs/stored-bundle.ts";
import { readHistory } from "../../runs/run-history.ts";
import { renderEvent } from "./render-event.ts";
import { objectsIn, renderGraph, renderJobMembers } from "./render-job.ts";
import { renderRunSummary } from "./render-run.ts";
import { historyOf } from "./run-source.ts";
import type { GatewayServices } from "./services.ts";

const RECENT_RUNS = 10;
const RECENT_EVENTS = 20;

/** @throws Refusal `conflict` when the content of the job's bundle is gone */
export async function renderFullJob(services: GatewayServices, job: JobView): Promise<string> {
  const { bundles, records, secrets } = services;
  const { graph, manifest } = await storedBundle(bundles, job.bundleFingerprint);
  const runs = await records.runs({ jobId: job.jobId, status: null, limit: RECENT_RUNS, after: null });
  const shown = secrets.mask(manifest);
  return (
    `{${renderJobMembers(job, secrets)},"manifest":${JSON.stringify(shown)},` +
    `"graph":${renderGraph(graph, manifest)},"recent_runs":[${runs.map(renderRunSummary).join(",")}],` +
    `"recent_events":[${(await recentEvents(services, job)).join(",")}],` +
    `"services":${JSON.stringify(objectsIn(shown.services))}}`
  );
}

/** Of the latest run, newest first. */
async function recentEvents(services: GatewayServices, job: JobView): Promise<string[]> {
  const run = await services.records.latestRun(job.jobId);
  if (run === null) return [];
  const { items } = await readHistory(historyOf(services, run), {
    afterSeq: Math.max(0, run.progress.eventCount - RECENT_EVENTS),
    limit: RECENT_EVENTS,
    view: (seq, line) => renderEvent(run.runId, seq, line),
  });
  return [...items].reverse();
}
