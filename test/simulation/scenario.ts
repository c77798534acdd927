// One seed: a world, a few jobs, a few disasters; then peace, in which everything must finish.
//
// Phase one checks that nothing wrong ever happens (see checker.ts). Phase two turns the faults off, resumes what is
// paused, answers what is asked, and checks the ends (for people and dead letters see people.ts):
// I5. Every acknowledged job exists, and every job without an infinite source ends.
// I6. Every acknowledged message was processed exactly once.
// I7. Counts and results are those of the model: they do not depend on when the process crashed.
// I21 (cluster.ts) is what a world of many nodes waits for.
// I24 (sim-machine.ts) is about machines.
// I16. What was refused as not accepted does not exist; a job that cannot be written fails alone.

import assert from "node:assert/strict";
import { type EngineUnavailable, JobUnwritable } from "../../src/engine/batch.ts";
import { isTerminal } from "../../src/engine/journal.ts";
import type { JsonObject, JsonValue } from "../../src/engine/json.ts";
import { limits } from "../../src/engine/limits.ts";
import { manifestProblemsText, parseManifest } from "../../src/engine/manifest.ts";
import { parse } from "./checker.ts";
import { randomScenario, type Scenario } from "./graphs.ts";
import { type Counts, countStored } from "./kinds.ts";
import { type Acknowledged, judgeMessages, judgeTimeToLive } from "./messages.ts";
import { People, retriedOf } from "./people.ts";
import { Random } from "./random.ts";
import { termsOf } from "./shares.ts";
import { type History, judgeIdle } from "./waits.ts";
import { noFaults, World } from "./world.ts";

interface Client {
  readonly scenario: Scenario;
  jobId: string | null;
  wasDisturbed: boolean;
  /** Messages that were answered with 202. */
  readonly acknowledged: Acknowledged[];
  /** Jobs of which the client was told that nothing was accepted. */
  readonly refused: string[];
}

export interface Outcome {
  readonly jobs: number;
  readonly events: number;
  /** What has happened, and how often. */
  readonly counts: Counts;
}

const STEPS_MAX = 20_000;
const ROUNDS_MAX = 500;
const DISASTER_SPAN_MS = 2_000;

export interface Options {
  /** Whether everything is written to the real store too, on a disk whose power is cut. */
  readonly hasDisk?: boolean;
  /** Nodes that share a database; absent: one program with a database of its own. */
  readonly nodes?: number;
}

/** How many nodes share a database in this seed's world. */
export const nodesOf = (seed: number) => 2 + (seed % 3);

/** @throws AssertionError that says which invariant broke */
export async function runSeed(seed: number, options: Options = {}): Promise<Outcome> {
  const random = new Random(seed);
  const mailboxMax = random.chance(0.1) ? random.between(1, 6) : limits.mailboxMessagesMax;
  const usual = limits.mailboxMessagesMax;
  try {
    setMailboxMax(mailboxMax);
    return await runWorld(random, mailboxMax < usual, options);
  } finally {
    setMailboxMax(usual);
  }
}

/** Mailboxes that fill up after a few messages: 200,000 would take a minute of each seed. */
function setMailboxMax(count: number): void {
  (limits as { mailboxMessagesMax: number }).mailboxMessagesMax = count;
}

