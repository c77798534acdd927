// What is asked of another node, and its answer, arrive as they were sent.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyString, fc } from "../../../test/support/fast-check.ts";
import type { HumanRequest } from "../../engine/journal.ts";
import type { JsonValue } from "../../engine/json.ts";
import type { Envelope } from "../../engine/message.ts";
import {
  actionFromWire,
  actionToWire,
  type ControlAction,
  type ControlOutcome,
  outcomeFromWire,
  outcomeToWire,
} from "./control.ts";
import { ControlRequestSchema, ControlResponseSchema } from "./gen/svc/node/v1/node_pb.ts";

/** Half a surrogate pair is no text: it does not come through, here as in the database. */
const text = anyString().map((any) => any.toWellFormed());
const record = <Model>(model: { [K in keyof Model]: fc.Arbitrary<Model[K]> }) =>
  fc.record(model, { noNullPrototype: true });
const orNull = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });
const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as JsonValue);
const timeMs = fc.double({ min: 0, max: 8.64e15, noNaN: true });
const seq = fc.nat({ max: Number.MAX_SAFE_INTEGER });

const letter = {
  deadLetterId: text,
  agentId: orNull(text),
  message: record({ body: json, from: orNull(text) }) as unknown as fc.Arbitrary<Envelope>,
};

const action: fc.Arbitrary<ControlAction> = fc.oneof(
  record({ kind: fc.constantFrom("cancel", "pause", "resume") }),
  record({ kind: fc.constant("prioritize"), priority: fc.constantFrom("low", "normal", "high") }),
  record({
    kind: fc.constant("deliver" as const),
    message: record({
      agentId: text,
      type: text,
      body: json,
      correlationId: orNull(text),
      ttlMs: orNull(timeMs),
    }),
  }),
  record({
    kind: fc.constant("answer_human" as const),
    given: record({
      requestId: text,
      decision: text,
      comment: orNull(text),
      dataJson: orNull(json.map((value) => JSON.stringify(value))),
      principal: text,
    }),
  }),
  record({
    kind: fc.constant("retry_dead_letters" as const),
    letters: fc.array(fc.oneof(record(letter), record({ ...letter, changedBy: text }))),
  }),
);

const request: fc.Arbitrary<HumanRequest> = record({
  requestId: text,
  eventSeq: seq,
  agentId: text,
  taskSeq: orNull(seq),
  prompt: text,
  allowedDecisions: fc.array(text),
  dataSchemaJson: orNull(text),
  defaultAction: orNull(text),
  status: fc.constantFrom("pending", "answered", "timed_out"),
  createdAtMs: timeMs,
  expiresAtMs: orNull(timeMs),
  response: orNull(
    record({
      decision: text,
      comment: orNull(text),
      dataJson: orNull(text),
      principal: orNull(text),
      respondedAtMs: timeMs,
    }),
  ),
});

const outcome: fc.Arbitrary<ControlOutcome> = fc.oneof(
  record({ kind: fc.constantFrom("not_held", "unknown_agent", "unknown_request") }),
  record({ kind: fc.constant("changed" as const), status: text }),
  record({ kind: fc.constant("accepted" as const), messageId: text }),
  record({ kind: fc.constantFrom("answered", "already_closed"), request }),
  record({ kind: fc.constant("retried" as const), deadLetterIds: fc.array(text) }),
  record({ kind: fc.constant("unavailable" as const), message: text, mayRetry: fc.boolean() }),
  record({ kind: fc.constant("unwritable" as const), message: text }),
);

function askedOver(given: ControlAction): ControlAction {
  const message = create(ControlRequestSchema, { owner: "o", jobId: "j", action: actionToWire(given) });
  return actionFromWire(fromBinary(ControlRequestSchema, toBinary(ControlRequestSchema, message)).action);
}

function answeredOver(given: ControlOutcome): ControlOutcome {
  const message = create(ControlResponseSchema, { result: outcomeToWire(given) });
  return outcomeFromWire(fromBinary(ControlResponseSchema, toBinary(ControlResponseSchema, message)).result);
}

describe("control between nodes", () => {
  test("what is asked arrives as it was sent, empty texts and zeros included", () => {
    fc.assert(fc.property(action, (given) => assert.deepEqual(askedOver(given), given)));
  });

  test("its result arrives as it was sent", () => {
    fc.assert(fc.property(outcome, (given) => assert.deepEqual(answeredOver(given), given)));
  });

  test("what this version does not know is a problem of the wire, and no answer", () => {
    const unknown = { case: undefined };
    assert.throws(() => actionFromWire(unknown), { name: "WireProblem" });
    assert.throws(() => outcomeFromWire(unknown), { name: "WireProblem" });
    const asked = actionToWire({
      kind: "answer_human",
      given: { requestId: "", decision: "", comment: null, dataJson: "{", principal: "" },
    });
    assert.throws(() => actionFromWire(asked), { name: "WireProblem" });
    const odd = { ...fc.sample(request, 1)[0]!, status: "odd" as "pending" };
    const answered = outcomeToWire({ kind: "answered", request: odd });
    assert.throws(() => outcomeFromWire(answered), { name: "WireProblem" });
  });
});
