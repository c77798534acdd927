// What a manifest may say of services: what is read, and what is refused where.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import type { Graph } from "../graph.ts";
import type { JsonObject, JsonValue } from "../json.ts";
import { manifestProblemsText, parseManifest } from "../manifest.ts";

const withServices = (services: JsonValue, more: JsonObject = {}, node: JsonObject = {}): JsonObject => ({
  manifest_version: "1.0",
  graph_id: "g",
  entrypoints: ["a"],
  nodes: [{ node_id: "a", agent_type: "executor", config: { command: ["true"] }, ...node }],
  services,
  ...more,
});

function graphOf(value: JsonValue): Graph {
  const result = parseManifest(value);
  if (result.kind === "invalid") assert.fail(manifestProblemsText(result.problems));
  return result.graph;
}

function problemsOf(value: JsonValue): readonly (readonly [string, string])[] {
  const result = parseManifest(value);
  return result.kind === "invalid" ? result.problems.map(({ path, code }) => [path, code] as const) : [];
}

const timing = { intervalMs: 10_000, timeoutMs: 2_000, failuresBeforeCritical: 1, address: null, port: null };

test("a service with a port and nothing else is checked by whether the port takes connections", () => {
  assert.deepEqual(graphOf(withServices({ name: "db", port: 5432 })).services, [
    {
      name: "db",
      id: null,
      port: 5432,
      portLabel: null,
      address: null,
      publicUrl: null,
      tags: [],
      meta: {},
      checks: [{ kind: "tcp", name: "tcp", ...timing }],
    },
  ]);
  assert.deepEqual(graphOf(withServices([{ name: "idea", checks: [] }])).services[0]?.checks, []);
});

test("every field of a service and of its checks is read", () => {
  const [service] = graphOf(
    withServices([
      {
        name: "web",
        id: "one",
        port: 80,
        address: "::1",
        public_url: "https://example.org/x",
        tags: ["a", "b", "a"],
        meta: { team: ["x"] },
        checks: [
          {
            type: "http",
            name: "page",
            method: "POST",
            path: "/health?full=1",
            expected_status: 204,
            contains: "ok",
            interval_ms: 100,
            timeout_ms: 50,
            failures_before_critical: 3,
            address: "10.0.0.1",
            port: 81,
          },
          { type: "grpc", service: "a.B" },
          { type: "script", command: ["{node}", "check.mjs"] },
        ],
      },
    ]),
  ).services;
  const given = { intervalMs: 100, timeoutMs: 50, failuresBeforeCritical: 3, address: "10.0.0.1", port: 81 };
  const http = { method: "POST", path: "/health?full=1", expectedStatus: 204, contains: "ok" };
  assert.deepEqual(service, {
    name: "web",
    id: "one",
    port: 80,
    portLabel: null,
    address: "::1",
    publicUrl: "https://example.org/x",
    tags: ["a", "b"],
    meta: { team: ["x"] },
    checks: [
      { kind: "http", name: "page", ...given, ...http },
      { kind: "grpc", name: "grpc", ...timing, service: "a.B" },
      { kind: "script", name: "script", ...timing, command: ["{node}", "check.mjs"] },
    ],
  });
});

test("a port_label is the number of the port that the node, or else the manifest, declares by it", () => {
  const labelled = { name: "s", port_label: "web" };
  const portOf = (outer: JsonValue, inner: JsonValue, label = "web") => {
    const node = { services: { ...labelled, port_label: label }, resources: inner };
    return graphOf(withServices([], { resources: outer }, node)).nodes[0]?.services[0]?.port;
  };
  assert.equal(portOf({ ports: [{ label: "web", port: 1 }] }, null), 1);
  assert.equal(portOf({ ports: [{ label: "web", port: 1 }] }, { ports: [{ label: "web", port: 2 }] }), 2);
  assert.equal(portOf(null, { ports: [{ label: "web" }] }), null);
  assert.equal(portOf([{ name: "data" }], null, "other"), null);
  const [service] = graphOf(withServices([labelled])).services;
  assert.deepEqual([service?.port, service?.portLabel, service?.checks[0]?.kind], [null, "web", "tcp"]);
});

test("required services are names, or objects with tags and a node", () => {
  const required = (value: JsonValue) =>
    graphOf(withServices([], { required_services: value })).requiredServices;
  assert.deepEqual(required(["db", { name: "web", tags: ["a"], node: "here" }]), [
    { name: "db", tags: [], node: null },
    { name: "web", tags: ["a"], node: "here" },
  ]);
  assert.deepEqual(required({ name: "db" }), [{ name: "db", tags: [], node: null }]);
  assert.deepEqual(required(null), []);
});

const check = (given: JsonObject, service: JsonObject = { port: 1 }) =>
  withServices([{ name: "s", ...service, checks: [given] }]);

