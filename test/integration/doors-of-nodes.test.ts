// Nodes on one PostgreSQL: real engines, leases, sockets and statements, and commands that the test plays. What is asked at one node
// of a job on another.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { systemClock, systemRandomness } from "../../src/app/clock.ts";
import { loadConfig } from "../../src/app/config.ts";
import { credentialsOf, type NodeDoorParts, openNodeDoor } from "../../src/app/node-door.ts";
import { Engine } from "../../src/engine/engine.ts";
import { eventType } from "../../src/engine/event.ts";
import { parseManifest } from "../../src/engine/manifest.ts";
import { defaultTerms } from "../../src/engine/share.ts";
import { noActions, type TaskRef, type TaskStart } from "../../src/engine/task-port.ts";
import { PoolSlots } from "../../src/execution/pools.ts";
import { EventStreams } from "../../src/http/core/sse.ts";
import { frame } from "../../src/http/core/sse-chunk.ts";
import { ChangeNotes } from "../../src/runs/change-notes.ts";
import { DeadLetters } from "../../src/runs/dead-letters.ts";
import { EventFeed } from "../../src/runs/feed.ts";
import { HumanAnswers } from "../../src/runs/human-answers.ts";
import { ConfigurationSecrets } from "../../src/security/configuration.ts";
import { SecretKey } from "../../src/security/secret-key.ts";
import type { RegistryParts } from "../../src/services/registry.ts";
import { Services } from "../../src/services/services.ts";
import { openPostgres } from "../../src/store/postgres/database.ts";
import { PostgresJournal } from "../../src/store/postgres/journal.ts";
import { nodeReads, PostgresNodes } from "../../src/store/postgres/nodes.ts";
import { sqlDeadLetterRecords } from "../../src/store/sql/dead-letters.ts";
import { sqlGatewayRecords } from "../../src/store/sql/gateway.ts";
import { sqlJobHeads } from "../../src/store/sql/heads.ts";
import { sqlHumanRequestRecords } from "../../src/store/sql/human-requests.ts";
import { sqlJobRecords } from "../../src/store/sql/jobs.ts";
import { sqlOperationRecords } from "../../src/store/sql/operations.ts";
import { job, operation, run } from "../support/gateway-samples.ts";
import { executor, graph, sensor } from "../support/graphs.ts";
import { hasOpenssl, makeAuthority } from "../support/node-certificates.ts";
import { MESSAGE_BYTES_MAX, peersWith, SECRET } from "../support/nodes.ts";
import { returnPostgres, takePostgres } from "../support/postgres.ts";
import { registryOf } from "../support/services.ts";
import { until } from "../support/until.ts";

const secrets = new ConfigurationSecrets(new SecretKey(Buffer.alloc(32, 7)));

function configOf(url: string, env: Readonly<Record<string, string>> = {}) {
  const home = { SVC_HOME: "/nowhere", SVC_DATABASE_URL: url, SVC_NODE_PORT: "0" };
  const loaded = loadConfig({ ...home, ...env }, "up");
  if (loaded.kind === "invalid") throw new Error(loaded.problems.join("\n"));
  return loaded.config;
}

/** None ends by itself in a test. */
const LEASE_MS = 600_000;
const silent = { warn: () => {}, error: () => {} };

