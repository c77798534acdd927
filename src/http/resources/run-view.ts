// A run of a durable job as the gateway shows it: its schemas, and its text. What is stored as JSON text is put into the
// answer as it is.

import { isoTime } from "../../engine/event.ts";
import { isTerminal } from "../../engine/journal.ts";
import type { JsonObject } from "../../engine/json.ts";
import { newTally, readTally } from "../../engine/tally.ts";
import {
  type NewRun,
  openLettersMax,
  type RunRecord,
  type RunSummary,
  triggerKinds,
} from "../../launch/records.ts";
import { runLabel } from "../../runs/history/run-label.ts";
import { reasonMembers, waitingReason } from "../../runs/history/summary.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { Type } from "../core/type.ts";
import { AgentEndsSchema, Priority, RunStatus, reasonFields } from "./schemas.ts";

export const DesiredState = Type.OneOf(["paused", "running", "cancelled"]);

const Trigger = Type.Object({
  kind: Type.OneOf(triggerKinds),
  id: Type.Nullable(Type.String("Of the schedule, event, blueprint or deployment.")),
});

const Progress = Type.Object({
  agents_total: Type.Integer(),
  agents_done: Type.Integer(
    "Agents that have done what there was for them so far; of an ended run, those that ended well.",
  ),
  agents: Type.Optional(AgentEndsSchema),
  messages: Type.Integer("Messages sent so far."),
  tasks_running: Type.Integer(),
  human_pending: Type.Integer("Requests to people that nobody has answered yet."),
  label: Type.String("For people.", { examples: ["2 of 5 agents done"] }),
});

const Counts = Type.Object({
  warnings: Type.Integer("Warnings in its log."),
  retries: Type.Integer("Attempts that were made again."),
  human_pending: Type.Integer("Requests to people that can be answered."),
  dead_letters: Type.Integer(`Open ones; ${openLettersMax} for as many or more.`),
  tokens: Type.Nullable(Type.Integer("That workers reported; null when none did.")),
});

const Links = Type.Record(
  Type.String(),
  "Where to look next: self, job, events, events_stream, stream, result, logs, timeline, artifacts, outputs, human, dead_letters, observability_summary, reruns.",
);

