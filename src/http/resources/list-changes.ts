// What the stream of lists says of records that have changed.

import type { GatewayRecords } from "../../launch/records.ts";
import type { OperationRecords } from "../../operations/records.ts";
import type { Note } from "../../runs/change-notes.ts";
import type { ListChange } from "../core/list-streams.ts";
import { renderOperation } from "./operations.ts";
import { renderRunChanges } from "./run-view.ts";

export interface ListChangesParts {
  readonly records: Pick<GatewayRecords, "changedRuns">;
  readonly operationRecords: Pick<OperationRecords, "operation">;
  readonly nowMs: () => number;
}

/** Reads what notes name. @throws JournalUnavailable */
export async function listChanges(
  { records, operationRecords, nowMs }: ListChangesParts,
  notes: readonly Note[],
): Promise<readonly ListChange[]> {
  const changes: ListChange[] = [];
  const runIds = new Set(notes.filter(({ topic, id }) => topic === "runs" && id !== "").map(({ id }) => id));
  const jobIds = new Set(notes.map(({ jobId }) => jobId).filter((jobId) => jobId !== ""));
  const runs = await records.changedRuns({ runIds: [...runIds], jobIds: [...jobIds] });
  const runOfJob = new Map(runs.map(({ runtimeJobId, runId }) => [runtimeJobId, runId]));
  for (const run of runs) {
    runIds.delete(run.runId);
    changes.push(changeOf("runs", run.runId, renderRunChanges(run, nowMs())));
  }
  // They were removed since.
  for (const runId of runIds) changes.push(changeOf("runs", runId, "null"));
  for (const { topic, id, jobId, status } of notes) {
    if (topic === "operations") {
      const operation = await operationRecords.operation(id);
      changes.push(changeOf(topic, id, operation === null ? "null" : renderOperation(operation)));
    } else if (topic === "deployments" || topic === "schedules") {
      changes.push(changeOf(topic, id, "{}"));
    } else if (topic !== "runs") {
      // A job of the runtime's own API has no run here.
      const runId = runOfJob.get(jobId) ?? null;
      const json = JSON.stringify({ run_id: runId, status });
      changes.push(changeOf(topic, id, json, `${jobId} ${id}`));
    }
  }
  return changes;
}

const changeOf = (topic: string, id: string, changes: string, key = id): ListChange => ({
  topic,
  key,
  json: `{"topic":"${topic}","id":${JSON.stringify(id)},"changes":${changes}}`,
});
