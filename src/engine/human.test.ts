// What workers ask people, at exact moments: who is asked, what an answer becomes, and what a pause, a retry, a
// restart and the end of a task do to both. The random moments are the simulation's (test/simulation).

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineHarness, failed, interrupted, succeeded } from "../../test/support/engine-harness.ts";
import { executor, graph } from "../../test/support/graphs.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import { limits } from "./limits.ts";
import { noActions } from "./task-port.ts";

const REQUESTED = "human_input_requested";

const one = (config: JsonObject = {}, more: JsonObject = {}) =>
  graph("g", [executor("worker", ["true"], config)], [], more);
const companion = () => one({ lifecycle: "long_lived" });

async function ask(h: EngineHarness, payload: JsonValue, agentId = "worker"): Promise<void> {
  h.engine.taskEvents(h.started(agentId).ref, [{ type: REQUESTED, payload }]);
  await h.advance(limits.lazyFlushMs);
}

const reply = (requestId: string, decision = "yes", more: { comment?: string; dataJson?: string } = {}) => ({
  requestId,
  decision,
  comment: more.comment ?? null,
  dataJson: more.dataJson ?? null,
  principal: "ada",
});

const answer = (h: EngineHarness, jobId: string, requestId: string, decision = "yes") =>
  h.do(h.engine.answerHuman(jobId, reply(requestId, decision)));

const requests = (h: EngineHarness, jobId: string) => [...h.job(jobId).humanRequests.values()];

/** What was written to files of running attempts, without its time. */
const written = (h: EngineHarness): JsonObject[] =>
  h.responses.map(({ ref, line }) => {
    const { responded_at: at, ...body } = JSON.parse(line) as JsonObject;
    assert.match(String(at), /^2026-01-01T/);
    return { task: ref.taskSeq, attempt: ref.attempt, ...body };
  });

const agentStatus = (h: EngineHarness, jobId: string) => h.job(jobId).agents.get(0)?.status;

