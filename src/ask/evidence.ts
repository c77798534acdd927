// What a job has published of itself and of one of its runs, as short texts: what it is for, its status and progress,
// results, failures, decisions of people, and outputs that are text. Never logs, never other files.
//
// - Each text has an id that stays the same while the run does.
// - All of it is bounded; what was cut is named, with how much is shown.
// - Secrets are masked: by their keys, and wherever a value of the run's own configuration or inputs stands.

import type { Readable } from "node:stream";
import { descriptionOf } from "../blueprints/describe-package.ts";
import type { Bundles } from "../bundles/bundles.ts";
import { isoTime } from "../engine/event.ts";
import type { HumanRequest } from "../engine/journal.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import type { ArtifactRecord } from "../engine/task-port.ts";
import { type Redactor, Redactors } from "../execution/output/redaction.ts";
import { storedBundle } from "../launch/job-sources.ts";
import type { JobView, RunRecord } from "../launch/records.ts";
import { summarizedRun } from "../launch/run-ends.ts";
import { DomainError } from "../lib/domain-error.ts";
import { workflowProgress } from "../runs/history/progress.ts";
import { readProgress } from "../runs/history/read-progress.ts";
import { readSummary } from "../runs/history/summary.ts";
import type { HumanRequestRecords } from "../runs/human-answers.ts";
import type { JobRecords } from "../runs/job-records.ts";
import type { RunStore } from "../runs/store/run-store.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import { ConfigurationUnreadable, type Environment } from "../security/configuration-decryption.ts";

export const evidenceKinds = [
  "purpose",
  "status",
  "progress",
  "result",
  "failure",
  "decision",
  "output",
] as const;

export interface EvidenceItem {
  readonly id: string;
  readonly kind: (typeof evidenceKinds)[number];
  /** What it is about, for people. */
  readonly title: string;
  readonly text: string;
}

/** Something of which only the beginning is shown, or not all of a list. */
export interface Cut {
  /** Of the item; of a list its kind. */
  readonly id: string;
  /** What is shown of it. */
  readonly limit: string;
}

export interface Evidence {
  readonly items: readonly EvidenceItem[];
  readonly cut: readonly Cut[];
}

export const evidenceLimits = {
  /** Of one text. */
  textCharsMax: 16 * 1024,
  /** A result that is longer as JSON is not read, so that its secrets could not be masked: it is not shown. */
  resultCharsMax: 512 * 1024,
  outputsMax: 10,
  decisionsMax: 50,
  stepsMax: 100,
} as const;

export interface EvidenceParts {
  readonly journal: JobRecords;
  readonly humanRequests: HumanRequestRecords;
  readonly runStore: Pick<RunStore, "find">;
  readonly bundles: Bundles;
  readonly secrets: ConfigurationSecrets;
  /** The runtime's own environment: configurations may name its variables. */
  readonly environment: Environment;
}

const redactors = new Redactors();

/**
 * Reads the evidence of a job and of one of its runs.
 *
 * @param run null: the job alone
 * @throws DomainError `conflict` when the secrets that are to be masked cannot be read
 */
export async function readEvidence(
  parts: EvidenceParts,
  job: JobView,
  run: RunRecord | null,
): Promise<Evidence> {
  const collected = new Collection(await redactorOf(parts, job, run));
  collected.add("purpose", "purpose", `What the job ${job.name} is for`, await purposeOf(parts, job));
  if (run !== null) await addRun(parts, run, collected);
  return collected;
}

