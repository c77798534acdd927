// Cancel, pause, resume, messages from outside. Sentences in quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { aggregator, executor, graph, router, sensor } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { ended, happens, path, run, submit } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { call, request, type SeenEvent } from "../support/runtime-api.ts";

let program: Program;
let gates: Gates;
before(async () => {
  gates = await makeGates();
  program = await startRuntimeHere({ env: { SVC_EXECUTOR_POOL_CAPACITIES: "default=4,one=1" } });
});
after(async () => {
  await program.stop();
  await gates.remove();
});

const post = (jobId: string, what: string, body?: unknown) =>
  request(program, "POST", path(jobId, `/${what}`), body);
const statusOf = async (jobId: string) =>
  ((await call(program, "GET", path(jobId))).job as JsonObject).status;
const waiting = (graphId: string) => graph(graphId, [sensor("s"), aggregator("all")], [["s", "all"]]);
const startedBy = (agentId: string) => (event: SeenEvent) =>
  event.type === "sandbox_job_started" && event.agent_id === agentId;

describe("POST /jobs/:job_id/cancel", () => {
  test('"200, object with status and job_id", and the job is cancelled', async () => {
    const jobId = await submit(program, waiting("cancel"));
    assert.deepEqual(await post(jobId, "cancel"), {
      status: 200,
      body: { status: "cancelled", job_id: jobId },
    });
    assert.equal(await statusOf(jobId), "cancelled");
    const { events } = await ended(program, jobId);
    assert.equal(events.at(-1)?.type, "job_cancelled");
  });

  test('"cancel ends running commands": the command and its children are really dead', async () => {
    const alive = gates.pipe("alive");
    const command = `exec 9>${alive}; sleep 600 & sleep 600 & echo up; wait`;
    const dead = gates.released(alive);
    const jobId = await submit(program, graph("killed", [executor("work", command)]));
    await happens(program, jobId, (event) => event.type === "log" && event.payload.message === "up");
    assert.equal((await post(jobId, "cancel")).status, 200);
    await dead;
    const { of, events } = await ended(program, jobId);
    assert.equal(of("executor_lease_released", "work").length, 1);
    assert.equal(events.at(-1)?.type, "job_cancelled");
    const after = await call(program, "GET", path(jobId));
    assert.deepEqual(after.sandboxes, []);
  });

  test("commands that wait for slots are never started", async () => {
    const gate = gates.pipe("holder");
    const holder = await submit(program, graph("holder", [executor("h", ["cat", gate], { pool: "one" })]));
    await happens(program, holder, startedBy("h"));
    const jobId = await submit(program, graph("queued", [executor("q", ["true"], { pool: "one" })]));
    await happens(program, jobId, "executor_lease_requested");
    await post(jobId, "cancel");
    await gates.open(gate);
    assert.equal((await ended(program, holder)).status, "completed");
    assert.deepEqual((await ended(program, jobId)).of("sandbox_job_started"), []);
  });

  test('"cancel of a terminal job: 400 {error} saying so", for each terminal status', async () => {
    const completed = (await run(program, graph("done", [router("r")]))).jobId;
    const failed = (await run(program, graph("bad", [executor("e", ["false"])]))).jobId;
    const cancelled = await submit(program, waiting("gone"));
    await post(cancelled, "cancel");
    for (const [jobId, status] of [
      [completed, "completed"],
      [failed, "failed"],
      [cancelled, "cancelled"],
    ] as const) {
      const before = (await call(program, "GET", path(jobId))).recent_events;
      const answer = await post(jobId, "cancel");
      assert.equal(answer.status, 400);
      assert.deepEqual(Object.keys(answer.body), ["error"]);
      assert.match(String(answer.body.error), new RegExp(`${jobId}.*already ${status}`));
      assert.deepEqual((await call(program, "GET", path(jobId))).recent_events, before);
    }
  });

  test("of many cancels at once exactly one is accepted, and there is one terminal event", async () => {
    const jobId = await submit(program, waiting("race"));
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(jobId, "cancel")));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [
      200,
      ...Array.from({ length: 19 }, () => 400),
    ]);
    assert.equal((await ended(program, jobId)).of("job_cancelled").length, 1);
  });

  test('"404 when the id does not exist", in the words of the spec', async () => {
    assert.deepEqual(await post("no-such-job", "cancel"), {
      status: 404,
      body: { error: "Job no-such-job was not found" },
    });
  });

  test("a paused job can be cancelled", async () => {
    const jobId = await submit(program, waiting("paused-cancel"));
    await post(jobId, "pause");
    assert.equal((await post(jobId, "cancel")).status, 200);
    assert.equal(await statusOf(jobId), "cancelled");
  });
});