describe("a question", () => {
  test("becomes an open request, and the event says what it is called and how long it waits", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    const payload = { prompt: "Ship it?", allowed_decisions: ["yes", "no"], timeout_seconds: 60, note: "x" };
    await ask(h, payload);
    const [event] = h.events(jobId, REQUESTED);
    const expiresAt = new Date(h.nowMs - limits.lazyFlushMs + 60_000).toISOString();
    const [request, ...others] = requests(h, jobId);
    assert.equal(others.length, 0);
    assert.deepEqual(event?.payload, { ...payload, request_id: request?.requestId, expires_at: expiresAt });
    assert.equal(request?.requestId, `req_${request?.eventSeq}`);
    assert.equal(h.events(jobId)[request!.eventSeq - 1]?.type, REQUESTED);
    assert.deepEqual(request, {
      requestId: request?.requestId,
      eventSeq: request?.eventSeq,
      agentId: "worker",
      taskSeq: 1,
      prompt: "Ship it?",
      allowedDecisions: ["yes", "no"],
      dataSchemaJson: null,
      defaultAction: null,
      status: "pending",
      createdAtMs: h.nowMs - limits.lazyFlushMs,
      expiresAtMs: h.nowMs - limits.lazyFlushMs + 60_000,
      response: null,
    });
    assert.equal(h.job(jobId).progress.humanPending, 1);
    assert.equal(agentStatus(h, jobId), "waiting");
  });

  const lenient: [string, JsonValue, JsonObject][] = [
    ["no object at all", "Ship it?", { prompt: "" }],
    [
      "decisions that are no texts",
      { allowed_decisions: ["a", 1, null, "", "b"] },
      { allowedDecisions: ["a", "b"] },
    ],
    ["decisions that are no list", { allowed_decisions: "yes" }, { allowedDecisions: [] }],
    ["a prompt that is no text", { prompt: { a: 1 } }, { prompt: "" }],
    [
      "half a character at the prompt's end",
      { prompt: `${"x".repeat(4_095)}😀` },
      { prompt: `${"x".repeat(4_095)}\ufffd` },
    ],
    ["a prompt beyond 4 KiB", { prompt: "x".repeat(5_000) }, { prompt: "x".repeat(4_096) }],
    ["a default that is no text", { default_action: 1 }, { defaultAction: null }],
    ["a time that is no number", { timeout_seconds: "5" }, { expiresAtMs: null }],
    ["a time that is over", { timeout_seconds: -5 }, { expiresAtMs: null }],
    ["a time beyond all dates", { timeout_seconds: 1e300 }, { expiresAtMs: null }],
    ["a name for a path", { request_id: "a b/../c" }, {}],
    ["a schema that is no object", { data_schema: "integer" }, { dataSchemaJson: null }],
    ["a schema that is none", { data_schema: { type: "hostile" } }, { dataSchemaJson: null }],
    [
      "a schema beyond 8 KiB",
      { data_schema: { title: "x".repeat(limits.humanDataSchemaCharsMax) } },
      { dataSchemaJson: null },
    ],
  ];
  for (const [what, payload, expected] of lenient) {
    test(`with ${what} is asked all the same`, async () => {
      const h = new EngineHarness();
      const jobId = await h.submit(one());
      await ask(h, payload);
      const [request] = requests(h, jobId);
      assert.match(request?.requestId ?? "", /^req_\d+$/);
      assert.deepEqual({ ...request, ...expected }, request);
    });
  }

  test("says why a schema cannot be used, and does not show it as if it held", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "ship", data_schema: { type: "hostile" } });
    assert.equal(h.events(jobId, REQUESTED)[0]?.payload.data_schema, null);
    const said = String(h.events(jobId, "log")[0]?.payload.message);
    assert.match(
      said,
      /^The data_schema of ship is no JSON Schema that can be used: .* Any data is taken\.$/s,
    );
  });

  test("whose payload is too large to be shown still says what it asks", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "big", prompt: "Ship it?", extra: "x".repeat(limits.eventPayloadCharsMax) });
    const [event] = h.events(jobId, REQUESTED);
    assert.deepEqual(event?.payload, {
      prompt: "Ship it?",
      allowed_decisions: [],
      default_action: null,
      request_id: "big",
      expires_at: null,
    });
  });

  test("that another agent's request is called already is asked under a name of its own", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(
      graph("g", [executor("worker", ["true"]), executor("other", ["true"])], [], {
        entrypoints: ["worker", "other"],
      }),
    );
    await ask(h, { request_id: "ship", prompt: "A?" });
    await ask(h, { request_id: "ship", prompt: "B?" }, "other");
    const [first, second] = requests(h, jobId);
    assert.equal(first?.requestId, "ship");
    assert.equal(second?.requestId, `req_${second?.eventSeq}`);
    assert.match(
      String(h.events(jobId, "log")[0]?.payload.message),
      /"ship" names a request of another agent/,
    );
    await answer(h, jobId, second!.requestId, "B!");
    assert.deepEqual(written(h), [
      {
        task: 2,
        attempt: 1,
        request_id: second?.requestId,
        status: "answered",
        decision: "B!",
        principal: "ada",
      },
    ]);
  });

  test("beyond those that may be open stays an event, and a log says why", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    const many = Array.from({ length: limits.humanRequestsOpenMax + 2 }, (_, n) => ({
      type: REQUESTED,
      payload: { prompt: `${n}?` },
    }));
    h.engine.taskEvents(h.started("worker").ref, many);
    await h.advance(limits.lazyFlushMs);
    assert.equal(requests(h, jobId).length, limits.humanRequestsOpenMax);
    assert.equal(h.job(jobId).progress.humanPending, limits.humanRequestsOpenMax);
    assert.equal(h.events(jobId, REQUESTED).length, many.length);
    const logs = () => h.events(jobId, "log").map(({ payload }) => payload.message);
    assert.equal(logs().length, 1);
    assert.match(String(logs()[0]), /1000 requests of this run wait for a person already/);
    // One is answered, one can be asked, and then it is too much once more.
    await answer(h, jobId, requests(h, jobId)[0]!.requestId);
    await ask(h, { request_id: "asked" });
    await ask(h, { request_id: "not asked" });
    assert.equal(requests(h, jobId).at(-1)?.requestId, "asked");
    assert.equal(logs().length, 2);
  });
});