async function runWorld(
  random: Random,
  isCrowded: boolean,
  { hasDisk = false, nodes = 0 }: Options,
): Promise<Outcome> {
  const hard = random.chance(0.7);
  const faults = {
    commitFails: hard ? 0.05 : 0,
    crashAfterCommit: hard ? 0.01 : 0,
    commitUnknown: hard ? 0.03 : 0,
    jobUnwritable: random.chance(0.2) ? 0.02 : 0,
    powerFails: hasDisk ? 0.05 : 0,
    jobUnreadable: random.chance(0.1) ? 0.05 : 0,
    recoveryFails: random.chance(0.3) ? 0.15 : 0,
    recoveryIsSlow: random.chance(0.5) ? 0.3 : 0,
    taskFails: random.chance(0.5) ? 0.3 : 0,
    taskAnswersTwice: 0.2,
    taskIsSlow: 0.1,
  };
  const poolSlots = random.between(1, 4);
  const cluster =
    nodes === 0
      ? null
      : { nodes, leaseMs: random.pick([1_500, 3_000, 15_000]), clocksDiffer: random.chance(0.5) };
  const world = new World(random, faults, { poolSlots, hasDisk, cluster });
  // What a checker finds in the middle of the engine's own work, for which nobody waits.
  const found = (error: unknown) => world.broken(error);
  process.on("unhandledRejection", found);
  try {
    return await live(world, random, isCrowded, hard);
  } finally {
    process.off("unhandledRejection", found);
    await world.disk?.close();
  }
}

async function live(world: World, random: Random, isCrowded: boolean, hard: boolean): Promise<Outcome> {
  const clients = Array.from({ length: random.between(1, 3) }, (_, index) => plan(world, index, isCrowded));
  if (hard) planDisasters(world);
  const people = new People(world);
  people.planLooks(random.between(0, 12), DISASTER_SPAN_MS);
  await run(world);
  judgeIdle(world.journal.jobs);
  await makePeace(world, clients, people);
  world.cluster?.judge();
  world.judgeMachines();
  for (const client of clients) judge(world, client, people);
  await world.disk?.compare(world.journal);
  const stored = [...world.journal.jobs.values()];
  countStored(world.counts, stored);
  return {
    jobs: stored.length,
    events: stored.reduce((sum, job) => sum + job.events.length, 0),
    counts: world.counts,
  };
}

/** Says who may take the job over, in a world of many nodes. */
function inCluster({ cluster, random }: World, scenario: Scenario): Scenario {
  if (cluster === null) return scenario;
  const recovery_mode = random.pick([
    "local_restart",
    "cluster_recover",
    "cluster_recover",
    "manual_recover",
  ]);
  const { policies } = scenario.manifest;
  return {
    ...scenario,
    manifest: { ...scenario.manifest, policies: { ...(policies as JsonObject | undefined), recovery_mode } },
  };
}

function plan(world: World, index: number, isCrowded: boolean): Client {
  const { random } = world;
  const scenario = inCluster(world, randomScenario(random, index, isCrowded));
  const client: Client = { scenario, jobId: null, wasDisturbed: false, acknowledged: [], refused: [] };
  world.plan(random.between(0, 50), null, () => submit(world, client));
  if (scenario.shape === "service") {
    for (let n = random.between(1, 8); n > 0; n--) {
      // Sometimes several at the same moment.
      const together = random.chance(0.2) ? random.between(2, 10) : 1;
      const atMs = random.between(10, DISASTER_SPAN_MS);
      for (let m = 0; m < together; m++) world.plan(atMs, null, () => sendMessage(world, client, { n, m }));
    }
  } else if (random.chance(0.1)) {
    world.plan(random.between(1, DISASTER_SPAN_MS), null, () => {
      client.wasDisturbed = true;
      control(world, client, "cancel");
    });
  }
  if (random.chance(0.3)) {
    const atMs = random.between(1, 1_000);
    world.plan(atMs, null, () => control(world, client, "pause"));
    world.plan(atMs + random.between(1, 1_000), null, () => control(world, client, "resume"));
  }
  return client;
}

function planDisasters(world: World): void {
  const { random } = world;
  if (world.cluster !== null) {
    for (let n = random.below(8); n > 0; n--)
      world.cluster.planDisaster(random.between(1, 2 * DISASTER_SPAN_MS));
    for (let n = random.below(5); n > 0; n--) {
      world.cluster.planDrain(random.between(1, random.pick([300, DISASTER_SPAN_MS])));
    }
    return;
  }
  for (let n = random.below(5); n > 0; n--) {
    const disaster = random.chance(0.75) ? () => world.crash() : () => world.partition();
    world.plan(random.between(1, DISASTER_SPAN_MS), null, disaster);
  }
  for (let n = random.below(4); n > 0; n--) {
    world.plan(random.between(1, DISASTER_SPAN_MS), null, () => world.setClock());
  }
}

