// Batches of changes to a job, and what is in them, with values for whatever a test does not name.

import type {
  AgentRecord,
  HumanRequest,
  JobChanges,
  JobProgress,
  TaskRecord,
} from "../../src/engine/journal.ts";
import type { Message } from "../../src/engine/message.ts";
import { newTally } from "../../src/engine/tally.ts";
import type { ArtifactRecord } from "../../src/engine/task-port.ts";

export function changes(given: Partial<JobChanges> = {}): JobChanges {
  const { jobId = "g-1", firstEventSeq = 1, eventLines = ['{"n":1}'] } = given;
  return {
    jobId,
    owner: "owner",
    epoch: 1,
    revision: 0,
    insert: {
      graphId: "g",
      jobName: null,
      runId: `run_${jobId}`,
      type: "batch",
      submittedAtMs: 1_700_000_000_000,
      placementPolicy: "local",
      recoveryPolicy: "local_restart",
      executorCount: 2,
      rootAgentIds: ["in"],
      manifestJson: '{"a": 1}',
      bundleFingerprint: null,
      hasOwnPayload: false,
      definitionId: null,
      configurationJson: '{"b":2}',
      trace: { traceId: "0af7651916cd43dd8448eb211c80319c", parentSpanId: "b7ad6b7169203331" },
      priority: "high",
      weight: 7,
    },
    progress: progress({ eventSeq: firstEventSeq - 1 + eventLines.length }),
    agents: [],
    consumed: [],
    messages: [],
    itemsCleared: [],
    items: [],
    tasks: [],
    tasksRemoved: [],
    firstEventSeq,
    eventLines,
    deadLetters: [],
    deadLettersRetried: [],
    humanRequests: [],
    artifacts: [],
    priority: null,
    isHandedOver: false,
    ...given,
  };
}

/** The next batch of a job whose first one is committed; it appends no event unless told to. */
export function next(revision: number, given: Partial<JobChanges> = {}): JobChanges {
  return changes({ firstEventSeq: 2, eventLines: [], ...given, revision, insert: null });
}

export function progress(given: Partial<JobProgress> = {}): JobProgress {
  return {
    status: "running",
    updatedAtMs: 1_700_000_000_500,
    startedAtMs: 1_700_000_000_001,
    pausedAtMs: null,
    deadlineAtMs: 1_800_000_000_000,
    eventSeq: 1,
    messageSeq: 3,
    taskSeq: 1,
    logBytes: 12,
    activeExecutors: 1,
    sandboxNames: ["a-1"],
    lastEventJson: '{"type":"x"}',
    partial: false,
    tally: { ...newTally(), logs: 2, cpuMs: 7.5 },
    humanPending: 1,
    resultJson: null,
    failureJson: null,
    ...given,
  };
}

export function agent(index: number, given: Partial<AgentRecord> = {}): AgentRecord {
  return {
    agentId: `agent ${index}`,
    index,
    status: "ready",
    done: false,
    processedMessages: 1,
    stateJson: "{}",
    lastError: null,
    unroutedJson: null,
    lease: null,
    ...given,
  };
}

export function message(seq: number, to: number): Message {
  return {
    seq,
    from: null,
    to,
    type: "work",
    class: "event",
    body: { seq, text: "ä\n" },
    correlationId: `c${seq}`,
    causationId: null,
    ttlMs: null,
    timestampMs: 1_700_000_000_000,
    chars: 24,
  };
}

export function humanRequest(eventSeq: number, given: Partial<HumanRequest> = {}): HumanRequest {
  return {
    requestId: `ask-${eventSeq}`,
    eventSeq,
    agentId: "agent 0",
    taskSeq: 1,
    prompt: "May I?",
    allowedDecisions: ["yes", "no"],
    dataSchemaJson: '{"type":"object"}',
    defaultAction: "no",
    status: "pending",
    createdAtMs: 1_700_000_000_000,
    expiresAtMs: 1_800_000_000_000,
    response: null,
    ...given,
  };
}

export function task(taskSeq: number): TaskRecord {
  const lease = { leaseId: "lease_1", pool: "default", slots: 1 };
  const state = { kind: "running", lease, sandboxName: "a-1", startedAtMs: 5 } as const;
  return { taskSeq, agentIndex: 0, kind: "command", state, attempt: 1, failures: 0, message: message(9, 0) };
}

export function artifact(sha256: string, given: Partial<ArtifactRecord> = {}): ArtifactRecord {
  return {
    artifactId: `art_${sha256}`,
    agentId: null,
    name: "a.txt",
    kind: "artifact",
    title: null,
    primary: false,
    size: 1,
    sha256,
    contentType: "text/plain",
    createdAtMs: 1,
    ...given,
  };
}
