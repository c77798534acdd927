// What the jobs of a batch write beside their own rows, as rows per statement.

import { isTerminal, type JobChanges } from "../../engine/journal.ts";
import { agents } from "../sql/agents.ts";
import { artifacts } from "../sql/artifacts.ts";
import { ROWS_AT_ONCE, rowsOf, segmentsOf, slicesOf } from "../sql/batch-slices.ts";
import type { Stored } from "../sql/columns.ts";
import { letters } from "../sql/dead-letters.ts";
import { humanRequests } from "../sql/human-requests.ts";
import { tasks } from "../sql/jobs.ts";
import type { Statements } from "./journal-statements.ts";

/** A job whose own row was written. */
export interface JobParts {
  readonly changes: JobChanges;
  /** Whether it is a run of the gateway's, which follows it. */
  readonly hasDefinition: boolean;
}

type Rows = { [Statement in keyof Statements]?: Stored[][] };

/** Rows that are sent together, in the order in which their statements are to run. */
interface Portion {
  readonly rows: Rows;
  /** Jobs that are over, and have no work left. */
  readonly ended: readonly string[];
}

/** Rows of one portion: building it holds up everything else for a few milliseconds. */
const PORTION_ROWS = 4 * ROWS_AT_ONCE;

/** A small batch is one portion. */
export function* partsOf(jobs: readonly JobParts[]): Generator<Portion> {
  let slices: JobChanges[] = [];
  let ended: string[] = [];
  let count = 0;
  for (const { changes } of jobs) {
    for (const slice of rowsOf(changes) <= ROWS_AT_ONCE ? [changes] : slicesOf(changes)) {
      slices.push(slice);
      count += rowsOf(slice);
      if (count < PORTION_ROWS) continue;
      yield { rows: rowsPerStatement(slices), ended };
      [slices, ended, count] = [[], [], 0];
    }
    if (changes.insert === null && isTerminal(changes.progress.status)) ended.push(changes.jobId);
  }
  if (slices.length > 0 || ended.length > 0) yield { rows: rowsPerStatement(slices), ended };
}

function rowsPerStatement(slices: readonly JobChanges[]): Rows {
  const rows = {
    setPriorities: slices.flatMap(({ jobId, priority }) => (priority === null ? [] : [[jobId, priority]])),
    insertEvents: slices.flatMap(eventRows),
    upsertAgents: each(slices, "agents", (agent, { jobId }) => agents.toValues(agent, jobId)),
    insertDeadLetters: each(slices, "deadLetters", (letter, { jobId }) => {
      const messageJson = JSON.stringify(letter.message);
      const stored = { ...letter, messageJson, status: "open", retriedAtMs: null, changeJson: null } as const;
      return letters.toValues(stored, jobId);
    }),
    retryDeadLetters: each(slices, "deadLettersRetried", (retry, { jobId }) => [
      jobId,
      retry.deadLetterId,
      retry.retriedAtMs,
      retry.changeJson,
    ]),
    ...requestRows(slices),
    ...artifactRows(slices),
    ...workRows(slices.filter(({ progress }) => !isTerminal(progress.status))),
  };
  return Object.fromEntries(Object.entries(rows).filter(([, list]) => list.length > 0));
}

function each<List extends keyof JobChanges>(
  slices: readonly JobChanges[],
  list: List,
  toRow: (item: ItemOf<List>, changes: JobChanges) => Stored[],
): Stored[][] {
  return slices.flatMap((changes) =>
    (changes[list] as readonly ItemOf<List>[]).map((item) => toRow(item, changes)),
  );
}

type ItemOf<List extends keyof JobChanges> = JobChanges[List] extends readonly (infer Item)[] ? Item : never;

function eventRows({ jobId, firstEventSeq, eventLines }: JobChanges): Stored[][] {
  return Array.from(segmentsOf(eventLines), ({ from, to }) => [
    jobId,
    firstEventSeq + from,
    to - from,
    eventLines.slice(from, to).join("\n"),
  ]);
}

/** A request takes the place of the one that it was, and of an older one of the same name, here and in the table. */
function requestRows(slices: readonly JobChanges[]): Rows {
  const newest = new Map<string, Stored[]>();
  const deleteHumanRequests = each(slices, "humanRequests", (request, { jobId }) => {
    newest.set(`${jobId} ${request.requestId}`, humanRequests.toValues(request, jobId));
    return [jobId, request.eventSeq, request.requestId];
  });
  return { deleteHumanRequests, insertHumanRequests: [...newest.values()] };
}

/** Of one producer and name the newest is the output, also of those that come together. */
function artifactRows(slices: readonly JobChanges[]): Rows {
  const newest = new Map<string, string>();
  const nameOf = (jobId: string, { agentId, name }: ItemOf<"artifacts">) =>
    JSON.stringify([jobId, agentId, name]);
  const replaceOutputs: Stored[][] = [];
  for (const { jobId, artifacts } of slices) {
    for (const artifact of artifacts) {
      if (artifact.kind !== "output") continue;
      const name = nameOf(jobId, artifact);
      if (!newest.has(name)) replaceOutputs.push([jobId, artifact.agentId, artifact.name]);
      newest.set(name, artifact.artifactId);
    }
  }
  const insertArtifacts = each(slices, "artifacts", (artifact, { jobId }) => {
    const isReplaced =
      artifact.kind === "output" && newest.get(nameOf(jobId, artifact)) !== artifact.artifactId;
    return artifacts.toValues(isReplaced ? { ...artifact, kind: "artifact" } : artifact, jobId);
  });
  return { replaceOutputs, insertArtifacts };
}

/** Mailboxes, collections and tasks: what an open job still has to do. */
function workRows(slices: readonly JobChanges[]): Rows {
  return {
    deleteMessages: each(slices, "consumed", ({ agentIndex, throughSeq }, { jobId }) => [
      jobId,
      agentIndex,
      throughSeq,
    ]),
    insertMessages: each(slices, "messages", (message, { jobId }) => [
      jobId,
      message.to,
      message.seq,
      JSON.stringify(message),
    ]),
    raiseDepths: each(slices, "messages", (message, { jobId }) => [jobId, message.to, 1]),
    deleteItems: each(slices, "itemsCleared", (agentIndex, { jobId }) => [jobId, agentIndex]),
    insertItems: each(slices, "items", ({ agentIndex, firstSeq, bodiesJson }, { jobId }) => [
      jobId,
      agentIndex,
      firstSeq,
      bodiesJson.join("\n"),
    ]),
    deleteTasks: each(slices, "tasksRemoved", (taskSeq, { jobId }) => [jobId, taskSeq]),
    upsertTasks: each(slices, "tasks", (task, { jobId }) => tasks.toValues(task, jobId)),
  };
}