function submit(world: World, client: Client): void {
  const parsed = parseManifest(client.scenario.manifest);
  if (parsed.kind === "invalid") throw new Error(manifestProblemsText(parsed.problems));
  const manifestJson = JSON.stringify(client.scenario.manifest);
  const id = world.newId();
  const jobId = `${parsed.graph.graphId}-${id}`;
  world
    .engineOf(null)
    .submit({
      graph: parsed.graph,
      // The real store takes a job with a definition for a run that is in its table only.
      identity: { jobId, runId: `run_${id}`, definitionId: world.disk === null ? jobId : null },
      manifestJson,
      bundleFingerprint: null,
      hasOwnPayload: false,
      configurationJson: null,
      trace: null,
      ...termsOf(jobId),
    })
    .then(
      () => {
        client.jobId = jobId;
      },
      (error: unknown) => {
        const isKnown = error instanceof JobUnwritable || (error as EngineUnavailable).mayRetry;
        if (isKnown) client.refused.push(jobId);
        // Refused: the client tries again later, as it was told to; or it looks for the job.
        world.plan(100, null, () => {
          if (world.journal.jobs.has(jobId)) client.jobId = jobId;
          else submit(world, client);
        });
      },
    );
}

function sendMessage(world: World, client: Client, body: JsonValue): void {
  if (client.jobId === null) return;
  const { random, nowMs: sentAtMs } = world;
  // The sensor takes messages at once, the worker may be busy with one.
  const agentId = random.chance(0.5) ? "door" : "worker";
  const ttlMs = random.chance(0.6) ? random.between(0, 400) : null;
  const message = { agentId, type: "message", body, correlationId: null, ttlMs };
  world
    .engineOf(client.jobId)
    .deliver(client.jobId, message)
    .then(
      (answer) => {
        if (answer.kind !== "accepted") return;
        client.acknowledged.push({ messageId: answer.messageId, sentAtMs, ttlMs });
      },
      () => {},
    );
}

function control(world: World, client: Client, verb: "cancel" | "pause" | "resume"): void {
  if (client.jobId !== null)
    world
      .engineOf(client.jobId)
      [verb](client.jobId)
      .catch(() => {});
}

async function run(world: World): Promise<void> {
  for (let steps = 0; await world.step(); steps++) {
    assert.ok(steps < STEPS_MAX, `the world did not come to rest within ${STEPS_MAX} steps`);
  }
}

/** Faults end, a last restart, everything held is released; services are stopped once they are idle. */
async function makePeace(world: World, clients: readonly Client[], people: People): Promise<void> {
  world.faults = noFaults;
  world.makePeace();
  await run(world);
  for (const client of clients) {
    if (client.jobId === null) submit(world, client);
  }
  await run(world);
  for (const client of clients) control(world, client, "resume");
  await run(world);
  await answerEverything(world, people);
  for (const client of clients) {
    if (client.scenario.shape !== "service" || world.isDamaged(client.jobId!)) continue;
    assert.equal(
      world.journal.jobs.get(client.jobId!)!.progress.status,
      "running",
      "a service runs until it is stopped",
    );
    control(world, client, "cancel");
  }
  await run(world);
  // Submissions whose answer was lost in a crash have run too; nobody stops those services but us.
  for (const [jobId, job] of world.journal.jobs) {
    if (job.insert.type === "service")
      world
        .engineOf(jobId)
        .cancel(jobId)
        .catch(() => {});
    else
      world
        .engineOf(jobId)
        .resume(jobId)
        .catch(() => {});
  }
  await run(world);
  await answerEverything(world, people);
}