describe("pause and resume", () => {
  test('"pause stops dispatch": a paused job takes no message until it is resumed', async () => {
    const jobId = await submit(program, waiting("hold"));
    assert.deepEqual(await post(jobId, "pause"), { status: 200, body: { status: "paused", job_id: jobId } });
    assert.equal((await post(jobId, "messages", { agent_id: "s", body: { n: 1 } })).status, 202);
    const agents = (await call(program, "GET", path(jobId))).agents as readonly JsonObject[];
    assert.equal(agents[0]?.mailbox_depth, 1);
    assert.equal(await statusOf(jobId), "paused");
    assert.deepEqual(await post(jobId, "resume"), {
      status: 200,
      body: { status: "running", job_id: jobId },
    });
    const { status, result, types } = await ended(program, jobId);
    assert.equal(status, "completed");
    assert.deepEqual(result, { messages: [{ n: 1 }], count: 1, last_message: { n: 1 } });
    const order = types();
    assert.ok(order.indexOf("job_paused") < order.indexOf("job_resumed"));
    assert.ok(order.indexOf("job_resumed") < order.indexOf("sensor_observed"));
  });

  test('"a task that is running is allowed to finish (its result waits)"', async () => {
    const gate = gates.pipe("pause");
    const nodes = [executor("first", ["cat", gate]), executor("second", ["true"])];
    const jobId = await submit(program, graph("finish", nodes, [["first", "second"]]));
    await happens(program, jobId, startedBy("first"));
    await post(jobId, "pause");
    await gates.open(gate);
    await happens(program, jobId, "executor_lease_released");
    const held = await call(program, "GET", path(jobId));
    assert.equal((held.job as JsonObject).status, "paused");
    const second = (held.agents as readonly JsonObject[])[1] ?? {};
    assert.equal(second.processed_messages, 0);
    assert.equal(second.mailbox_depth, 0);
    await post(jobId, "resume");
    const { status, types } = await ended(program, jobId);
    assert.equal(status, "completed");
    const order = types();
    assert.ok(order.indexOf("job_paused") < order.indexOf("sandbox_job_completed"));
    assert.ok(order.lastIndexOf("sandbox_job_started") > order.indexOf("job_resumed"));
  });

  test("a command that waits for slots is not started while its job is paused, though they become free", async () => {
    const gate = gates.pipe("free");
    const holder = await submit(program, graph("holds", [executor("h", ["cat", gate], { pool: "one" })]));
    await happens(program, holder, startedBy("h"));
    const jobId = await submit(program, graph("waits", [executor("q", ["true"], { pool: "one" })]));
    await happens(program, jobId, "executor_lease_requested");
    await post(jobId, "pause");
    await gates.open(gate);
    await ended(program, holder);
    const passer = await run(program, graph("passes", [executor("p", ["true"], { pool: "one" })]));
    assert.equal(passer.status, "completed");
    await post(jobId, "resume");
    const { types, status } = await ended(program, jobId);
    assert.equal(status, "completed");
    assert.ok(types().indexOf("sandbox_job_started") > types().indexOf("job_resumed"));
  });

  test("pausing twice and resuming what runs change nothing and answer 200", async () => {
    const jobId = await submit(program, waiting("twice"));
    assert.deepEqual((await post(jobId, "resume")).body, { status: "running", job_id: jobId });
    await post(jobId, "pause");
    assert.deepEqual((await post(jobId, "pause")).body, { status: "paused", job_id: jobId });
    await post(jobId, "cancel");
    const { of } = await ended(program, jobId);
    assert.equal(of("job_paused").length, 1);
    assert.equal(of("job_resumed").length, 0);
  });

  test("a job that has ended can be neither paused nor resumed: 400 {error}", async () => {
    const { jobId } = await run(program, graph("over", [router("r")]));
    for (const what of ["pause", "resume"]) {
      const { status, body } = await post(jobId, what);
      assert.equal(status, 400);
      assert.deepEqual(Object.keys(body), ["error"]);
      assert.match(String(body.error), /already completed/);
    }
  });

  test("a paused job is listed as paused, and as not terminal", async () => {
    const jobId = await submit(program, waiting("listed"));
    await post(jobId, "pause");
    const open = (await call(program, "GET", "/jobs?include_terminal=false")).data as readonly JsonObject[];
    assert.equal(open.find((job) => job.job_id === jobId)?.status, "paused");
  });
});