export const RunSchema = Type.Object(
  {
    run_id: Type.String({ examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    job_id: Type.String(),
    job_name: Type.String(),
    blueprint_id: Type.Nullable(Type.String("Of which its job was made.")),
    rerun_of: Type.Nullable(Type.String("The run that it repeats.")),
    status: RunStatus,
    desired_state: DesiredState,
    inputs: Type.JsonObject("As given at creation."),
    config_overrides: Type.Nullable(
      Type.JsonObject('As given at creation; secrets are shown as "********".'),
    ),
    priority: Priority,
    trigger: Trigger,
    attempt: Type.Integer(),
    created_at: Type.Time("When the run was accepted."),
    started_at: Type.Nullable(Type.Time("When its graph began to run.")),
    finished_at: Type.Nullable(Type.Time("When it ended.")),
    updated_at: Type.Time("Last change."),
    duration_ms: Type.Nullable(Type.Integer("From its start to its end, or to now.")),
    progress: Progress,
    counts: Counts,
    result: Type.Nullable(Type.JsonObject("Null until there is one.")),
    failure: Type.Nullable(Type.JsonObject("svc.error.v1; null unless the run failed.")),
    ...reasonFields,
    trace_id: Type.String("W3C trace id.", { examples: ["4bf92f3577b34da6a3ce929d0e0e4736"] }),
    links: Links,
  },
  "One execution of a job.",
);

/** A run as a job mentions it. */
export const RunSummarySchema = Type.Object({
  run_id: Type.String(),
  status: RunStatus,
  desired_state: DesiredState,
  created_at: Type.Time("When the run was accepted."),
  started_at: Type.Nullable(Type.Time("When its graph began to run.")),
  finished_at: Type.Nullable(Type.Time("When it ended.")),
  updated_at: Type.Time("Last change."),
});

const time = (ms: number | null) => (ms === null ? "null" : `"${isoTime(ms)}"`);
const text = (value: string | null) => (value === null ? "null" : JSON.stringify(value));

export interface ShownRun {
  readonly secrets: ConfigurationSecrets;
  /** Wall time, for the duration of a run that is under way; null leaves that out. */
  readonly nowMs: number | null;
}

export function renderRun(run: RunRecord, { secrets, nowMs }: ShownRun): string {
  return (
    `{"run_id":${text(run.runId)},${identityMembers(run)},"inputs":${renderInputs(run.inputsJson, secrets)},` +
    `"config_overrides":${renderOverrides(run.configOverridesJson, secrets)},${stateMembers(run, nowMs)},` +
    `"result":${run.resultJson ?? "null"},${endMembers(run)},"links":${renderLinks(run)}}`
  );
}

/** What changes of a run in a list: all of it but inputs, overrides, result and links. */
export function renderRunChanges(run: RunRecord, nowMs: number): string {
  return `{${identityMembers(run)},${stateMembers(run, nowMs)},${endMembers(run)}}`;
}

const identityMembers = (run: RunRecord) =>
  `"job_id":${text(run.jobId)},"job_name":${text(run.jobName)},` +
  `"blueprint_id":${text(run.blueprintId)},"rerun_of":${text(run.rerunOf)},"status":"${run.status}",` +
  `"desired_state":"${run.desiredState}"`;

const stateMembers = (run: RunRecord, nowMs: number | null) =>
  `"priority":"${run.priority}","trigger":{"kind":"${run.trigger.kind}","id":${text(run.trigger.id)}},` +
  `"attempt":1,"created_at":${time(run.createdAtMs)},"started_at":${time(run.startedAtMs)},` +
  `"finished_at":${time(run.finishedAtMs)},"updated_at":${time(run.updatedAtMs)},` +
  `"duration_ms":${durationMs(run, nowMs)},"progress":${renderProgress(run)},"counts":${renderCounts(run)}`;

const endMembers = (run: RunRecord) =>
  `"failure":${run.failureJson ?? "null"},${reasonMembers(run.failureJson, waitingReasonOf(run))},` +
  `"trace_id":"${run.traceId}"`;

export function renderInputs(inputsJson: string, secrets: ConfigurationSecrets): string {
  return inputsJson === "{}"
    ? "{}"
    : JSON.stringify(secrets.maskInputs(JSON.parse(inputsJson) as JsonObject));
}

function renderOverrides(overridesJson: string | null, secrets: ConfigurationSecrets): string {
  return overridesJson === null
    ? "null"
    : JSON.stringify(secrets.mask(JSON.parse(overridesJson) as JsonObject));
}

const tallyOf = ({ tallyJson }: RunRecord) => (tallyJson === null ? newTally() : readTally(tallyJson));

/** Why a run is queued; null for one that is not. */
export function waitingReasonOf(run: RunRecord): string | null {
  return run.status === "queued" ? waitingReason(run.status, tallyOf(run)) : null;
}

function durationMs(run: RunRecord, nowMs: number | null): number | null {
  const untilMs = run.finishedAtMs ?? nowMs;
  return run.startedAtMs === null || untilMs === null ? null : Math.max(0, untilMs - run.startedAtMs);
}

function renderCounts(run: RunRecord): string {
  const { warnings, retries, tokensInput, tokensOutput } = tallyOf(run);
  const tokens = tokensInput + tokensOutput;
  return (
    `{"warnings":${warnings},"retries":${retries},"human_pending":${humanPending(run)},` +
    `"dead_letters":${run.openLetters},"tokens":${tokens === 0 ? null : tokens}}`
  );
}

/** Nobody can answer a run that has ended. */
const humanPending = ({ status, progress }: RunRecord) => (isTerminal(status) ? 0 : progress.humanPending);

function renderProgress(run: RunRecord): string {
  const { agentsDone, agentEnds, messages, tasksRunning } = run.progress;
  const ended = agentEnds === null ? "" : `"agents":${JSON.stringify(agentEnds)},`;
  return (
    `{"agents_total":${run.agentsTotal},"agents_done":${agentsDone},${ended}"messages":${messages},` +
    `"tasks_running":${tasksRunning},"human_pending":${humanPending(run)},"label":${text(labelOf(run))}}`
  );
}

/** The run's progress for people. */
export function labelOf(run: RunRecord): string {
  if (run.label !== null) return run.label;
  const { agentsDone: done, agentEnds, humanPending: pending, humanPrompt: prompt } = run.progress;
  const agents = { done, total: run.agentsTotal, notReached: agentEnds?.not_reached ?? 0 };
  const waitsFor = run.status === "queued" ? tallyOf(run).waitsFor : null;
  return runLabel(run.status, agents, { pending, prompt }, waitsFor);
}

function renderLinks(run: RunRecord): string {
  const self = `/api/v1/runs/${run.runId}`;
  return (
    `{"self":"${self}","job":${text(`/api/v1/jobs/${run.jobId}`)},"events":"${self}/events",` +
    `"events_stream":"${self}/events/stream","stream":"${self}/stream","result":"${self}/result",` +
    `"logs":"${self}/logs","timeline":"${self}/timeline","artifacts":"${self}/artifacts",` +
    `"outputs":"${self}/outputs","human":"${self}/human","dead_letters":"${self}/dead-letters","observability_summary":"${self}/observability-summary",` +
    `"reruns":${text(`/api/v1/runs?rerun_of=${run.runId}`)}}`
  );
}

/** A run as its job mentions it. */
export function renderRunSummary(run: RunSummary): string {
  return (
    `{"run_id":${text(run.runId)},"status":"${run.status}","desired_state":"${run.desiredState}",` +
    `"created_at":${time(run.createdAtMs)},"started_at":${time(run.startedAtMs)},` +
    `"finished_at":${time(run.finishedAtMs)},"updated_at":${time(run.updatedAtMs)}}`
  );
}

/** A run at the moment of its acceptance. */
export function renderNewRun(run: NewRun, secrets: ConfigurationSecrets): string {
  return renderRun(
    {
      ...run,
      status: "pending",
      desiredState: "running",
      launched: false,
      startedAtMs: null,
      finishedAtMs: null,
      updatedAtMs: run.createdAtMs,
      resultJson: null,
      failureJson: null,
      tallyJson: null,
      progress: {
        agentsDone: 0,
        agentEnds: null,
        messages: 0,
        tasksRunning: 0,
        humanPending: 0,
        humanPrompt: null,
        eventCount: 0,
      },
      openLetters: 0,
    },
    { secrets, nowMs: run.createdAtMs },
  );
}