class Collection implements Evidence {
  readonly items: EvidenceItem[] = [];
  readonly cut: Cut[] = [];
  readonly #redactor: Redactor;

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  /** @param isPart whether the text is itself the beginning of a longer one */
  add(id: string, kind: EvidenceItem["kind"], title: string, text: string, isPart = false): void {
    const { textCharsMax } = evidenceLimits;
    const isCut = isPart || text.length > textCharsMax;
    const shown = isCut ? this.#redactor.cutText(text.slice(0, textCharsMax)) : this.#redactor.text(text);
    if (isCut) this.cut.push({ id, limit: `the first ${shown.length} characters` });
    this.items.push({ id, kind, title: this.#redactor.text(title), text: shown });
  }
}

/** Masks every secret that the job, or the run, was given. */
async function redactorOf(
  { journal, secrets, environment }: EvidenceParts,
  job: JobView,
  run: RunRecord | null,
): Promise<Redactor> {
  const texts = run?.launched === true ? await journal.texts(run.runtimeJobId) : null;
  const configurations = [job.configurationJson, run?.configOverridesJson, texts?.configurationJson];
  const found: string[] = [];
  try {
    for (const json of configurations) {
      if (json != null) found.push(...(await secrets.decryptForWorker(json, environment)).secrets);
    }
    if (run !== null) found.push(...secrets.decryptBody(JSON.parse(run.inputsJson) as JsonValue).secrets);
  } catch (error) {
    if (!(error instanceof ConfigurationUnreadable)) throw error;
    throw new DomainError(
      "conflict",
      `The secrets that have to be masked in the evidence cannot be read: ${error.message}`,
    );
  }
  return redactors.made([...new Set(found)].sort());
}

async function purposeOf({ bundles }: EvidenceParts, job: JobView): Promise<string> {
  const lines = [`The job ${job.jobId} is called ${job.name}.`, `Its graph is ${job.graphId}.`];
  if (job.bundleFingerprint === null) return lines.join("\n");
  const definition = await storedBundle(bundles, job.bundleFingerprint);
  const { identity } = await descriptionOf(definition);
  if (identity.description !== "") lines.push(identity.description);
  const roles = definition.graph.nodes.slice(0, evidenceLimits.stepsMax);
  for (const { nodeId, agentType, role } of roles) {
    lines.push(`Its agent ${nodeId} is of the type ${agentType}${role === null ? "" : `: ${role}`}.`);
  }
  return lines.join("\n");
}

async function addRun(parts: EvidenceParts, run: RunRecord, to: Collection): Promise<void> {
  const { runId } = run;
  const summary = await readSummary(parts.journal, summarizedRun(run));
  to.add(`${runId}:status`, "status", "Status of the run", statusText(run, summary));
  await addProgress(parts, run, to);
  if (run.resultJson !== null) {
    const id = `${runId}:result`;
    const text = resultText(parts.secrets, run.resultJson);
    if (text !== null) to.add(id, "result", "Result of the run", text);
    else to.cut.push({ id, limit: `nothing, as it has ${run.resultJson.length} characters` });
  }
  if (run.failureJson !== null) {
    const failure = JSON.parse(run.failureJson) as JsonObject;
    const lines = ["The run failed with this error.", ...linesOf(failure)];
    to.add(`${runId}:failure`, "failure", "Failure of the run, its error and cause", lines.join("\n"));
  }
  await addDecisions(parts, run, to);
  await addOutputs(parts, run, to);
}

function statusText(run: RunRecord, summary: Awaited<ReturnType<typeof readSummary>>): string {
  const { trigger, createdAtMs, startedAtMs, finishedAtMs } = run;
  const lines = [
    `The run ${run.runId} has the status ${run.status}.`,
    `It was started by: ${trigger.kind}${trigger.id === null ? "" : ` ${trigger.id}`}.`,
    `It was accepted at ${isoTime(createdAtMs)}.`,
  ];
  if (startedAtMs !== null) lines.push(`It began at ${isoTime(startedAtMs)}.`);
  if (finishedAtMs !== null) lines.push(`It finished at ${isoTime(finishedAtMs)}.`);
  if (startedAtMs !== null && finishedAtMs !== null) {
    lines.push(`Its duration was ${Math.max(0, finishedAtMs - startedAtMs) / 1_000} seconds.`);
  }
  const { counts, tokens } = summary;
  lines.push(
    `Retries: ${summary.retry_count}.`,
    `Warnings: ${counts.warnings}.`,
    `Errors: ${counts.errors}.`,
    `Artifacts, files of its workers: ${counts.artifacts}.`,
    `Dead letters, messages that were not processed: ${run.openLetters}.`,
  );
  if (tokens.total > 0) lines.push(`Tokens of models: ${tokens.total}.`);
  for (const { message } of summary.warnings) lines.push(message);
  return lines.join("\n");
}

async function addProgress({ journal }: EvidenceParts, run: RunRecord, to: Collection): Promise<void> {
  const { stepsMax } = evidenceLimits;
  const id = `${run.runId}:progress`;
  const { agentsDone, messages, humanPending } = run.progress;
  const lines = [
    ...(run.label === null ? [] : [run.label]),
    `${agentsDone} of ${run.agentsTotal} agents are done; ${messages} messages were sent.`,
  ];
  if (humanPending > 0) lines.push(`Questions to people without an answer: ${humanPending}.`);
  // The time is for durations, of which nothing is told.
  const found = run.launched
    ? await readProgress(journal, run.runtimeJobId, { nowMs: run.updatedAtMs })
    : null;
  const steps = found === null ? [] : (await workflowProgress(found)).steps;
  for (const { step_id, state, attempt, failure } of steps.slice(0, stepsMax)) {
    const tries = attempt !== null && attempt > 1 ? `, attempt ${attempt}` : "";
    lines.push(`Step ${step_id} is ${state}${tries}${failure === null ? "" : `: ${failure.desc}`}.`);
  }
  if (steps.length > stepsMax) to.cut.push({ id, limit: `the first ${stepsMax} steps` });
  to.add(id, "progress", "Progress of the run, step by step", lines.join("\n"));
}

/** @returns null for a result that is too long to be read */
function resultText(secrets: ConfigurationSecrets, json: string): string | null {
  if (json.length > evidenceLimits.resultCharsMax) return null;
  return linesOf(withoutPrinted(secrets.mask(JSON.parse(json) as JsonObject))).join("\n");
}

/** An agent's answer has what its command printed (docs/workers.md): that is a log, and no evidence. */
function withoutPrinted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutPrinted);
  if (!isObject(value)) return value;
  const isOfCommand = Object.hasOwn(value, "stdout") && Object.hasOwn(value, "exit_code");
  const kept = Object.entries(value).filter(([name]) => !(isOfCommand && /^std(out|err)$/.test(name)));
  return Object.fromEntries(kept.map(([name, one]) => [name, withoutPrinted(one)]));
}