describe("POST /jobs/:job_id/messages", () => {
  test('"202 {message_id}": the body reaches the sensor, with its type and correlation id', async () => {
    const jobId = await submit(program, waiting("message"));
    const body = { agent_id: "s", type: "approval", body: { ok: true }, correlation_id: "order-7" };
    const { status, body: accepted } = await post(jobId, "messages", body);
    assert.equal(status, 202);
    assert.deepEqual(Object.keys(accepted), ["message_id"]);
    assert.match(String(accepted.message_id), /^msg_/);
    const { result, of } = await ended(program, jobId);
    assert.deepEqual(result.last_message, { ok: true });
    const received = of("agent_message_received", "s").map((event) => event.payload);
    assert.deepEqual(received.at(-1), {
      message_id: accepted.message_id ?? "",
      from: null,
      type: "approval",
    });
  });

  test("any agent can be sent a message, and any JSON is a body", async () => {
    const nodes = [sensor("s"), router("r"), aggregator("all", { complete_after: 4 })];
    const jobId = await submit(program, graph("any", nodes, [["r", "all"]]));
    for (const body of [null, 0, "", []]) {
      assert.equal((await post(jobId, "messages", { agent_id: "r", body })).status, 202);
    }
    assert.deepEqual((await ended(program, jobId)).result.messages, [null, 0, "", []]);
  });

  test('"404 for an unknown agent", which is named', async () => {
    const jobId = await submit(program, waiting("unknown-agent"));
    for (const agentId of ["nobody", "__proto__", "constructor", "toString"]) {
      const { status, body } = await post(jobId, "messages", { agent_id: agentId, body: 1 });
      assert.equal(status, 404, agentId);
      assert.deepEqual(Object.keys(body), ["error"]);
      assert.ok(String(body.error).includes(agentId));
    }
  });

  test('"400 for a terminal job", and 404 for one that does not exist', async () => {
    const { jobId } = await run(program, graph("ended", [router("r")]));
    const { status, body } = await post(jobId, "messages", { agent_id: "r", body: 1 });
    assert.equal(status, 400);
    assert.match(String(body.error), /already completed/);
    assert.deepEqual(await post("nope", "messages", { agent_id: "r", body: 1 }), {
      status: 404,
      body: { error: "Job nope was not found" },
    });
  });

  test("what is wrong with a message is named: 400, and nothing arrives", async () => {
    const jobId = await submit(program, waiting("wrong"));
    const bad: readonly [body: unknown, about: RegExp][] = [
      [undefined, /^Invalid or missing JSON payload$/],
      [[], /^Invalid or missing JSON payload$/],
      [{ body: 1 }, /agent_id/],
      [{ agent_id: 7, body: 1 }, /agent_id/],
      [{ agent_id: "s" }, /body is missing/],
      [{ agent_id: "s", body: 1, type: "" }, /type/],
      [{ agent_id: "s", body: 1, type: "x".repeat(1_000) }, /type/],
      [{ agent_id: "s", body: 1, correlation_id: 5 }, /correlation_id/],
      [{ agent_id: "s", body: 1, ttl_ms: -1 }, /ttl_ms/],
    ];
    for (const [body, about] of bad) {
      const answer = await post(jobId, "messages", body);
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.match(String(answer.body.error), about);
    }
    await post(jobId, "cancel");
    assert.deepEqual((await ended(program, jobId)).of("sensor_observed"), []);
  });

  test("messages are taken in the order in which they were acknowledged", async () => {
    const nodes = [sensor("s", { complete_after: 100 }), aggregator("all")];
    const jobId = await submit(program, graph("ordered", nodes, [["s", "all"]]));
    const numbers = Array.from({ length: 100 }, (_, i) => i);
    for (const n of numbers) await post(jobId, "messages", { agent_id: "s", body: n });
    assert.deepEqual((await ended(program, jobId)).result.messages, numbers);
  });
});