/** One cluster: a database. */
async function cluster() {
  const url = await takePostgres();
  await using undo = new AsyncDisposableStack();
  undo.defer(() => returnPostgres(url));
  const kept = undo.move();

  async function startNode(name: string) {
    const owner = `${name}/${systemRandomness.id()}`;
    const database = await openPostgres(url);
    const journal = new PostgresJournal(database);
    const nodes = new PostgresNodes(database, LEASE_MS, () => null);
    const feed = new EventFeed();
    const starts: TaskStart[] = [];
    const report: RegistryParts["report"] = (jobId, change) => engine.serviceChanged(jobId, change);
    const serviceRegistry = registryOf(name, { node: { name, host: "127.0.0.1" }, report });
    const services = new Services({
      own: serviceRegistry,
      nodeName: name,
      nodeId: `node_${name}`,
      outOfService: async () => new Set(),
      clock: systemClock,
    });
    const engine = new Engine({
      owner,
      clock: systemClock,
      randomness: systemRandomness,
      journal,
      runner: { start: (task) => void starts.push(task), stop: () => {}, send: () => {}, respond: () => {} },
      slots: new PoolSlots({ default: 4 }, systemRandomness.id, () => 0),
      feed,
      schemaProblem: () => null,
      services: serviceRegistry,
      log: silent,
    });
    const jobs = sqlJobRecords(database);
    const gatewayRecords = sqlGatewayRecords(database, systemClock.soon);
    const own = kept.use(new AsyncDisposableStack());
    const peers = peersWith();
    own.defer(() => peers.close());
    const { control, address } = await openNodeDoor(
      configOf(url),
      {
        engine,
        feed,
        heads: sqlJobHeads(database),
        jobs,
        gatewayRecords,
        changeNotes: new ChangeNotes(feed),
        operationRecords: sqlOperationRecords(database),
        serviceRegistry,
        services,
        files: null,
        owner: () => owner,
        nodeId: name,
        reconciler: { reconcile: async () => ({ differences: [], hasMore: false }) },
        launch: () => {},
        removeVolume: async () => {},
        nodes: nodeReads(database),
        peers,
        welcomes: {
          expected: { find: async () => null, failed: async () => {}, use: async () => false },
          shared: { databaseUrl: "postgres://host/name", keys: [] },
        },
        host: { accept: (connection) => connection.close() },
        credentials: SECRET,
        messageBytesMax: MESSAGE_BYTES_MAX,
        log: silent,
      },
      own,
    );
    const entry = { nodeId: name, owner, name, address, version: "1", labels: {}, pools: {}, totals: {} };
    assert.ok("outage" in (await nodes.register(entry, LEASE_MS, [])), "it has its lease");
    const stopping = new AbortController();
    const streams = new EventStreams({ feed, stopping: stopping.signal, log: silent });
    const requests = sqlHumanRequestRecords(database);
    const letters = sqlDeadLetterRecords(database);
    let isOver = false;
    const kill = async () => {
      if (isOver) return;
      isOver = true;
      engine.giveUp("It was killed.");
      serviceRegistry.stop();
      await own.disposeAsync();
      await nodes.leave(entry);
      await nodes.close();
    };
    kept.defer(async () => {
      stopping.abort();
      await kill();
      engine.stop("The test is over.");
      await journal.close();
      await database.close();
    });
    return {
      owner,
      engine,
      feed,
      control,
      services,
      jobs,
      gatewayRecords,
      requests,
      letters,
      answers: new HumanAnswers({ records: requests, jobs, control, dataProblems: () => [] }),
      deadLetters: new DeadLetters({ records: letters, jobs, control, secrets }),
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
    ...defaultTerms,
  });
  return jobId;
}

/** What a lost node has left is taken over at once. */
const AT_ONCE = { recovery_mode: "cluster_recover" };

const oneCommand = () => graph("one", [executor("work", ["true"])], [], { policies: AT_ONCE });