describe("an answer", () => {
  test("goes into the file of the attempt that asked, once it is on disk", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "ship" });
    h.journalFaults.push("unavailable");
    const answering = h.engine.answerHuman(
      jobId,
      reply("ship", "yes", { comment: "fine", dataJson: '{"n":1}' }),
    );
    answering.catch(() => {});
    await h.advance(40);
    assert.deepEqual(h.responses, []);
    await h.advance(60);
    await assert.rejects(answering, /takes effect as soon as the store can commit/);
    assert.deepEqual(written(h), [
      {
        task: 1,
        attempt: 1,
        request_id: "ship",
        status: "answered",
        decision: "yes",
        comment: "fine",
        data: { n: 1 },
        principal: "ada",
      },
    ]);
    const [event] = h.events(jobId, "human_input_answered");
    assert.equal(event?.agent_id, "worker");
    assert.deepEqual(event?.payload, { request_id: "ship", decision: "yes", principal: "ada" });
    assert.equal(h.job(jobId).progress.humanPending, 0);
    assert.equal(agentStatus(h, jobId), "running");
    await h.end("worker");
    assert.equal(h.status(jobId), "completed");
    assert.equal(h.processed(jobId).worker, 1);
  });

  test("is the first one: what comes later learns of it and changes nothing", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "ship" });
    const [first, second] = await h.do(
      Promise.all([
        h.engine.answerHuman(jobId, reply("ship", "yes")),
        h.engine.answerHuman(jobId, reply("ship", "no")),
      ]),
    );
    assert.equal(first.kind, "answered");
    assert.equal(second.kind, "already_closed");
    assert.deepEqual(second.kind === "already_closed" && second.request, requests(h, jobId)[0]);
    assert.equal(requests(h, jobId)[0]?.response?.decision, "yes");
    assert.equal(written(h).length, 1);
    assert.equal(h.events(jobId, "human_input_answered").length, 1);
  });

  test("to what nobody asked, and to a job that is over, changes nothing", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "ship" });
    assert.deepEqual(await answer(h, jobId, "shop"), { kind: "unknown_request" });
    assert.deepEqual(await answer(h, "g-nobody", "ship"), { kind: "not_open" });
    await h.do(h.engine.cancel(jobId));
    assert.deepEqual(await answer(h, jobId, "ship"), { kind: "not_open" });
    assert.equal(requests(h, jobId)[0]?.status, "pending");
    assert.deepEqual(h.responses, []);
  });

  test("whose data is no JSON is the caller's mistake, and the request stays open", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "ship" });
    await assert.rejects(h.engine.answerHuman(jobId, reply("ship", "yes", { dataJson: "{" })), SyntaxError);
    assert.equal((await answer(h, jobId, "ship")).kind, "answered");
  });

  test("to what the result asked is a message to the agent, and the job waits for it", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    const events = [{ type: REQUESTED, payload: { request_id: "ship" } }];
    await h.end("worker", succeeded({ events }));
    assert.equal(h.status(jobId), "running");
    assert.equal(agentStatus(h, jobId), "waiting");
    assert.equal(requests(h, jobId)[0]?.taskSeq, null);
    await answer(h, jobId, "ship");
    const { envelope } = h.started("worker");
    assert.equal(envelope.type, "human_response");
    assert.deepEqual(envelope.body, {
      request_id: "ship",
      status: "answered",
      decision: "yes",
      principal: "ada",
      responded_at: new Date(h.nowMs).toISOString(),
    });
    assert.deepEqual(h.responses, []);
    assert.equal(h.status(jobId), "running");
    await h.end("worker");
    assert.equal(h.status(jobId), "completed");
  });

  test("is a message also when the worker asks for one while it runs", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "ship", reply: "message" });
    await answer(h, jobId, "ship");
    assert.deepEqual(h.responses, []);
    await h.end("worker");
    assert.equal(h.started("worker").envelope.type, "human_response");
  });

  test("to a command that has ended without waiting for it is a message", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "ship" });
    await h.end("worker");
    assert.equal(h.status(jobId), "running");
    assert.equal(requests(h, jobId)[0]?.taskSeq, null);
    await answer(h, jobId, "ship");
    assert.equal(h.started("worker").envelope.type, "human_response");
    await h.end("worker");
    assert.equal(h.status(jobId), "completed");
  });

  test("to a long-lived command comes on its stdin and in its file", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(
      graph("g", [executor("worker", ["true"], { lifecycle: "long_lived" })], [], { type: "service" }),
    );
    await ask(h, { request_id: "a" });
    const actions = { ...noActions, events: [{ type: REQUESTED, payload: { request_id: "b" } }] };
    h.engine.taskActions(h.started("worker").ref, actions);
    await h.advance();
    await answer(h, jobId, "a");
    await answer(h, jobId, "b", "no");
    const answers = h.sends.map(({ envelope }) => envelope).filter(({ type }) => type === "human_response");
    assert.deepEqual(
      answers.map(({ body }) => [(body as JsonObject).request_id, (body as JsonObject).decision]),
      [
        ["a", "yes"],
        ["b", "no"],
      ],
    );
    assert.deepEqual(
      written(h).map(({ request_id }) => request_id),
      ["a", "b"],
    );
  });

  test("to a companion does not hold its job open; a companion's exit leaves its questions to nobody", async () => {
    const h = new EngineHarness();
    const ended = await h.submit(companion());
    assert.equal(h.status(ended), "completed");
    const jobId = await h.submit(
      graph(
        "g",
        [executor("worker", ["true"], { lifecycle: "long_lived" }), executor("other", ["true"])],
        [],
        {
          entrypoints: ["other"],
        },
      ),
    );
    await ask(h, { request_id: "ship" });
    await h.end("worker", succeeded());
    assert.equal(h.status(jobId), "running");
    assert.equal((await answer(h, jobId, "ship")).kind, "answered");
    assert.deepEqual(
      h.job(jobId).deadLetters.map(({ reason, message }) => [reason, message.type]),
      [["target_gone", "human_response"]],
    );
    await h.end("other");
    assert.equal(h.status(jobId), "completed");
  });
});

