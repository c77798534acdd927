// Nodes on one PostgreSQL: real engines, sockets and statements, and commands that the test plays. What is asked at one node
// of a job on another.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { systemClock, systemRandomness } from "../../src/app/clock.ts";
import { Follower } from "../../src/cluster/follower.ts";
import { nodeService } from "../../src/cluster/node-service.ts";
import { type LivingNode, Places } from "../../src/cluster/places.ts";
import { RemoteControl } from "../../src/cluster/remote-control.ts";
import { Peers } from "../../src/cluster/wire/peers.ts";
import { startNodeServer } from "../../src/cluster/wire/server.ts";
import { Engine } from "../../src/engine/engine.ts";
import { eventType } from "../../src/engine/event.ts";
import { parseManifest } from "../../src/engine/manifest.ts";
import { noServiceBoard } from "../../src/engine/service-port.ts";
import { noActions, type TaskRef, type TaskStart } from "../../src/engine/task-port.ts";
import { PoolSlots } from "../../src/execution/pools.ts";
import { EventStreams } from "../../src/http/core/sse.ts";
import { frame } from "../../src/http/core/sse-chunk.ts";
import { DeadLetters } from "../../src/runs/dead-letters.ts";
import { EventFeed } from "../../src/runs/feed.ts";
import { HumanAnswers } from "../../src/runs/human-answers.ts";
import { openPostgres } from "../../src/store/postgres/database.ts";
import { PostgresJournal } from "../../src/store/postgres/journal.ts";
import { sqlDeadLetterRecords } from "../../src/store/sql/dead-letters.ts";
import { sqlJobHeads } from "../../src/store/sql/heads.ts";
import { sqlHumanRequestRecords } from "../../src/store/sql/human-requests.ts";
import { sqlJobRecords } from "../../src/store/sql/jobs.ts";
import { executor, graph, sensor } from "../support/graphs.ts";
import { SECRET } from "../support/nodes.ts";
import { returnPostgres, takePostgres } from "../support/postgres.ts";
import { until } from "../support/until.ts";

const silent = { warn: () => {}, error: () => {} };

