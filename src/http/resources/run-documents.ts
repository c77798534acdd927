// Runs as the run store sees them: a run's history, and its row as small documents under public ids. A run of a durable
// job is shown as the gateway shows it; one of a job that was submitted to the runtime itself, with its job's fields.

import { isoTime } from "../../engine/event.ts";
import { isTerminal } from "../../engine/journal.ts";
import { isObject, type JsonObject } from "../../engine/json.ts";
import type { RunRecord } from "../../launch/records.ts";
import { summarizedRun } from "../../launch/run-ends.ts";
import { readSummary } from "../../runs/history/summary.ts";
import type { JobRecord, JobTexts } from "../../runs/job-records.ts";
import type { RunDocument, RunSource } from "../../runs/store/run-source.ts";
import { storedObject } from "../../runs/stored-json.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { type FoundRun, type RunParts, runOfGateway, runOfRuntime } from "./find-run.ts";
import { renderInputs, renderRun } from "./run-view.ts";

export interface Parts extends RunParts {
  readonly secrets: ConfigurationSecrets;
}

/** @returns null when there is no such run, or its job was deleted */
export async function findRunSource(parts: Parts, runId: string): Promise<RunSource | null> {
  const run = await parts.records.run(runId);
  if (run !== null) {
    return sourceOf(runOfGateway(parts, run), run.createdAtMs, documentsOfRun(parts, run));
  }
  const job = await parts.journal.findRun(runId);
  // A run of a durable job is the gateway's, which has deleted it.
  if (job === null || job.definitionId !== null) return null;
  return sourceOf(runOfRuntime(parts, job), job.submittedAtMs, documentsOfJob(parts, job));
}

function sourceOf(run: FoundRun, createdAtMs: number, documents: readonly RunDocument[]): RunSource {
  const { runId, traceId, parentSpanId, status, eventCount, history } = run;
  const isEnded = isTerminal(status);
  return { runId, traceId, parentSpanId, isEnded, eventCount, createdAtMs, read: history.after, documents };
}

function documentsOfRun({ journal, secrets }: Parts, run: RunRecord): readonly RunDocument[] {
  return [
    { name: "run", isFixed: false, text: async () => renderRun(run, { secrets, nowMs: null }) },
    {
      name: "config",
      isFixed: true,
      async text() {
        const texts = run.launched ? await journal.texts(run.runtimeJobId) : null;
        return texts === null ? null : maskedConfiguration(secrets, texts);
      },
    },
    { name: "inputs", isFixed: true, text: async () => renderInputs(run.inputsJson, secrets) },
    { name: "result", isFixed: false, text: async () => run.resultJson },
    {
      name: "observability_summary",
      isFixed: false,
      text: async () => JSON.stringify(await readSummary(journal, summarizedRun(run))),
    },
  ];
}

function documentsOfJob({ journal, secrets }: Parts, job: JobRecord): readonly RunDocument[] {
  let read: Promise<JobTexts | null> | null = null;
  /** Read once for all documents, and only if one of them is to be made. */
  const made = (of: (texts: JobTexts) => string | null | Promise<string | null>) => async () => {
    read ??= journal.texts(job.jobId);
    const texts = await read;
    return texts === null ? null : of(texts);
  };
  return [
    { name: "run", isFixed: false, text: made(({ resultJson }) => renderJobsRun(job, resultJson)) },
    { name: "config", isFixed: true, text: made((texts) => maskedConfiguration(secrets, texts)) },
    { name: "inputs", isFixed: true, text: made((texts) => inputsOf(secrets, job, texts)) },
    { name: "result", isFixed: false, text: made(({ resultJson }) => resultJson) },
    {
      name: "observability_summary",
      isFixed: false,
      text: async () => JSON.stringify(await readSummary(journal, job)),
    },
  ];
}

function renderJobsRun(job: JobRecord, resultJson: string | null): string {
  const identity = {
    run_id: job.runId,
    job_id: job.jobId,
    graph_id: job.graphId,
    job_name: job.jobName,
    type: job.type,
    status: job.status,
    submitted_at: isoTime(job.submittedAtMs),
    updated_at: isoTime(job.updatedAtMs),
    ...(job.startedAtMs !== null && { started_at: isoTime(job.startedAtMs) }),
    placement_policy: job.placementPolicy,
    recovery_policy: job.recoveryPolicy,
    executor_count: job.executorCount,
    partial: job.partial,
    trace_id: job.trace.traceId,
  };
  return (
    `${JSON.stringify(identity).slice(0, -1)},"root_agent_ids":${job.rootAgentIdsJson},` +
    `"result":${resultJson ?? "null"}${job.failureJson === null ? "" : `,"failure":${job.failureJson}`}}`
  );
}

function maskedConfiguration(secrets: ConfigurationSecrets, { configurationJson }: JobTexts): string {
  if (configurationJson === null) return "{}";
  return JSON.stringify(secrets.mask(JSON.parse(configurationJson) as JsonObject));
}

/** Those of the manifest. What a bundle was launched with instead is not kept apart from its messages. */
async function inputsOf(
  secrets: ConfigurationSecrets,
  { bundleFingerprint }: JobRecord,
  { manifestJson }: JobTexts,
): Promise<string | null> {
  if (bundleFingerprint !== null) return null;
  const { initial_inputs: inputs } = await storedObject(manifestJson);
  if (!isObject(inputs)) return "{}";
  return JSON.stringify(secrets.maskInputs({ $entrypoints: inputs }).$entrypoints);
}