describe("time", () => {
  test("takes the default action when it is over, and hands it over like an answer", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "ship", timeout_seconds: 60, default_action: "no" });
    await h.advance(59_000);
    assert.deepEqual(h.responses, []);
    await h.advance(1_000);
    assert.deepEqual(written(h), [
      { task: 1, attempt: 1, request_id: "ship", status: "timed_out", decision: "no", principal: null },
    ]);
    const [event] = h.events(jobId, "human_input_timed_out");
    assert.deepEqual(event?.payload, { request_id: "ship", decision: "no" });
    assert.equal(requests(h, jobId)[0]?.status, "timed_out");
    assert.equal((await answer(h, jobId, "ship")).kind, "already_closed");
  });

  test("without a default action decides timed_out", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "ship", timeout_seconds: 0.5, reply: "message" });
    await h.end("worker");
    await h.advance(500);
    assert.deepEqual((h.started("worker").envelope.body as JsonObject).decision, "timed_out");
    await h.end("worker");
    assert.equal(h.status(jobId), "completed");
  });

  test("that nobody waits for any more is forgotten", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "ship", timeout_seconds: 60 });
    await answer(h, jobId, "ship");
    const events = h.events(jobId).length;
    await h.advance(60_000);
    assert.equal(h.events(jobId).length, events);
  });

  test("is up with an answer in the same moment: whichever comes first stands", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "ship", timeout_seconds: 1 });
    await answer(h, jobId, "ship");
    await h.advance(2_000);
    assert.equal(requests(h, jobId)[0]?.status, "answered");
    assert.equal(h.events(jobId, "human_input_timed_out").length, 0);
  });

  test("runs on while the job is paused, but is over only when the job goes on", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "a", timeout_seconds: 10 });
    await ask(h, { request_id: "b", timeout_seconds: 10 });
    await h.do(h.engine.pause(jobId));
    await h.advance(60_000);
    assert.equal(h.job(jobId).progress.humanPending, 2);
    // Overdue, and still a person's to answer: the running command hears of it at once.
    assert.equal((await answer(h, jobId, "a")).kind, "answered");
    assert.deepEqual(
      written(h).map(({ request_id }) => request_id),
      ["a"],
    );
    await h.do(h.engine.resume(jobId));
    assert.deepEqual(
      requests(h, jobId).map(({ status }) => status),
      ["answered", "timed_out"],
    );
  });
});