/** An answer may lead to the next question. */
async function answerEverything(world: World, people: People): Promise<void> {
  for (let rounds = 0; people.answerAll(); rounds++) {
    assert.ok(rounds < ROUNDS_MAX, `people were still asked after ${ROUNDS_MAX} rounds of answers`);
    await run(world);
  }
}

function judge(world: World, client: Client, people: People): void {
  for (const [jobId, job] of world.journal.jobs) {
    assert.ok(isTerminal(job.progress.status), `I5: ${jobId} ended as ${job.progress.status}`);
    world.checker.finished(jobId);
    people.judge(jobId, job);
  }
  for (const id of client.refused) {
    assert.ok(!world.journal.jobs.has(id), `I16: ${id} was refused as not accepted, and exists`);
  }
  const { jobId, scenario } = client;
  assert.ok(jobId !== null, "the client got its job in the end");
  const job = world.journal.jobs.get(jobId);
  assert.ok(job !== undefined, "I5: an acknowledged job exists");
  if (world.isDamaged(jobId)) {
    const { status, failureJson } = job.progress;
    if (status === "failed") assert.match(failureJson ?? "", /"code":"runtime.record_damaged"/, "I16");
    return;
  }
  const events = job.events.map(parse);
  const history = { events, committedAtMs: world.checker.committedAtMs(jobId) };
  for (const message of client.acknowledged) judgeAcknowledged(world, message, history);
  const drained = scenario.drains && !client.wasDisturbed;
  judgeMessages(jobId, job, events, { drained, mailboxMax: limits.mailboxMessagesMax });
  if (scenario.shape === "service" || (client.wasDisturbed && job.progress.status === "cancelled")) return;
  if (scenario.shape === "deadline") {
    const { code } = JSON.parse(job.progress.failureJson ?? "{}") as { code?: string };
    assert.equal(code, "job.timeout", `I5: ${jobId} ends with its deadline`);
    return;
  }
  assert.equal(job.progress.status, "completed", `${jobId}: ${job.progress.failureJson}`);
  if (scenario.shape !== "failing") {
    assert.equal(job.progress.partial, false, `I7: ${jobId} is whole: nothing that it needs has failed`);
  }
  const result = JSON.parse(job.progress.resultJson ?? "null") as { count?: number; messages?: unknown[] };
  if (scenario.resultCount !== null && scenario.resultCount > 0 && "count" in result) {
    assert.equal(result.count, scenario.resultCount, "I7: the result has every message once");
    assert.equal(result.messages?.length, scenario.resultCount);
  }
  if (scenario.expected === null) return;
  const processed = new Map(
    [...job.agents.values()].map((agent) => [agent.agentId, agent.processedMessages]),
  );
  const retried = retriedOf(job);
  for (const [agentId, count] of scenario.expected) {
    const expected = count + (retried.get(agentId) ?? 0);
    assert.equal(processed.get(agentId) ?? 0, expected, `I7: ${jobId}: agent ${agentId}`);
  }
}

/** Processed once; or given up, and then it was told so. */
function judgeAcknowledged(world: World, message: Acknowledged, history: History): void {
  const { events } = history;
  const mine = events.filter(({ payload }) => payload.message_id === message.messageId);
  const times = mine.filter(({ type }) => type === "agent_message_received").length;
  const isGivenUp = mine.some(
    ({ type, payload }) => type === "message_dead_lettered" && payload.reason !== "processing_failed",
  );
  assert.ok(
    times === 1 || (times === 0 && isGivenUp),
    `I6: the acknowledged message ${message.messageId} was processed ${times} times`,
  );
  // Where clocks run apart, their stamps do not tell a message's age.
  if (!world.cluster?.clocksDiffer) judgeTimeToLive(message, history, world.clockSetAtMs);
}
