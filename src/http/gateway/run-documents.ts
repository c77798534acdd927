// A run of the gateway as the run store sees it: its history, and its row as small documents under public ids.

import { isTerminal } from "../../engine/journal.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { GatewayRecords, RunRecord } from "../../launch/records.ts";
import { summarizedRun } from "../../launch/run-ends.ts";
import { readSummary } from "../../runs/history/read-summary.ts";
import type { JobRecords } from "../../runs/job-records.ts";
import type { RunDocument, RunSource } from "../../runs/store/run-source.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { renderInputs, renderRun } from "./render-run.ts";
import { historyOf } from "./run-source.ts";

export interface RunDocumentParts {
  readonly records: Pick<GatewayRecords, "run">;
  readonly journal: JobRecords;
  readonly secrets: ConfigurationSecrets;
}

/** @returns null when there is no such run, or its job was deleted */
export async function gatewayRunSource(parts: RunDocumentParts, runId: string): Promise<RunSource | null> {
  const run = await parts.records.run(runId);
  if (run === null) return null;
  return {
    runId,
    traceId: run.traceId,
    parentSpanId: run.parentSpanId,
    isEnded: isTerminal(run.status),
    eventCount: run.progress.eventCount,
    createdAtMs: run.createdAtMs,
    read: historyOf(parts, run),
    documents: documentsOf(parts, run),
  };
}

function documentsOf({ journal, secrets }: RunDocumentParts, run: RunRecord): readonly RunDocument[] {
  return [
    { name: "run", isFixed: false, text: async () => renderRun(run, { secrets, nowMs: null }) },
    {
      name: "config",
      isFixed: true,
      text: async () => (run.launched ? maskedConfiguration(journal, secrets, run.runtimeJobId) : null),
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

async function maskedConfiguration(
  journal: JobRecords,
  secrets: ConfigurationSecrets,
  runtimeJobId: string,
): Promise<string | null> {
  const texts = await journal.texts(runtimeJobId);
  if (texts === null) return null;
  const { configurationJson } = texts;
  return configurationJson === null
    ? "{}"
    : JSON.stringify(secrets.mask(JSON.parse(configurationJson) as JsonObject));
}