describe("an attempt that asks again", () => {
  const retrying = { max_attempts: 3, retry_backoff_ms: 100 };

  test("by the same name asks nobody twice, and gets the answer that was to be given to the one before", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one(retrying));
    await ask(h, { request_id: "ship", timeout_seconds: 60 });
    await h.end("worker", failed());
    await h.advance(200);
    await ask(h, { request_id: "ship", timeout_seconds: 60 });
    assert.equal(requests(h, jobId).length, 1);
    assert.equal(h.events(jobId, REQUESTED)[1]?.payload.repeated, true);
    assert.equal(
      h.events(jobId, REQUESTED)[1]?.payload.expires_at,
      h.events(jobId, REQUESTED)[0]?.payload.expires_at,
    );
    await answer(h, jobId, "ship");
    assert.deepEqual(
      written(h).map(({ attempt }) => attempt),
      [2],
    );
  });

  test("finds in its file what was answered meanwhile, and nothing twice", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one(retrying));
    await ask(h, { request_id: "a" });
    await ask(h, { request_id: "b" });
    await answer(h, jobId, "a");
    await h.end("worker", failed());
    await answer(h, jobId, "b");
    await h.advance(200);
    const start = h.started("worker");
    assert.equal(start.ref.attempt, 2);
    assert.deepEqual(
      start.humanResponses.map((line) => (JSON.parse(line) as JsonObject).request_id),
      ["a", "b"],
    );
    const before = h.responses.length;
    await ask(h, { request_id: "a" });
    await ask(h, { request_id: "b" });
    assert.equal(h.responses.length, before);
  });

  test("without a name is recognised by its words; one that asks twice at once means two questions", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one(retrying));
    await ask(h, { prompt: "More?" });
    await ask(h, { prompt: "More?" });
    assert.equal(requests(h, jobId).length, 2);
    await answer(h, jobId, requests(h, jobId)[0]!.requestId);
    await h.end("worker", failed());
    await h.advance(200);
    await ask(h, { prompt: "More?" });
    await ask(h, { prompt: "More?" });
    assert.equal(requests(h, jobId).length, 2);
    await ask(h, { prompt: "More?" });
    await ask(h, { prompt: "Less?" });
    assert.equal(requests(h, jobId).length, 4);
  });

  test("for another message is given the answer that the name has already", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one({}, { initial_inputs: { worker: [1, 2] } }));
    await ask(h, { request_id: "ship" });
    await answer(h, jobId, "ship");
    await h.end("worker");
    assert.deepEqual(h.started("worker").humanResponses, []);
    await ask(h, { request_id: "ship" });
    assert.deepEqual(
      written(h).map(({ task }) => task),
      [1, 2],
    );
    // And once more is not twice.
    await ask(h, { request_id: "ship" });
    assert.equal(h.responses.length, 2);
  });

  test("in its result, for the answer in its hand, is not given it for ever", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    const asking = succeeded({ events: [{ type: REQUESTED, payload: { request_id: "ship" } }] });
    await h.end("worker", asking);
    await answer(h, jobId, "ship");
    await h.end("worker", asking);
    assert.equal(h.status(jobId), "completed");
    assert.equal(h.processed(jobId).worker, 2);
  });
});

