// A run of a job that was submitted to the runtime itself, as the run store sees it: its history, and its job's row as
// small documents.

import { isoTime } from "../../engine/event.ts";
import { isTerminal } from "../../engine/journal.ts";
import { isObject, type JsonObject } from "../../engine/json.ts";
import { readSummary } from "../../runs/history/read-summary.ts";
import type { JobRecord, JobRecords, JobTexts } from "../../runs/job-records.ts";
import type { RunDocument, RunSource } from "../../runs/store/run-source.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { contextOf } from "./run-source.ts";

export interface RunDocumentParts {
  readonly records: JobRecords;
  readonly secrets: ConfigurationSecrets;
}

/** @returns null when there is no such run, or it is a run of a durable job: the gateway has its documents */
export async function runtimeRunSource(
  { records, secrets }: RunDocumentParts,
  runId: string,
): Promise<RunSource | null> {
  const job = await records.findRun(runId);
  if (job === null || job.definitionId !== null) return null;
  return {
    ...contextOf(job),
    isEnded: isTerminal(job.status),
    eventCount: job.eventCount,
    createdAtMs: job.submittedAtMs,
    read: (afterSeq) => records.events(job.jobId, afterSeq),
    documents: documentsOf(job, { records, secrets }),
  };
}

function documentsOf(job: JobRecord, { records, secrets }: RunDocumentParts): readonly RunDocument[] {
  let read: Promise<JobTexts | null> | null = null;
  /** Read once for all documents, and only if one of them is to be made. */
  const made = (of: (texts: JobTexts) => string | null) => async () => {
    read ??= records.texts(job.jobId);
    const texts = await read;
    return texts === null ? null : of(texts);
  };
  return [
    { name: "run", isFixed: false, text: made(({ resultJson }) => renderRun(job, resultJson)) },
    { name: "config", isFixed: true, text: made((texts) => maskedConfiguration(secrets, texts)) },
    { name: "inputs", isFixed: true, text: made((texts) => inputsOf(secrets, job, texts)) },
    { name: "result", isFixed: false, text: made(({ resultJson }) => resultJson) },
    {
      name: "observability_summary",
      isFixed: false,
      text: async () => JSON.stringify(await readSummary(records, job)),
    },
  ];
}

function renderRun(job: JobRecord, resultJson: string | null): string {
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
function inputsOf(
  secrets: ConfigurationSecrets,
  { bundleFingerprint }: JobRecord,
  { manifestJson }: JobTexts,
): string | null {
  if (bundleFingerprint !== null) return null;
  const { initial_inputs: inputs } = JSON.parse(manifestJson) as JsonObject;
  if (!isObject(inputs)) return "{}";
  return JSON.stringify(secrets.maskInputs({ $entrypoints: inputs }).$entrypoints);
}