/** One line for each value, with the path to it: `orders[2].total: 12`. */
function linesOf(value: JsonValue, path = ""): readonly string[] {
  if (Array.isArray(value)) {
    return value.flatMap((one: JsonValue, at) => linesOf(one, `${path}[${at}]`));
  }
  if (isObject(value)) {
    return Object.entries(value).flatMap(([name, one]) =>
      linesOf(one, path === "" ? name : `${path}.${name}`),
    );
  }
  return [path === "" ? `${value}` : `${path}: ${value}`];
}

async function addDecisions(
  { humanRequests, secrets }: EvidenceParts,
  run: RunRecord,
  to: Collection,
): Promise<void> {
  if (!run.launched) return;
  const { decisionsMax: limit } = evidenceLimits;
  const page = { status: null, limit: limit + 1, afterSeq: 0 };
  const { rows, isCut } = await humanRequests.humanRequests(run.runtimeJobId, page);
  for (const request of rows.slice(0, limit)) {
    const title = "Question to people, their decision and answer";
    to.add(`${run.runId}:decision:${request.requestId}`, "decision", title, decisionText(secrets, request));
  }
  if (isCut || rows.length > limit) {
    const shown = Math.min(rows.length, limit);
    to.cut.push({ id: `${run.runId}:decision`, limit: `the first ${shown} questions to people` });
  }
}

function decisionText(secrets: ConfigurationSecrets, request: HumanRequest): string {
  const { agentId, prompt, response, status } = request;
  const asked = `${agentId} asked people: ${prompt}`;
  if (response === null) return `${asked}\nNobody has answered (${status}).`;
  const { decision, comment, dataJson, principal, respondedAtMs } = response;
  const lines = [`${asked} Decision: ${decision}.`];
  const by = principal === null ? "its time was over" : `answered by ${principal}`;
  lines.push(`The decision on "${prompt}" was ${decision}: ${by}, at ${isoTime(respondedAtMs)}.`);
  if (comment !== null) lines.push(`Comment: ${comment}`);
  if (dataJson !== null) lines.push(...linesOf(secrets.mask({ data: JSON.parse(dataJson) as JsonValue })));
  return lines.join("\n");
}

async function addOutputs(
  { journal, runStore }: EvidenceParts,
  run: RunRecord,
  to: Collection,
): Promise<void> {
  const { outputsMax } = evidenceLimits;
  const outputs = await journal.outputPage(run.runId, outputsMax + 1, null);
  for (const output of outputs.slice(0, outputsMax)) {
    const { text, isPart } = await outputText(runStore, run.runId, output);
    to.add(`${run.runId}:output:${output.artifactId}`, "output", titleOf(output), text, isPart);
  }
  if (outputs.length > outputsMax) {
    to.cut.push({ id: `${run.runId}:output`, limit: `the first ${outputsMax} outputs` });
  }
}

const titleOf = ({ name, title }: ArtifactRecord) => `Output ${name}${title === null ? "" : `, ${title}`}`;

const TEXT = /^(text\/|application\/json\b)/;

/** Of an output that is no text, only what it is called. */
async function outputText(runStore: Pick<RunStore, "find">, runId: string, output: ArtifactRecord) {
  const { artifactId, contentType, size } = output;
  const described = `${titleOf(output)}: ${contentType}, ${size} bytes.`;
  const stored = TEXT.test(contentType) && size > 0 ? await runStore.find(runId, artifactId) : null;
  if (stored === null) return { text: described, isPart: false };
  const bytesMax = evidenceLimits.textCharsMax;
  const isPart = size > bytesMax;
  const text = await textOf(await stored.open(0, Math.min(size, bytesMax) - 1));
  return { text: contentType.startsWith("text/html") ? withoutTags(text) : text, isPart };
}

async function textOf(bytes: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of bytes) chunks.push(chunk as Buffer);
  // The last character may have been cut in its middle.
  return new TextDecoder().decode(Buffer.concat(chunks)).replace(/\ufffd$/, "");
}

const withoutTags = (html: string) =>
  html
    .replace(/<(script|style)\b[\s\S]*?<\/\1>/gi, " ")
    .replace(/<[^<>]*>/g, " ")
    .replace(/[^\S\n]+/g, " ")
    .replace(/\s*\n\s*/g, "\n");
