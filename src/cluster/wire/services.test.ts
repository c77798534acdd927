// What a node tells of its services arrives as it was told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyString, fc } from "../../../test/support/fast-check.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { Found, ServicePage } from "../../services/registry.ts";
import type { CheckView, ServiceView } from "../../services/service-view.ts";
import {
  FindServiceResponseSchema,
  ListServicesRequestSchema,
  ServiceSchema,
} from "./gen/svc/node/v1/node_pb.ts";
import {
  foundFromWire,
  foundToWire,
  pageFromWire,
  pageToWire,
  serviceFromWire,
  serviceToWire,
} from "./services.ts";

const text = anyString().map((any) => any.toWellFormed());
const record = <Model>(model: { [K in keyof Model]: fc.Arbitrary<Model[K]> }) =>
  fc.record(model, { noNullPrototype: true });
const orNull = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });
const timeMs = fc.double({ min: 0, max: 8.64e15, noNaN: true });
const json = fc
  .dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { noNullPrototype: true })
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject);
const status = fc.constantFrom("passing", "critical");

const check: fc.Arbitrary<CheckView> = record({
  name: text,
  kind: fc.constantFrom("http", "tcp", "grpc", "script"),
  status,
  failures: fc.nat(),
  output: text,
  checkedAtMs: orNull(timeMs),
});

const service: fc.Arbitrary<ServiceView> = record({
  serviceId: text,
  name: text,
  status,
  tags: fc.array(text),
  meta: json,
  address: text,
  port: orNull(fc.integer({ min: 1, max: 65_535 })),
  publicUrl: orNull(text),
  asksForKey: fc.boolean(),
  jobId: text,
  runId: text,
  definitionId: orNull(text),
  agentId: orNull(text),
  node: text,
  checks: fc.array(check),
  registeredAtMs: timeMs,
  updatedAtMs: timeMs,
});

const found: fc.Arbitrary<Found> = fc.oneof(
  record({ kind: fc.constant("passing" as const), service }),
  record({ kind: fc.constant("not_passing" as const), reason: text }),
  record({ kind: fc.constant("out_of_reach" as const) }),
  record({ kind: fc.constant("none" as const), hasOthers: fc.boolean() }),
);

const page: fc.Arbitrary<ServicePage> = record({
  limit: fc.nat(),
  after: orNull(record({ name: text, serviceId: text })),
  name: orNull(text),
  tags: fc.array(text),
  status: orNull(status),
  runId: orNull(text),
  definitionId: orNull(text),
});

test("a service, what was found of it, and the page that is asked for arrive as they were sent", () => {
  fc.assert(
    fc.property(service, found, page, (one, result, asked) => {
      const sent = toBinary(ServiceSchema, serviceToWire(one));
      assert.deepEqual(serviceFromWire(fromBinary(ServiceSchema, sent)), one);
      const answer = toBinary(FindServiceResponseSchema, foundToWire(result));
      assert.deepEqual(foundFromWire(fromBinary(FindServiceResponseSchema, answer)), result);
      const request = toBinary(ListServicesRequestSchema, pageToWire(asked, true));
      const arrived = fromBinary(ListServicesRequestSchema, request);
      assert.deepEqual([pageFromWire(arrived), arrived.isChecked], [asked, true]);
    }),
  );
});

test("what this version does not know is a problem of the wire, or critical", () => {
  assert.throws(() => foundFromWire(create(FindServiceResponseSchema)), { name: "WireProblem" });
  assert.throws(() => serviceFromWire(create(ServiceSchema, { metaJson: "{" })), { name: "WireProblem" });
  const odd = create(ServiceSchema, { metaJson: "{}", status: "resting", checks: [{ status: "resting" }] });
  const { status: shown, checks } = serviceFromWire(odd);
  assert.deepEqual([shown, checks[0]?.status], ["critical", "critical"]);
});