const wrong: readonly (readonly [string, JsonValue, string, string])[] = [
  ["services as text", withServices("db"), "/services", "wrong_type"],
  ["a service as text", withServices(["db"]), "/services/0", "wrong_type"],
  ["a service without a name", withServices([{ port: 1 }]), "/services/0/name", "missing"],
  ["a single service without a name", withServices({ port: 1 }), "/services/name", "missing"],
  ["a name with a slash", withServices([{ name: "a/b" }]), "/services/0/name", "invalid_characters"],
  ["one name twice", withServices([{ name: "a" }, { name: "a" }]), "/services/1/name", "duplicate"],
  [
    "one id twice",
    withServices([
      { name: "a", id: "x" },
      { name: "b", id: "x" },
    ]),
    "/services/1/id",
    "duplicate",
  ],
  ["port 0", withServices([{ name: "a", port: 0 }]), "/services/0/port", "out_of_range"],
  ["port 65536", withServices([{ name: "a", port: 65_536 }]), "/services/0/port", "out_of_range"],
  ["a port as text", withServices([{ name: "a", port: "80" }]), "/services/0/port", "wrong_type"],
  [
    "an address with a path",
    withServices([{ name: "a", address: "h/x" }]),
    "/services/0/address",
    "invalid_host",
  ],
  [
    "a script as URL",
    withServices([{ name: "a", public_url: "javascript:1" }]),
    "/services/0/public_url",
    "invalid_url",
  ],
  ["no URL", withServices([{ name: "a", public_url: "http://" }]), "/services/0/public_url", "invalid_url"],
  [
    "a tag with a comma",
    withServices([{ name: "a", tags: ["x,y"] }]),
    "/services/0/tags/0",
    "invalid_characters",
  ],
  ["meta as a list", withServices([{ name: "a", meta: [] }]), "/services/0/meta", "wrong_type"],
  [
    "much meta",
    withServices([{ name: "a", meta: { x: "y".repeat(17_000) } }]),
    "/services/0/meta",
    "too_long",
  ],
  [
    "33 services",
    withServices(Array.from({ length: 33 }, (_, i) => ({ name: `s${i}` }))),
    "/services",
    "too_many",
  ],
  [
    "17 checks",
    withServices([{ name: "a", port: 1, checks: Array(17).fill({ type: "tcp" }) }]),
    "/services/0/checks",
    "too_many",
  ],
  ["a check without a type", check({}), "/services/0/checks/0/type", "missing"],
  ["a check of an unknown type", check({ type: "htp" }), "/services/0/checks/0/type", "unknown_value"],
  ["a check without a port", check({ type: "tcp" }, {}), "/services/0/checks/0/port", "missing"],
  ["a script without a command", check({ type: "script" }), "/services/0/checks/0/command", "missing"],
  ["an empty command", check({ type: "script", command: [] }), "/services/0/checks/0/command", "empty"],
  [
    "a command for the shell",
    check({ type: "script", command: "x" }),
    "/services/0/checks/0/command",
    "wrong_type",
  ],
  [
    "a NUL in a command",
    check({ type: "script", command: ["\0"] }),
    "/services/0/checks/0/command/0",
    "wrong_type",
  ],
  [
    "checks all the time",
    check({ type: "tcp", interval_ms: 99 }),
    "/services/0/checks/0/interval_ms",
    "out_of_range",
  ],
  [
    "checks once a day",
    check({ type: "tcp", interval_ms: 3_600_001 }),
    "/services/0/checks/0/interval_ms",
    "out_of_range",
  ],
  [
    "a timeout of an hour",
    check({ type: "tcp", timeout_ms: 3_600_000 }),
    "/services/0/checks/0/timeout_ms",
    "out_of_range",
  ],
  [
    "no failure allowed",
    check({ type: "tcp", failures_before_critical: 0 }),
    "/services/0/checks/0/failures_before_critical",
    "out_of_range",
  ],
  [
    "a path that is none",
    check({ type: "http", path: "health" }),
    "/services/0/checks/0/path",
    "invalid_path",
  ],
  [
    "a path of two lines",
    check({ type: "http", path: "/\r\nX: y" }),
    "/services/0/checks/0/path",
    "invalid_path",
  ],
  [
    "an unknown method",
    check({ type: "http", method: "BREW" }),
    "/services/0/checks/0/method",
    "unknown_value",
  ],
  [
    "a text in no body",
    check({ type: "http", method: "HEAD", contains: "x" }),
    "/services/0/checks/0/contains",
    "no_body",
  ],
  [
    "a status of 99",
    check({ type: "http", expected_status: 99 }),
    "/services/0/checks/0/expected_status",
    "out_of_range",
  ],
  [
    "a port without a label",
    withServices([], { resources: { ports: [{ port: 1 }] } }),
    "/resources/ports/0/label",
    "missing",
  ],
  [
    "required services as text",
    withServices([], { required_services: "db" }),
    "/required_services",
    "wrong_type",
  ],
  [
    "a required service without a name",
    withServices([], { required_services: [{}] }),
    "/required_services/0/name",
    "missing",
  ],
  [
    "a service of an agent that runs no command",
    withServices([], {}, { agent_type: "router", services: [{ name: "s" }] }),
    "/nodes/0/services",
    "no_command",
  ],
];

for (const [name, value, path, code] of wrong) {
  test(`${name} is refused at ${path} as ${code}`, () => {
    assert.deepEqual(problemsOf(value), [[path, code]]);
  });
}

test("all that is wrong with services is named at once", () => {
  const bad = [{ port: "x", checks: [{ type: "http", path: 1 }, { type: "nothing" }] }, 7];
  assert.deepEqual(
    problemsOf(withServices(bad)).map(([path]) => path),
    [
      "/services/0/port",
      "/services/0/name",
      "/services/0/checks/0/path",
      "/services/0/checks/1/type",
      "/services/1",
    ],
  );
});

test("any value in the place of services is read without an exception, and the result can be checked", () => {
  const value = fc.jsonValue() as fc.Arbitrary<JsonValue>;
  const service = fc.record(
    {
      name: fc.oneof(fc.constant("s"), value),
      port: fc.oneof(fc.nat(70_000), value),
      tags: value,
      checks: fc.array(
        fc.record(
          { type: fc.oneof(fc.constantFrom("http", "tcp", "grpc", "script"), value), command: value },
          { requiredKeys: [] },
        ),
      ),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(value, fc.array(service), service), (services) => {
      const result = parseManifest(withServices(services as JsonValue));
      if (result.kind === "invalid") return result.problems.length > 0;
      return result.graph.services.every(({ port, checks }) =>
        checks.every((one) => one.kind === "script" || one.port !== null || port !== null),
      );
    }),
  );
});
