// The summary of a run, svc.observability_summary.v1 (CONTRACTS §6 "Evidence"), and the records that carry it.

import { Type } from "../../core/type.ts";
import { answerObject, JsonObjectSchema, nullable } from "./common.ts";
import { AgentEndsSchema, RunStatus, reasonFields } from "./runs.ts";

const count = (description: string, example: number) =>
  Type.Integer({ minimum: 0, description, examples: [example] });

const FailedId = (description: string) => nullable(Type.String({ description, examples: ["writer"] }));

export const ObservabilitySummarySchema = answerObject(
  {
    schema_version: Type.Literal("svc.observability_summary.v1"),
    run_id: Type.String({ examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    status: RunStatus,
    duration_ms: nullable(
      Type.Integer({
        description: "From its start to its end, or to now; null for a run that never started.",
      }),
    ),
    trace_id: Type.String({ description: "W3C trace id.", examples: ["4bf92f3577b34da6a3ce929d0e0e4736"] }),
    counts: answerObject({
      events: count("Of its history.", 58),
      logs: count("Records of the log view.", 12),
      errors: count("Events that carry a failure, attempts that were made again included.", 2),
      warnings: count("Log records of level warn.", 3),
      timeline_records: count("Records of the timeline.", 31),
      artifacts: count("Files that its workers left.", 2),
    }),
    agents: Type.Optional(AgentEndsSchema),
    warnings: Type.Array(
      answerObject({
        code: Type.Union([Type.Literal("agents_not_reached"), Type.Literal("outputs_missing")]),
        message: Type.String({ examples: ['No message reached "writer".'] }),
      }),
      { description: "What a completed run lacks, with names; empty for one that is whole." },
    ),
    retry_count: count("Attempts that were made again.", 1),
    failed_agent_id: FailedId("Whose failure failed the run; null where none did."),
    failed_step_id: FailedId("The node of the graph, by its id."),
    failure: nullable(JsonObjectSchema("svc.error.v1; null unless the run failed.")),
    resource_peaks: answerObject({
      cpu_seconds: Type.Number({
        description: "CPU time of all its commands together, as the operating system tells.",
        examples: [4.21],
      }),
      max_rss_bytes: nullable(
        Type.Integer({
          description: "The most memory that one command held; null when the system told of none.",
          examples: [73_400_320],
        }),
      ),
      disk_bytes: count("Of the files that its workers left.", 18_211),
    }),
    tokens: answerObject(
      {
        input: count("Given to models.", 1_200),
        output: count("Made by models.", 350),
        total: count("Both.", 1_550),
      },
      { description: "What its workers reported with metric events." },
    ),
    artifact_links: Type.Array(
      answerObject({
        artifact_id: Type.String({ examples: ["events_jsonl"] }),
        url: Type.String({
          examples: ["/api/v1/runs/run_01k9z1v7m3e8q2x4c6t8b0n5dh/artifacts/events_jsonl"],
        }),
      }),
      { description: "The views of its history as files, and its outputs: at most 20, primary ones first." },
    ),
  },
  { description: "What happened in a run, in numbers, and where to read on." },
);

/** What a job's detail tells of its latest run; all of it null without one. */
export const latestRunEvidence = {
  failure: nullable(JsonObjectSchema("svc.error.v1; null unless the latest run failed.")),
  ...reasonFields,
  trace_id: nullable(Type.String({ description: "W3C trace id of the latest run." })),
  observability_summary: nullable(ObservabilitySummarySchema),
};