describe("a restart", () => {
  test("keeps what is open: it is answered into the file of the next attempt", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { request_id: "ship", timeout_seconds: 600 });
    await h.restart();
    assert.equal(h.started("worker").ref.attempt, 2);
    assert.equal(h.job(jobId).progress.humanPending, 1);
    await ask(h, { request_id: "ship", timeout_seconds: 600 });
    assert.equal(requests(h, jobId).length, 1);
    await answer(h, jobId, "ship");
    assert.deepEqual(
      written(h).map(({ attempt, request_id }) => [attempt, request_id]),
      [[2, "ship"]],
    );
    await h.end("worker");
    assert.equal(h.status(jobId), "completed");
  });

  test("sends nobody an answer twice that waits for its agent already", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    const question = { request_id: "ship", reply: "message" };
    await ask(h, question);
    await answer(h, jobId, "ship");
    await h.restart();
    assert.equal(h.started("worker").envelope.type, "init");
    await ask(h, question);
    await ask(h, question);
    await h.end("worker");
    assert.equal(h.started("worker").envelope.type, "human_response");
    await h.end("worker");
    assert.equal(h.status(jobId), "completed");
    assert.equal(h.processed(jobId).worker, 2);
  });

  test("keeps what was answered for the task that has not ended", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await ask(h, { prompt: "Ship it?" });
    const { requestId } = requests(h, jobId)[0]!;
    await answer(h, jobId, requestId);
    await h.restart();
    assert.deepEqual(
      h.started("worker").humanResponses.map((line) => (JSON.parse(line) as JsonObject).request_id),
      [requestId],
    );
    await ask(h, { prompt: "Ship it?" });
    assert.equal(requests(h, jobId).length, 1);
    assert.equal((await answer(h, jobId, requestId)).kind, "already_closed");
  });

  test("sets the time that is left, and keeps a job that waits for a message", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    await h.end(
      "worker",
      succeeded({ events: [{ type: REQUESTED, payload: { request_id: "ship", timeout_seconds: 60 } }] }),
    );
    await h.advance(30_000);
    await h.restart();
    assert.equal(h.status(jobId), "running");
    assert.equal(agentStatus(h, jobId), "waiting");
    await h.advance(29_000);
    assert.equal(h.job(jobId).progress.humanPending, 1);
    await h.advance(1_000);
    assert.equal((h.started("worker").envelope.body as JsonObject).status, "timed_out");
  });

  test("of a long-lived command that asks again hands it the answer on its stdin once more", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one({ lifecycle: "long_lived" }, { type: "service" }));
    await ask(h, { request_id: "ship" });
    await answer(h, jobId, "ship");
    await h.restart();
    assert.equal(h.started("worker").humanResponses.length, 1);
    const before = h.sends.length;
    await ask(h, { request_id: "ship" });
    await ask(h, { request_id: "ship" });
    assert.deepEqual(
      h.sends.slice(before).map(({ ref, envelope }) => [ref.attempt, envelope.type]),
      [[2, "human_response"]],
    );
    assert.equal(h.responses.length, 1);
  });

  test("that stops in the middle hands nothing over twice: what is interrupted asks again", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one({ max_attempts: 2 }));
    await ask(h, { request_id: "ship" });
    await h.end("worker", interrupted);
    const start = h.started("worker");
    assert.equal(start.ref.attempt, 2);
    await answer(h, jobId, "ship");
    assert.deepEqual(
      written(h).map(({ attempt }) => attempt),
      [2],
    );
  });
});

describe("memory", () => {
  test("is bounded by what was asked and answered, the decisions that were allowed included", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    const allowed_decisions = Array.from(
      { length: limits.humanDecisionsMax },
      (_, n) => `${n} ${"x".repeat(190)}`,
    );
    const chars = allowed_decisions.join("").length;
    const count = Math.floor(limits.humanClosedCharsMax / chars) + 1;
    const names = Array.from({ length: count }, (_, n) => `r${n}`);
    const events = names.map((request_id) => ({
      type: REQUESTED,
      payload: { request_id, allowed_decisions },
    }));
    h.engine.taskEvents(h.started("worker").ref, events);
    await h.do(Promise.all(names.map((name) => h.engine.answerHuman(jobId, reply(name)))));
    assert.deepEqual(await answer(h, jobId, "r0"), { kind: "unknown_request" });
    assert.equal((await answer(h, jobId, "r1")).kind, "already_closed");
  });

  test("forgets the oldest closed requests; a name that is forgotten is asked afresh", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one());
    const count = limits.humanClosedKeptMax + 1;
    for (let from = 0; from < count; from += 1_000) {
      const names = Array.from({ length: Math.min(1_000, count - from) }, (_, n) => `r${from + n}`);
      const events = names.map((name) => ({ type: REQUESTED, payload: { request_id: name } }));
      h.engine.taskEvents(h.started("worker").ref, events);
      await h.do(Promise.all(names.map((name) => h.engine.answerHuman(jobId, reply(name)))));
    }
    assert.deepEqual(await answer(h, jobId, "r0"), { kind: "unknown_request" });
    assert.equal((await answer(h, jobId, "r1")).kind, "already_closed");
    await ask(h, { request_id: "r0" });
    assert.equal((await answer(h, jobId, "r0", "again")).kind, "answered");
    const stored = requests(h, jobId).filter(({ requestId }) => requestId === "r0");
    assert.deepEqual(
      stored.map(({ response }) => response?.decision),
      ["again"],
    );
  });
});