/** One cluster: a database, and who of its nodes has a lease. */
async function cluster() {
  const url = await takePostgres();
  const living = new Map<string, LivingNode>();
  await using undo = new AsyncDisposableStack();
  undo.defer(() => returnPostgres(url));
  const kept = undo.move();

  async function startNode(name: string) {
    const owner = `${name}/${systemRandomness.id()}`;
    const database = await openPostgres(url);
    const journal = new PostgresJournal(database);
    const feed = new EventFeed();
    const starts: TaskStart[] = [];
    const engine = new Engine({
      owner,
      clock: systemClock,
      randomness: systemRandomness,
      journal,
      runner: { start: (task) => void starts.push(task), stop: () => {}, send: () => {}, respond: () => {} },
      slots: new PoolSlots({ default: 4 }, systemRandomness.id),
      feed,
      services: noServiceBoard,
      log: silent,
    });
    const peers = new Peers({ credentials: SECRET, messageBytesMax: 16 * 1024 * 1024, clock: systemClock });
    const jobs = sqlJobRecords(database);
    const places = new Places({
      jobs: sqlJobHeads(database),
      livingNodes: async () => [...living.values()],
      clock: systemClock,
    });
    const control = new RemoteControl({
      engine,
      owner: () => owner,
      placeOf: (jobId) => places.placeOf(jobId),
      peers,
    });
    const records = { heads: places.heads.bind(places), events: jobs.events };
    const follower = new Follower({ feed, engine, records, peers, clock: systemClock, log: silent });
    feed.followWith(follower);
    const server = await startNodeServer({
      host: "127.0.0.1",
      port: 0,
      credentials: SECRET,
      messageBytesMax: 16 * 1024 * 1024,
      routes: nodeService({ owner: () => owner, version: "1", engine, feed }),
      log: silent,
    });
    living.set(owner, { owner, address: `127.0.0.1:${server.port}` });
    const stopping = new AbortController();
    const streams = new EventStreams({ feed, stopping: stopping.signal, log: silent });
    const requests = sqlHumanRequestRecords(database);
    const letters = sqlDeadLetterRecords(database);
    let isOver = false;
    const kill = async () => {
      if (isOver) return;
      isOver = true;
      engine.giveUp("It was killed.");
      living.delete(owner);
      await server.close();
    };
    kept.defer(async () => {
      stopping.abort();
      follower.stop();
      peers.close();
      await kill();
      engine.stop("The test is over.");
      await journal.close();
      await database.close();
    });
    return {
      owner,
      engine,
      control,
      jobs,
      requests,
      letters,
      answers: new HumanAnswers({ records: requests, jobs, control }),
      deadLetters: new DeadLetters({ records: letters, jobs, control }),
      kill,
      started: () => until("the command is started", () => starts.shift() ?? null),
      /** The events of a job over a real stream of this node, as they come. */
      async stream(jobId: string) {
        const http = createServer((_request, response) =>
          streams.serve(
            response,
            {
              key: `${jobId} events`,
              jobId,
              read: (seq) => jobs.events(jobId, seq),
              exists: async () => (await jobs.find(jobId)) !== null,
              render: (seq, line) => frame(seq, eventType(line), line),
            },
            0,
          ),
        );
        await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
        const { port } = http.address() as { port: number };
        const ids: number[] = [];
        const types: string[] = [];
        const answer = await fetch(`http://127.0.0.1:${port}`);
        const over = (async () => {
          for await (const text of answer.body!.pipeThrough(new TextDecoderStream())) {
            for (const [, id] of text.matchAll(/^id: (\d+)$/gm)) ids.push(Number(id));
            for (const [, type] of text.matchAll(/^event: (.+)$/gm)) types.push(String(type));
          }
          http.close();
        })();
        return { ids, types, over, shows: (seq: number) => until(`event ${seq}`, () => ids.includes(seq)) };
      },
    };
  }

  return { startNode, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

type Node = Awaited<ReturnType<Awaited<ReturnType<typeof cluster>>["startNode"]>>;

async function submitted(node: Node, manifest: Parameters<typeof parseManifest>[0]): Promise<string> {
  const parsed = parseManifest(manifest);
  assert.ok(parsed.kind === "valid");
  const { jobId } = await node.engine.submit({
    graph: parsed.graph,
    identity: null,
    manifestJson: JSON.stringify(manifest),
    bundleFingerprint: null,
    hasOwnPayload: false,
    configurationJson: null,
    trace: null,
  });
  return jobId;
}

const oneCommand = () => graph("one", [executor("work", ["true"])], [], { entrypoints: ["work"] });

/** Waits for people, and for a retry, and for messages. */
function inNeed() {
  const nodes = [sensor("hold"), executor("asker", ["true"]), executor("failing", ["true"])];
  const more = {
    entrypoints: ["hold", "asker", "failing"],
    policies: { failure_policy: "continue" },
  };
  return graph("in-need", nodes, [], more);
}

async function numberOfEvents(node: Node, jobId: string): Promise<number> {
  return (await node.jobs.find(jobId))?.eventCount ?? 0;
}

function endWell(node: Node, ref: TaskRef): void {
  node.engine.taskEnded(ref, {
    kind: "succeeded",
    actions: noActions,
    command: { exitCode: 0, signal: null, stdout: "", stderr: "", durationMs: 1, usage: null },
    artifacts: [],
    observation: null,
  });
}

function says(node: Node, ref: TaskRef, text: string): void {
  node.engine.taskEvents(ref, [{ type: "log", payload: { level: "info", message: text } }]);
}

describe("a stream that was opened on another node than the job's", () => {
  test("is live and without a gap, goes on when the job's node is killed, and ends with the job", async () => {
    await using one = await cluster();
    const [a, b] = [await one.startNode("node_a"), await one.startNode("node_b")];
    const jobId = await submitted(a, oneCommand());
    const first = await a.started();
    const stream = await b.stream(jobId);
    await stream.shows(await numberOfEvents(b, jobId));
    for (let lines = 0; lines < 3; lines++) {
      says(a, first.ref, `line ${lines}`);
      await a.engine.settled();
      await stream.shows(await numberOfEvents(b, jobId));
    }
    await a.kill();
    const c = await one.startNode("node_c");
    assert.equal(await c.engine.recover(), 1);
    const second = await c.started();
    says(c, second.ref, "again");
    await c.engine.settled();
    await stream.shows(await numberOfEvents(b, jobId));
    endWell(c, second.ref);
    await stream.over;
    const count = await numberOfEvents(b, jobId);
    assert.deepEqual(
      stream.ids,
      Array.from({ length: count }, (_, i) => i + 1),
    );
    assert.equal(stream.types.at(-1), "job_completed");
  });

  test("goes on here when this node takes the job over", async () => {
    await using one = await cluster();
    const [a, b] = [await one.startNode("node_a"), await one.startNode("node_b")];
    const jobId = await submitted(a, oneCommand());
    const first = await a.started();
    const stream = await b.stream(jobId);
    says(a, first.ref, "before");
    await a.engine.settled();
    await stream.shows(await numberOfEvents(b, jobId));
    await a.kill();
    await b.engine.recover();
    endWell(b, (await b.started()).ref);
    await stream.over;
    const count = await numberOfEvents(b, jobId);
    assert.deepEqual(
      stream.ids,
      Array.from({ length: count }, (_, i) => i + 1),
    );
  });
});

describe("asked at another node than its own", () => {
  test("a job is paused, resumed and cancelled, and takes messages", async () => {
    await using one = await cluster();
    const [a, b] = [await one.startNode("node_a"), await one.startNode("node_b")];
    const jobId = await submitted(a, inNeed());
    assert.deepEqual(await b.control.pause(jobId), { kind: "done", status: "paused" });
    assert.equal((await b.jobs.find(jobId))?.status, "paused");
    assert.deepEqual(await b.control.resume(jobId), { kind: "done", status: "running" });
    const message = { agentId: "hold", type: "note", body: { n: 1 }, correlationId: null, ttlMs: null };
    assert.equal((await b.control.deliver(jobId, message)).kind, "accepted");
    const nobody = { ...message, agentId: "nobody" };
    assert.deepEqual(await b.control.deliver(jobId, nobody), { kind: "unknown_agent" });
    assert.deepEqual(await b.control.cancel(jobId), { kind: "done", status: "cancelled" });
    assert.deepEqual(await b.control.cancel(jobId), { kind: "not_open" });
    assert.deepEqual(await b.control.cancel("none"), { kind: "not_open" });
  });

  test("a question is answered once, and a dead letter is sent again once", async () => {
    await using one = await cluster();
    const [a, b] = [await one.startNode("node_a"), await one.startNode("node_b")];
    const jobId = await submitted(a, inNeed());
    for (const { agentId, ref } of [await a.started(), await a.started()]) {
      if (agentId === "asker") {
        a.engine.taskEvents(ref, [{ type: "human_input_requested", payload: { request_id: "ship" } }]);
      } else {
        const code = "executor.exit_nonzero";
        a.engine.taskEnded(ref, { kind: "failed", code, message: "no", command: null, artifacts: [] });
      }
    }
    await until("both are on disk", async () => {
      const letter = await b.letters.newestOpenLetter(jobId);
      return letter !== null && (await b.requests.humanRequest(jobId, "ship")) !== null;
    });
    const run = { runId: "run_1", jobId, status: "running" as const };
    const yes = { decision: "yes", comment: null, data: { n: 1 }, principal: "amy" };
    const [first, again] = [
      await b.answers.answer(run, "ship", yes),
      await b.answers.answer(run, "ship", yes),
    ];
    assert.deepEqual(first, again);
    assert.equal(first.response?.principal, "amy");
    const other = { ...yes, principal: "ben" };
    await assert.rejects(b.answers.answer(run, "ship", other), { code: "already_answered" });
    assert.deepEqual(await b.deadLetters.retryAll(run), { retried: 1, notDeliverable: 0 });
    assert.deepEqual(await b.deadLetters.retryAll(run), { retried: 0, notDeliverable: 0 });
  });

  test("a job whose node was killed is unavailable until another one has taken it over", async () => {
    await using one = await cluster();
    const [a, b] = [await one.startNode("node_a"), await one.startNode("node_b")];
    const jobId = await submitted(a, inNeed());
    assert.equal((await b.control.pause(jobId)).kind, "done");
    await a.kill();
    const text = /its node is lost and its jobs are being taken over/;
    const refused = { name: "EngineUnavailable", mayRetry: true, message: text };
    await assert.rejects(b.control.resume(jobId), refused);
    const c = await one.startNode("node_c");
    await c.engine.recover();
    assert.deepEqual(await b.control.resume(jobId), { kind: "done", status: "running" });
  });
});