/** Waits for people, and for a retry, and for messages. */
function inNeed() {
  const nodes = [sensor("hold"), executor("asker", ["true"]), executor("failing", ["true"])];
  const more = {
    entrypoints: ["hold", "asker", "failing"],
    policies: { ...AT_ONCE, failure_policy: "continue" },
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

/** It may fall to another node, which does not look for it: then it is anybody's a moment later. */
const takenOver = ({ engine }: Node, jobId: string) =>
  until("the job is taken over", async () => {
    await engine.recover();
    return engine.holds(jobId);
  });

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
    await takenOver(c, jobId);
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

describe("what ends without a job", () => {
  test("a run that another node ends before its launch is told to have ended", async () => {
    await using one = await cluster();
    const [a, b] = [await one.startNode("node_a"), await one.startNode("node_b")];
    const waiting = run(1, "job_0001");
    const told: { lines: readonly string[]; isEnd: boolean }[] = [];
    b.feed.subscribe(waiting.runtimeJobId, ({ lines }, isEnd) => void told.push({ lines, isEnd }));
    await a.gatewayRecords.write(async (writes) => {
      await writes.insertJob(job(1));
      assert.equal(await writes.insertRun(waiting), true);
      await writes.endUnlaunched(waiting.runId, { status: "cancelled", failureJson: null }, 9);
    });
    await until("the end", () => told.length > 0);
    assert.deepEqual(
      told.map(({ lines, isEnd }) => [lines.map(eventType), isEnd]),
      [[["job_cancelled"], true]],
    );
  });

  test("an operation of another node is followed to its end", async () => {
    await using one = await cluster();
    const [a, b] = [await one.startNode("node_a"), await one.startNode("node_b")];
    const asked = operation(1);
    const told: string[] = [];
    await a.gatewayRecords.write((writes) => writes.operations.insert(asked, "first"));
    b.feed.subscribe(asked.operationId, ({ lines }) => void told.push(...lines));
    await until("the first event", () => told.length > 0);
    const ended = { ...asked, eventSeq: 2, status: "completed" as const };
    await a.gatewayRecords.write((writes) => writes.operations.save(ended, "second"));
    await until("the second event", () => told.length > 1);
    assert.deepEqual(told, ["first", "second"]);
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
    await takenOver(c, jobId);
    assert.deepEqual(await b.control.resume(jobId), { kind: "done", status: "running" });
  });
});

describe("a service of a job on another node", () => {
  const named = (name: string) => ({ name, tags: [], node: null });

  test("is found at every node, is gone with its node, and is there again once its job was taken over", async () => {
    await using one = await cluster();
    const [a, b] = [await one.startNode("node_a"), await one.startNode("node_b")];
    const manifest = graph("offering", [sensor("hold")], [], {
      policies: AT_ONCE,
      services: [{ name: "index" }],
    });
    const jobId = await submitted(a, manifest);
    const found = await b.services.resolve(named("index"));
    assert.ok(found.kind === "resolved");
    assert.deepEqual([found.service.jobId, found.service.node], [jobId, "node_a"]);
    await a.kill();
    await until("it is gone", async () => (await b.services.resolve(named("index"))).kind === "unknown");
    await b.engine.recover();
    const again = await b.services.resolve(named("index"));
    assert.ok(again.kind === "resolved");
    assert.deepEqual([again.service.serviceId, again.service.node], [found.service.serviceId, "node_b"]);
  });
});

describe("a port for nodes that cannot be had stops the start, and says what to set", () => {
  test("because something listens there", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as { port: number };
    await assert.rejects(doorWith({ SVC_NODE_PORT: String(port) }), {
      name: "StartFailed",
      message: /SVC_NODE_PORT/,
    });
    taken.close();
  });

  test("because the key is another certificate's", {
    skip: !hasOpenssl() && "there is no openssl",
  }, async () => {
    using authority = makeAuthority();
    const [one, other] = [authority.files("IP:127.0.0.1"), authority.files("IP:127.0.0.1")];
    const files = {
      SVC_NODE_TLS_CERT: one.cert,
      SVC_NODE_TLS_KEY: other.key,
      SVC_NODE_TLS_CA: one.ca,
    };
    await assert.rejects(doorWith(files), { name: "StartFailed", message: /SVC_NODE_TLS_KEY/ });
    await doorWith({ ...files, SVC_NODE_TLS_KEY: one.key });
  });
});

/** A door of a node that has nothing, opened and closed. */
async function doorWith(env: Readonly<Record<string, string>>): Promise<void> {
  await using own = new AsyncDisposableStack();
  const nothing = {} as NodeDoorParts;
  const services = new Services({
    own: registryOf("one"),
    nodeName: "one",
    nodeId: "node_one",
    outOfService: async () => new Set(),
    clock: systemClock,
  });
  const config = configOf("postgres://h/d", env);
  const credentials = credentialsOf(config, "07".repeat(32));
  const parts = {
    ...nothing,
    feed: new EventFeed(),
    services,
    credentials,
    messageBytesMax: MESSAGE_BYTES_MAX,
  };
  await openNodeDoor(config, { ...parts, log: silent }, own);
}
