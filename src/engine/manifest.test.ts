// Goal: the author of a manifest learns everything that is wrong with it at once, and a valid one routes each
// message exactly along its edges. Method: tables of wrong manifests with the problem each must give, and
// random JSON and random graphs from fast-check.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import type { ExecutorConfig, Graph, SensorConfig } from "./graph.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import { limits } from "./limits.ts";
import { defaultPolicy } from "./manifest/sandbox-policy.ts";
import { type ManifestProblem, manifestProblemsText, manifestSteps, parseManifest } from "./manifest.ts";
import { portsByLabel } from "./resources.ts";

const router = (node_id: string): JsonObject => ({ node_id, agent_type: "router" });

function manifest(changes: Record<string, JsonValue> = {}): JsonObject {
  return {
    manifest_version: "1.0",
    graph_id: "g",
    entrypoints: ["a"],
    nodes: [router("a"), router("b")],
    ...changes,
  };
}

function problemsOf(value: JsonValue): readonly ManifestProblem[] {
  const result = parseManifest(value);
  return result.kind === "invalid" ? result.problems : [];
}

function graphOf(value: JsonValue): Graph {
  const result = parseManifest(value);
  if (result.kind === "invalid") assert.fail(manifestProblemsText(result.problems));
  return result.graph;
}

function withNode(node: JsonObject): JsonObject {
  return manifest({ nodes: [router("a"), { node_id: "n", ...node }] });
}

function executor(config: JsonObject, node: JsonObject = {}): ExecutorConfig {
  const graph = graphOf(
    withNode({ agent_type: "executor", config: { command: ["true"], ...config }, ...node }),
  );
  const compiled = graph.nodes[1]?.config;
  assert.ok(compiled?.kind === "executor");
  return compiled;
}

test("a manifest with nothing but the required fields gets every default", () => {
  const graph = graphOf(manifest());
  assert.deepEqual(
    { ...graph, nodes: graph.nodes.map((node) => node.nodeId), indexOf: [...graph.indexOf] },
    {
      graphId: "g",
      jobName: null,
      type: "batch",
      placementPolicy: "local",
      recoveryPolicy: "local_restart",
      failurePolicy: "fail_run",
      timeoutMs: null,
      entrypoints: [0],
      initialInputs: new Map(),
      nodes: ["a", "b"],
      indexOf: [
        ["a", 0],
        ["b", 1],
      ],
      services: [],
      requiredServices: [],
      outputs: [],
    },
  );
});

test("fields that are given are read, and fields nobody knows are ignored", () => {
  const graph = graphOf(
    manifest({
      job_name: "nightly",
      type: "service",
      policies: {
        placement_policy: "spread",
        recovery_mode: "manual_recover",
        failure_policy: "continue",
        timeout_seconds: 1.5,
        mood: "good",
      },
      outputs: ["report.md", { path: "a/b.html", title: "Report", primary: true }],
      initial_inputs: { a: [1, null] },
      metadata: { owner: "me" },
      services: [],
      required_services: [{ name: "db" }],
      resources: { cpu: 1 },
      nodes: [
        { ...router("a"), type: "batch", role: "root", colour: 3, config: { emit_type: "work", x: 1 } },
      ],
      x_unknown: [{}],
    }),
  );
  assert.deepEqual(
    [
      graph.jobName,
      graph.type,
      graph.placementPolicy,
      graph.recoveryPolicy,
      graph.failurePolicy,
      graph.timeoutMs,
    ],
    ["nightly", "service", "spread", "manual_recover", "continue", 1_500],
  );
  assert.deepEqual(graph.outputs, [
    { path: "report.md", title: null, primary: false },
    { path: "a/b.html", title: "Report", primary: true },
  ]);
  assert.deepEqual([...graph.initialInputs], [[0, [1, null]]]);
  const node = graph.nodes[0];
  assert.deepEqual([node?.type, node?.role, node?.isSource], ["batch", "root", false]);
  assert.deepEqual(node?.config, { kind: "router", emitType: "work" });
});

test("recovery_policy is another name of recovery_mode, which wins when both are given", () => {
  const policy = (policies: JsonObject) => graphOf(manifest({ policies })).recoveryPolicy;
  assert.equal(policy({ recovery_policy: "cluster_recover" }), "cluster_recover");
  assert.equal(
    policy({ recovery_policy: "cluster_recover", recovery_mode: "local_restart" }),
    "local_restart",
  );
});

test("a bare initial input is a list of one, and an empty list is no input", () => {
  const inputs = (value: JsonValue) => [...graphOf(manifest({ initial_inputs: { a: value } })).initialInputs];
  assert.deepEqual(inputs({ n: 1 }), [[0, [{ n: 1 }]]]);
  assert.deepEqual(inputs(null), [[0, [null]]]);
  assert.deepEqual(inputs([]), []);
});

const wrong: readonly (readonly [string, JsonValue, string, string])[] = [
  ["a list", [], "", "wrong_type"],
  ["no version", manifest({ manifest_version: null }), "/manifest_version", "missing"],
  ["another version", manifest({ manifest_version: "2.0" }), "/manifest_version", "unknown_version"],
  ["a number as version", manifest({ manifest_version: 1 }), "/manifest_version", "unknown_version"],
  ["no graph_id", manifest({ graph_id: null }), "/graph_id", "missing"],
  ["an empty graph_id", manifest({ graph_id: "" }), "/graph_id", "empty"],
  ["a graph_id with a slash", manifest({ graph_id: "a/b" }), "/graph_id", "invalid_characters"],
  ["a graph_id of dots", manifest({ graph_id: ".." }), "/graph_id", "invalid_characters"],
  ["a long graph_id", manifest({ graph_id: "g".repeat(201) }), "/graph_id", "too_long"],
  ["no entrypoints", manifest({ entrypoints: null }), "/entrypoints", "missing"],
  ["empty entrypoints", manifest({ entrypoints: [] }), "/entrypoints", "empty"],
  ["entrypoints as text", manifest({ entrypoints: "a" }), "/entrypoints", "wrong_type"],
  ["an entrypoint to nowhere", manifest({ entrypoints: ["z"] }), "/entrypoints/0", "unknown_node"],
  ["an entrypoint twice", manifest({ entrypoints: ["a", "a"] }), "/entrypoints/1", "duplicate"],
  ["a numeric entrypoint", manifest({ entrypoints: ["a", 1] }), "/entrypoints/1", "wrong_type"],
  ["nodes as an object", manifest({ nodes: {} }), "/nodes", "wrong_type"],
  ["a node that is text", manifest({ nodes: [router("a"), "b"] }), "/nodes/1", "wrong_type"],
  [
    "a node without an id",
    manifest({ nodes: [router("a"), { agent_type: "router" }] }),
    "/nodes/1/node_id",
    "missing",
  ],
  ["an empty node_id", manifest({ nodes: [router("a"), router("")] }), "/nodes/1/node_id", "empty"],
  ["a node_id twice", manifest({ nodes: [router("a"), router("a")] }), "/nodes/1/node_id", "duplicate"],
  [
    "a NUL in a node_id",
    manifest({ nodes: [router("a"), router("\0")] }),
    "/nodes/1/node_id",
    "invalid_characters",
  ],
  [
    "half a character",
    manifest({ nodes: [router("a"), router("\ud800")] }),
    "/nodes/1/node_id",
    "invalid_characters",
  ],
  ["no agent_type", withNode({}), "/nodes/1/agent_type", "missing"],
  ["an unknown agent_type", withNode({ agent_type: "robot" }), "/nodes/1/agent_type", "unknown_value"],
  ["a numeric role", withNode({ agent_type: "router", role: 1 }), "/nodes/1/role", "wrong_type"],
  ["services as text", withNode({ agent_type: "router", services: "" }), "/nodes/1/services", "wrong_type"],
  [
    "a config that is a list",
    withNode({ agent_type: "router", config: [] }),
    "/nodes/1/config",
    "wrong_type",
  ],
  ["edges as text", manifest({ edges: "a->b" }), "/edges", "wrong_type"],
  ["an edge that is null", manifest({ edges: [null] }), "/edges/0", "wrong_type"],
  [
    "an edge from nowhere",
    manifest({ edges: [{ from_node: "z", to_node: "a" }] }),
    "/edges/0/from_node",
    "unknown_node",
  ],
  ["an edge without an end", manifest({ edges: [{ from_node: "a" }] }), "/edges/0/to_node", "missing"],
  [
    "an edge with an empty type",
    manifest({ edges: [{ from_node: "a", to_node: "b", message_type: "" }] }),
    "/edges/0/message_type",
    "empty",
  ],
  ["an unknown job type", manifest({ type: "cron" }), "/type", "unknown_value"],
  ["policies as a list", manifest({ policies: [] }), "/policies", "wrong_type"],
  [
    "a bad placement",
    manifest({ policies: { placement_policy: "x" } }),
    "/policies/placement_policy",
    "unknown_value",
  ],
  [
    "a bad recovery",
    manifest({ policies: { recovery_mode: 1 } }),
    "/policies/recovery_mode",
    "unknown_value",
  ],
  [
    "a bad alias",
    manifest({ policies: { recovery_policy: "x" } }),
    "/policies/recovery_policy",
    "unknown_value",
  ],
  [
    "a bad failure policy",
    manifest({ policies: { failure_policy: "" } }),
    "/policies/failure_policy",
    "unknown_value",
  ],
  [
    "no time at all",
    manifest({ policies: { timeout_seconds: 0 } }),
    "/policies/timeout_seconds",
    "out_of_range",
  ],
  ["inputs as a list", manifest({ initial_inputs: [] }), "/initial_inputs", "wrong_type"],
  [
    "inputs of another node",
    manifest({ initial_inputs: { b: 1 } }),
    "/initial_inputs/b",
    "unknown_entrypoint",
  ],
  [
    "inputs of a slash",
    manifest({ initial_inputs: { "x/~": 1 } }),
    "/initial_inputs/x~1~0",
    "unknown_entrypoint",
  ],
  ["an output outside", manifest({ outputs: ["../x"] }), "/outputs/0", "path_outside"],
  ["an output without a path", manifest({ outputs: [{ title: "t" }] }), "/outputs/0/path", "wrong_type"],
  ["a numeric output", manifest({ outputs: [1] }), "/outputs/0", "wrong_type"],
  ["metadata as a list", manifest({ metadata: [] }), "/metadata", "wrong_type"],
  ["required_services as text", manifest({ required_services: "db" }), "/required_services", "wrong_type"],
  ["a long job_name", manifest({ job_name: "n".repeat(1_001) }), "/job_name", "too_long"],
];

for (const [name, value, path, code] of wrong) {
  test(`${name} is refused at ${path === "" ? "the whole" : path} as ${code}`, () => {
    assert.deepEqual(
      problemsOf(value).map((problem) => [problem.path, problem.code]),
      [[path, code]],
    );
  });
}

const wrongConfigs: readonly (readonly [string, JsonObject, string, string])[] = [
  ["router", { emit_type: 1 }, "emit_type", "wrong_type"],
  ["aggregator", { complete_after: 0 }, "complete_after", "out_of_range"],
  ["aggregator", { complete_after: 1.5 }, "complete_after", "out_of_range"],
  ["aggregator", { complete_after: limits.collectedMessagesMax + 1 }, "complete_after", "out_of_range"],
  ["aggregator", { complete_after: "3" }, "complete_after", "wrong_type"],
  ["aggregator", { complete_on_message: "yes" }, "complete_on_message", "wrong_type"],
  ["aggregator", { complete_run: 0 }, "complete_run", "wrong_type"],
  ["aggregator", { output_message_type: "" }, "output_message_type", "empty"],
  ["sensor", { complete_after: 0 }, "complete_after", "out_of_range"],
  ["sensor", { interval_ms: 0 }, "interval_ms", "out_of_range"],
  ["sensor", { run_at: "2030-01-31" }, "run_at", "invalid_time"],
  ["sensor", { run_at: "2030-01-31T09:00:00" }, "run_at", "invalid_time"],
  ["sensor", { run_at: "2030-13-31T09:00:00Z" }, "run_at", "invalid_time"],
  ["sensor", { run_at: 5 }, "run_at", "invalid_time"],
  ["sensor", { file: "../secret" }, "file", "path_outside"],
  ["sensor", { file: 1 }, "file", "wrong_type"],
  ["executor", {}, "command", "missing"],
  ["executor", { command: [] }, "command", "empty"],
  ["executor", { command: [""] }, "command", "empty"],
  ["executor", { command: "  " }, "command", "empty"],
  ["executor", { command: { run: "x" } }, "command", "wrong_type"],
  ["executor", { command: ["a", 1] }, "command/1", "wrong_type"],
  ["executor", { command: ["a\0b"] }, "command/0", "invalid_characters"],
  ["executor", { command: "x", pool: "" }, "pool", "empty"],
  ["executor", { command: "x", pool_slots: 0 }, "pool_slots", "out_of_range"],
  ["executor", { command: "x", node_labels: ["zone=a"] }, "node_labels", "wrong_type"],
  ["executor", { command: "x", node_labels: { zone: 1 } }, "node_labels/zone", "wrong_type"],
  ["executor", { command: "x", node_labels: { "": "a" } }, "node_labels/", "invalid_name"],
  ["executor", { command: "x", node_labels: { zone: "a b" } }, "node_labels/zone", "invalid_characters"],
  [
    "executor",
    { command: "x", node_labels: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`l${i}`, ""])) },
    "node_labels",
    "too_many",
  ],
  ["executor", { command: "x", timeout_seconds: -1 }, "timeout_seconds", "out_of_range"],
  ["executor", { command: "x", max_attempts: 0 }, "max_attempts", "out_of_range"],
  ["executor", { command: "x", retry_backoff_ms: "1s" }, "retry_backoff_ms", "wrong_type"],
  ["executor", { command: "x", environment: ["A=1"] }, "environment", "wrong_type"],
  ["executor", { command: "x", environment: { A: {} } }, "environment/A", "wrong_type"],
  ["executor", { command: "x", environment: { A: "\0" } }, "environment/A", "invalid_characters"],
  ["executor", { command: "x", environment: { "A=B": "1" } }, "environment/A=B", "invalid_name"],
  ["executor", { command: "x", environment: { "": "1" } }, "environment/", "invalid_name"],
  ["executor", { command: "x", pass_env: "PATH" }, "pass_env", "wrong_type"],
  ["executor", { command: "x", pass_env: ["A=B"] }, "pass_env/0", "invalid_name"],
  ["executor", { command: "x", pass_env: [""] }, "pass_env/0", "empty"],
  ["executor", { command: "x", pass_env: ["PATH", "SVC_API_TOKEN"] }, "pass_env/1", "variable_withheld"],
  ["executor", { command: "x", pass_env: ["SVC_SECRET_KEY_FILE"] }, "pass_env/0", "variable_withheld"],
  ["executor", { command: "x", upload_path: "/etc" }, "upload_path", "path_outside"],
  ["executor", { command: "x", upload_path: "a/../../b" }, "upload_path", "path_outside"],
  ["executor", { command: "x", upload_path: "a", upload_as: ".." }, "upload_as", "path_outside"],
  ["executor", { command: "x", upload_paths: ["a", "../b"] }, "upload_paths/1", "path_outside"],
  ["executor", { command: "x", upload_paths: [{ as: "a" }] }, "upload_paths/0/path", "wrong_type"],
  ["executor", { command: "x", upload_paths: [{ path: "a", as: "/" }] }, "upload_paths/0/as", "path_outside"],
  ["executor", { command: "x", workdir: 1 }, "workdir", "wrong_type"],
  ["executor", { command: "x", workdir: "w".repeat(4_097) }, "workdir", "too_long"],
  ["executor", { command: "x", workdir: "a\nb" }, "workdir", "invalid_characters"],
  ["executor", { command: "x", runner_module: "" }, "runner_module", "empty"],
  ["executor", { command: "x", runner_module: "Some.Podman" }, "runner_module", "unknown_value"],
  ["executor", { command: "x", runner_module: "HostLocal.x" }, "runner_module", "unknown_value"],
  ["executor", { command: "x", idempotent: "no" }, "idempotent", "wrong_type"],
  ["executor", { command: "x", lifecycle: true }, "lifecycle", "wrong_type"],
  ["module", {}, "module", "missing"],
  ["module", { module: "../m.js" }, "module", "path_outside"],
  ["module", { module: "m.js", timeout_seconds: "5" }, "timeout_seconds", "wrong_type"],
  ["module", { module: "m.js", isolation: "vm" }, "isolation", "unknown_value"],
  ["module", { module: "m.js", sandbox: {} }, "sandbox", "no_sandbox"],
  ["module", { module: "m.js", isolation: "process", sandbox: { net: 1 } }, "sandbox/net", "unknown_field"],
];

for (const [agentType, config, place, code] of wrongConfigs) {
  test(`a ${agentType} with ${JSON.stringify(config).slice(0, 60)} is refused at ${place} as ${code}`, () => {
    assert.deepEqual(
      problemsOf(withNode({ agent_type: agentType, config })).map((problem) => [problem.path, problem.code]),
      [[`/nodes/1/config/${place}`, code]],
    );
  });
}

test("every message names the place, what is wrong and what is allowed", () => {
  const problems = problemsOf(withNode({ agent_type: "robot" }));
  assert.equal(
    manifestProblemsText([...problems, ...problemsOf(manifest({ entrypoints: null }))]),
    'Invalid manifest: nodes[1].agent_type is "robot": it must be "router", "aggregator", "sensor", "executor" or "module"; ' +
      "entrypoints is missing: it must be a non-empty list of the node_ids that receive the first messages",
  );
});

test("all problems come at once", () => {
  const paths = problemsOf({
    nodes: [{ agent_type: "executor" }],
    edges: [{}],
    policies: { failure_policy: "x" },
  });
  assert.deepEqual(paths.map((problem) => problem.path).sort(), [
    "/edges/0/from_node",
    "/edges/0/to_node",
    "/entrypoints",
    "/graph_id",
    "/manifest_version",
    "/nodes/0/config/command",
    "/nodes/0/node_id",
    "/policies/failure_policy",
  ]);
});

test("a hundred problems are shown, and then how many more there are", () => {
  const edges = Array.from({ length: 150 }, () => ({ from_node: "a", to_node: "nowhere" }));
  const problems = problemsOf(manifest({ edges }));
  assert.equal(problems.length, 101);
  assert.deepEqual(problems.at(-1), { path: "", code: "more_problems", message: "and 50 more" });
  assert.equal(problemsOf(manifest({ edges: edges.slice(0, 100) })).length, 100);
});

test("a long value is cut in the message that quotes it", () => {
  const [problem] = problemsOf(manifest({ manifest_version: "9".repeat(10_000) }));
  assert.ok(problem !== undefined && problem.message.length < 200);
});

test("one node more than the limit is refused, and the limit itself is not", () => {
  const nodes = (count: number) => Array.from({ length: count }, (_, i) => router(i === 0 ? "a" : `n${i}`));
  assert.deepEqual(problemsOf(manifest({ nodes: nodes(limits.nodesMax) })), []);
  const codes = problemsOf(manifest({ nodes: nodes(limits.nodesMax + 1) })).map((problem) => problem.code);
  assert.ok(codes.includes("too_many"));
});

test("one edge more than the limit is refused, and the limit itself is not", () => {
  const edges = (count: number) => new Array(count).fill({ from_node: "a", to_node: "b" });
  assert.equal(graphOf(manifest({ edges: edges(limits.edgesMax) })).nodes[0]?.toAll.length, limits.edgesMax);
  assert.deepEqual(
    problemsOf(manifest({ edges: edges(limits.edgesMax + 1) })).map((problem) => problem.code),
    ["too_many"],
  );
});

test("an executor gets the documented defaults", () => {
  assert.deepEqual(executor({}), {
    kind: "executor",
    command: ["true"],
    pool: "default",
    poolSlots: 1,
    nodeLabels: {},
    demand: null,
    ports: [],
    volumes: [],
    timeoutSeconds: 300,
    maxAttempts: 1,
    retryBackoffMs: 500,
    environment: {},
    passEnv: [],
    uploadPaths: [],
    workdir: null,
    sandboxUploadPath: null,
    runnerModule: "HostLocal",
    sandbox: null,
    policyFile: null,
    outputMessageType: "executor_result",
    module: null,
    longLived: false,
    safeToRetry: true,
    runEvents: false,
    llm: null,
    optional: false,
  });
});

test("what a command is to have of its machine is read in whole thousandths of cores and bytes", () => {
  const demandOf = (resources: JsonObject) => executor({}, { resources }).demand;
  assert.equal(demandOf({ ports: [] }), null);
  const nothing = { cpuMillis: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 };
  assert.deepEqual(demandOf({ cpu: 0.0011 }), { ...nothing, cpuMillis: 2 });
  assert.deepEqual(demandOf({ cpu: 2, memory_mb: 3, disk_mb: 5, gpu: 1 }), {
    cpuMillis: 2_000,
    memoryBytes: 3 * 1024 ** 2,
    diskBytes: 5 * 1024 ** 2,
    gpus: 1,
  });
});

test("what a command cannot have, and what has no command, is a problem of its own place", () => {
  const resources = { cpu: 0, memory_mb: 1.5, disk_mb: -1, gpu: "all" };
  const placesOf = (node: JsonObject) =>
    problemsOf(withNode({ ...node, resources })).map(({ path, code }) => `${path} ${code}`);
  assert.deepEqual(placesOf({ agent_type: "executor", config: { command: ["true"] } }), [
    "/nodes/1/resources/cpu out_of_range",
    "/nodes/1/resources/memory_mb out_of_range",
    "/nodes/1/resources/disk_mb out_of_range",
    "/nodes/1/resources/gpu wrong_type",
  ]);
  const router = withNode({ agent_type: "router", resources: { cpu: 1, ports: [{ label: "http" }] } });
  assert.deepEqual(
    problemsOf(router).map(({ path, code }) => `${path} ${code}`),
    ["/nodes/1/resources/cpu no_command", "/nodes/1/resources/ports no_command"],
  );
});

test("a command has the ports that it asks for by number, and others that are free", () => {
  const config = executor(
    {},
    {
      resources: {
        ports: [
          { label: "web", port: 8080 },
          { label: "admin-ui", port: "auto" },
          { label: "debug" },
          { label: "shown", port: 9000, reserve: false },
        ],
      },
    },
  );
  assert.deepEqual(config.demand, {
    cpuMillis: 0,
    memoryBytes: 0,
    diskBytes: 0,
    gpus: 0,
    named: { claims: [{ kind: "port", name: "8080", isShared: false }], freePorts: 2 },
  });
  assert.deepEqual(
    [...portsByLabel(config.ports, [20_000, 20_001])],
    [
      ["web", 8080],
      ["admin-ui", 20_000],
      ["debug", 20_001],
      ["shown", 9000],
    ],
  );
});

test("ports that no command could have are problems, all at once", () => {
  const problemsWith = (ports: JsonValue) =>
    problemsOf(withNode({ agent_type: "executor", config: { command: ["true"] }, resources: { ports } })).map(
      ({ path, code }) => `${path.slice("/nodes/1/resources/ports".length)} ${code}`,
    );
  const wrong = [
    { port: 1 },
    { label: "Web", port: 0 },
    { label: "a-b", port: 7, reserve: "no" },
    { label: "a_b", port: 7 },
    { label: "named", reserve: false },
    "http",
  ];
  assert.deepEqual(problemsWith(wrong), [
    "/0/label missing",
    "/1/label invalid_label",
    "/1/port out_of_range",
    "/2/reserve wrong_type",
    "/3/label duplicate",
    "/3/port duplicate",
    "/4/port missing",
    "/5 wrong_type",
  ]);
  assert.deepEqual(problemsWith(Array(17).fill({ label: "a" })), [" too_many"]);
  const outer = { resources: { ports: [{ label: "web", port: "auto" }] } };
  assert.deepEqual(
    problemsOf({ ...withNode({ agent_type: "router" }), ...outer }).map(
      ({ path, code }) => `${path} ${code}`,
    ),
    ["/resources/ports/0/port no_command"],
  );
});

test("a command has volumes, those alone that it writes to", () => {
  const volumes = [
    { name: "cache", path: "./data//cache", size_mb: 2 },
    { name: "0.models", path: "data/models", read_only: true },
  ];
  const config = executor({}, { resources: { volumes } });
  assert.deepEqual(config.volumes, [
    { name: "cache", path: "data/cache", isReadOnly: false, bytesMax: 2 * 1024 ** 2 },
    { name: "0.models", path: "data/models", isReadOnly: true, bytesMax: null },
  ]);
  assert.deepEqual(config.demand?.named, {
    claims: [
      { kind: "volume", name: "cache", isShared: false },
      { kind: "volume", name: "0.models", isShared: true },
    ],
    freePorts: 0,
  });
});

test("volumes that could be no folders of their own are problems, all at once", () => {
  const problemsWith = (volumes: JsonValue) =>
    problemsOf(
      withNode({ agent_type: "executor", config: { command: ["true"] }, resources: { volumes } }),
    ).map(({ path, code }) => `${path.slice("/nodes/1/resources/volumes".length)} ${code}`);
  const wrong = [
    { path: "a" },
    { name: "../x", path: "b" },
    { name: "x" },
    { name: "x", path: "/etc" },
    { name: "y", path: "c/../d" },
    { name: "z", path: "." },
    { name: "ok", path: "e", read_only: 1, size_mb: 0 },
    { name: "in", path: "e/f" },
  ];
  assert.deepEqual(problemsWith(wrong), [
    "/0/name missing",
    "/1/name invalid_name",
    "/2/path missing",
    "/3/name duplicate",
    "/3/path path_outside",
    "/4/path invalid_path",
    "/5/path invalid_path",
    "/6/read_only wrong_type",
    "/6/size_mb out_of_range",
    "/7/path invalid_path",
  ]);
  assert.deepEqual(problemsWith(Array(17).fill({ name: "a", path: "a" })), [" too_many"]);
});

test("a command has devices by their paths below /dev, and others are problems, all at once", () => {
  const { demand } = executor({}, { resources: { devices: ["/dev/ttyUSB0", "/dev/dri/card0"] } });
  assert.deepEqual(
    demand?.named?.claims.map(({ kind, name, isShared }) => [kind, name, isShared]),
    [
      ["device", "/dev/ttyUSB0", false],
      ["device", "/dev/dri/card0", false],
    ],
  );
  const wrong = [
    "/dev/../etc/passwd",
    "/dev",
    "/dev/",
    "/dev//null",
    "null",
    1,
    "/dev/a",
    "/dev/a",
    "/dev/./b",
  ];
  const node = { agent_type: "executor", config: { command: ["true"] }, resources: { devices: wrong } };
  assert.deepEqual(
    problemsOf(withNode(node)).map(
      ({ path, code }) => `${path.slice("/nodes/1/resources/devices".length)} ${code}`,
    ),
    [
      ...[0, 1, 2, 3, 4].map((at) => `/${at} invalid_device`),
      "/5 wrong_type",
      "/7 duplicate",
      "/8 invalid_device",
    ],
  );
});

test("the runner's fields may be in the node or in its config, and config wins", () => {
  const fields = {
    runner_module: "X.HostLocal",
    upload_path: "w",
    upload_as: "v",
    workdir: "d",
    sandbox_upload_path: "/s",
  };
  const read = (config: ExecutorConfig) => [
    config.command,
    config.runnerModule,
    config.uploadPaths,
    config.workdir,
    config.sandboxUploadPath,
  ];
  const expected = ["run", "X.HostLocal", [{ path: "w", as: "v" }], "d", "/s"];
  assert.deepEqual(read(executor({ ...fields, command: "run" })), expected);
  assert.deepEqual(read(executor({ command: null }, { ...fields, command: "run" })), expected);
  assert.deepEqual(
    read(executor({ ...fields, command: "run" }, { command: "no", workdir: "no", runner_module: "no" })),
    expected,
  );
  const [problem] = problemsOf(withNode({ agent_type: "executor", command: 5 }));
  assert.equal(problem?.path, "/nodes/1/command");
});

test("numbers and booleans in an environment become text", () => {
  const { environment } = executor({ environment: { A: 1, B: true, C: "x", __proto__x: "y" } });
  assert.deepEqual(environment, { A: "1", B: "true", C: "x", __proto__x: "y" });
});

test("an upload is named after its last part unless it is told otherwise", () => {
  const names = (config: JsonObject) => executor(config).uploadPaths.map((upload) => upload.as);
  assert.deepEqual(names({ upload_path: "a/b/" }), ["b"]);
  assert.deepEqual(names({ upload_path: "./a/./" }), ["a"]);
  assert.deepEqual(names({ upload_path: "a/.." }), ["."]);
  assert.deepEqual(names({ upload_path: "." }), ["."]);
  assert.deepEqual(
    names({ upload_path: "a/b", upload_as: "c", upload_paths: ["d/e", { path: "f", as: "g/h" }] }),
    ["c", "e", "g/h"],
  );
});

test("a long-lived executor has no time limit unless it is given one", () => {
  assert.deepEqual(
    [executor({ lifecycle: "long_lived" }).longLived, executor({ lifecycle: "long_lived" }).timeoutSeconds],
    [true, 0],
  );
  assert.equal(executor({ lifecycle: "long_lived", timeout_seconds: 9 }).timeoutSeconds, 9);
  const stream = graphOf(withNode({ agent_type: "executor", type: "stream", config: { command: "x" } }))
    .nodes[1];
  assert.ok(stream?.config.kind === "executor" && stream.config.longLived && stream.isSource);
  const server = graphOf(
    withNode({ agent_type: "executor", config: { command: "x", lifecycle: "long_lived" } }),
  );
  assert.equal(server.nodes[1]?.isSource, false);
});

test("either word against a second run keeps a command from being run twice", () => {
  assert.equal(executor({ idempotent: false }).safeToRetry, false);
  assert.equal(executor({ safe_to_retry: false }).safeToRetry, false);
  assert.equal(executor({ idempotent: true, safe_to_retry: true }).safeToRetry, true);
  assert.equal(executor({}, { idempotent: false }).safeToRetry, false);
});

test("null is nothing to emit for an executor, and no end for a sensor", () => {
  assert.equal(executor({ output_message_type: null }).outputMessageType, null);
  const sensor = (config: JsonObject): SensorConfig => {
    const compiled = graphOf(withNode({ agent_type: "sensor", config })).nodes[1]?.config;
    assert.ok(compiled?.kind === "sensor");
    return compiled;
  };
  assert.deepEqual(sensor({}), {
    kind: "sensor",
    outputMessageType: "sensor_ready",
    completeAfter: 1,
    intervalMs: null,
    runAtMs: null,
    file: null,
  });
  assert.equal(sensor({ complete_after: null }).completeAfter, null);
  assert.equal(sensor({ run_at: "2030-01-31T09:00:00+01:00" }).runAtMs, Date.UTC(2030, 0, 31, 8));
  assert.equal(sensor({ file: "/var/spool/x" }).file, "/var/spool/x");
  assert.equal(sensor({ file: "in/x.csv" }).file, "in/x.csv");
});

test("an aggregator and a module get the documented defaults", () => {
  const graph = graphOf(
    manifest({
      nodes: [
        { node_id: "a", agent_type: "aggregator" },
        { node_id: "m", agent_type: "module", config: { module: "lib/m.js", mine: [1] } },
      ],
    }),
  );
  assert.deepEqual(graph.nodes[0]?.config, {
    kind: "aggregator",
    completeAfter: null,
    completeOnMessage: false,
    outputMessageType: null,
    completeRun: true,
  });
  assert.deepEqual(graph.nodes[1]?.config, {
    kind: "module",
    module: "lib/m.js",
    timeoutSeconds: 300,
    maxAttempts: 1,
    retryBackoffMs: 500,
    config: { module: "lib/m.js", mine: [1] },
  });
});

test("a module in a process is a command in a sandbox, which sees all of the payload unless it names uploads", () => {
  const config = { module: "lib/m.js", isolation: "process", node_labels: { zone: "a" }, mine: [1] };
  const read = (more: JsonObject) => {
    const fields = { node_id: "m", agent_type: "module", config: { ...config, ...more } };
    const [node] = graphOf(manifest({ nodes: [fields], entrypoints: ["m"] })).nodes;
    assert.ok(node?.agentType === "module" && node.config.kind === "executor");
    return node.config;
  };
  const plain = read({});
  assert.deepEqual(plain.module, { path: "lib/m.js", config });
  assert.deepEqual(plain.uploadPaths, [{ path: ".", as: "." }]);
  assert.deepEqual(plain.nodeLabels, { zone: "a", "troupe/sandbox": "yes" });
  assert.deepEqual([plain.sandbox, plain.passEnv], [defaultPolicy, []]);
  assert.deepEqual([plain.pool, plain.poolSlots, plain.timeoutSeconds], ["default", 1, 300]);
  assert.equal(plain.outputMessageType, null);
  const chosen = read({ upload_paths: ["data"], sandbox: { environment: ["KEY"] }, pool: "io" });
  assert.deepEqual(chosen.uploadPaths, [
    { path: "lib/m.js", as: "lib/m.js" },
    { path: "data", as: "data" },
  ]);
  assert.deepEqual([chosen.passEnv, chosen.pool], [["KEY"], "io"]);
});

test("no JSON value makes the parser throw", () => {
  const nearly = fc.record(
    {
      manifest_version: fc.constantFrom<JsonValue>("1.0", 1, null),
      graph_id: fc.oneof(fc.constant("g"), fc.jsonValue()),
      entrypoints: fc.oneof(fc.constant(["a"]), fc.jsonValue()),
      nodes: fc.array(
        fc.oneof(
          fc.record(
            {
              node_id: fc.oneof(fc.constantFrom("a", "b"), fc.jsonValue()),
              agent_type: fc.constantFrom("router", "aggregator", "sensor", "executor", "module", "x"),
              config: fc.oneof(
                fc.jsonValue(),
                fc.dictionary(
                  fc.constantFrom(
                    "command",
                    "environment",
                    "upload_paths",
                    "pass_env",
                    "run_at",
                    "module",
                    "file",
                  ),
                  fc.jsonValue(),
                ),
              ),
              type: fc.jsonValue(),
            },
            { requiredKeys: [] },
          ),
          fc.jsonValue(),
        ),
      ),
      edges: fc.oneof(
        fc.array(fc.record({ from_node: fc.constantFrom("a", "b", "z"), to_node: fc.jsonValue() })),
        fc.jsonValue(),
      ),
      policies: fc.jsonValue(),
      initial_inputs: fc.oneof(
        fc.dictionary(fc.constantFrom("a", "__proto__", "b"), fc.jsonValue()),
        fc.jsonValue(),
      ),
      outputs: fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), nearly), (value) => {
      const result = parseManifest(value as JsonValue);
      if (result.kind === "valid") return result.graph.nodes.length > 0;
      return (
        result.problems.length > 0 &&
        result.problems.every((problem) => problem.message !== "" && /^(\/|$)/.test(problem.path))
      );
    }),
    { numRuns: 1_000 },
  );
});

const randomGraph = fc.integer({ min: 1, max: 12 }).chain((count) =>
  fc.record({
    count: fc.constant(count),
    edges: fc.array(
      fc.record({
        from: fc.nat(count - 1),
        to: fc.nat(count - 1),
        type: fc.option(fc.constantFrom("x", "y", "toString", "__proto__")),
      }),
      { maxLength: 40 },
    ),
    entrypoints: fc.uniqueArray(fc.nat(count - 1), { minLength: 1 }),
  }),
);

function randomManifest(
  given: typeof randomGraph extends fc.Arbitrary<infer Value> ? Value : never,
): JsonObject {
  return manifest({
    nodes: Array.from({ length: given.count }, (_, i) => router(`n${i}`)),
    entrypoints: given.entrypoints.map((i) => `n${i}`),
    edges: given.edges.map(({ from, to, type }) => ({
      from_node: `n${from}`,
      to_node: `n${to}`,
      message_type: type,
    })),
  });
}

test("a message finds the end of every edge that carries its type, one copy per edge, and no other", () => {
  fc.assert(
    fc.property(randomGraph, (given) => {
      const graph = graphOf(randomManifest(given));
      for (const node of graph.nodes) {
        for (const type of ["x", "y", "toString", "__proto__", "other"]) {
          const leaving = given.edges.filter((edge) => edge.from === node.index);
          const untyped = leaving.filter((edge) => edge.type === null).map((edge) => edge.to);
          const typed = leaving.filter((edge) => edge.type === type).map((edge) => edge.to);
          assert.deepEqual(node.toAll, untyped);
          assert.deepEqual(node.toByType.get(type) ?? [], typed);
        }
      }
    }),
  );
});

test("ranks are a permutation in which a node comes before all that it leads to, circles aside", () => {
  fc.assert(
    fc.property(randomGraph, (given) => {
      const graph = graphOf(randomManifest(given));
      const ranks = graph.nodes.map((node) => node.rank);
      assert.deepEqual(
        [...ranks].sort((a, b) => a - b),
        [...ranks.keys()],
      );
      for (const { from, to } of given.edges) {
        if (!reaches(given.edges, to, from)) assert.ok(ranks[from]! < ranks[to]!, `n${from} before n${to}`);
      }
    }),
  );
});

test("in a circle the node that is reached first from the entrypoint ranks first", () => {
  const edge = (from_node: string, to_node: string) => ({ from_node, to_node });
  const nodes = ["in", "z", "y", "x"].map(router);
  const edges = [edge("z", "x"), edge("x", "y"), edge("y", "z"), edge("in", "y")];
  const graph = graphOf(manifest({ nodes, edges, entrypoints: ["in"] }));
  const order = [...graph.nodes].sort((a, b) => a.rank - b.rank).map((node) => node.nodeId);
  assert.deepEqual(order, ["in", "y", "z", "x"]);
});

test("equals rank in the order in which the manifest names them", () => {
  const edges = ["b", "c", "d"].map((to_node) => ({ from_node: "a", to_node }));
  const graph = graphOf(manifest({ nodes: ["a", "b", "c", "d"].map(router), edges }));
  assert.deepEqual(
    graph.nodes.map((node) => node.rank),
    [0, 1, 2, 3],
  );
});

test("a chain of 20,000 nodes compiles without recursion", () => {
  const ids = Array.from({ length: limits.nodesMax }, (_, i) => `n${i}`);
  const edges = ids.slice(1).map((to_node, i) => ({ from_node: ids[i] ?? "", to_node }));
  const graph = graphOf(manifest({ nodes: ids.map(router), edges, entrypoints: ["n0"] }));
  assert.equal(graph.nodes.at(-1)?.rank, limits.nodesMax - 1);
});

function reaches(edges: readonly { from: number; to: number }[], from: number, to: number): boolean {
  const seen = new Set([from]);
  for (const node of seen) for (const edge of edges) if (edge.from === node) seen.add(edge.to);
  return seen.has(to);
}

test("a large manifest is read in steps of a few nodes or edges, with the same result as at once", () => {
  const names = Array.from({ length: 5_000 }, (_, n) => `n${n}`);
  const large = manifest({
    entrypoints: ["n0"],
    nodes: names.map((node_id) => ({ node_id, agent_type: "router" })),
    edges: names.slice(1).map((to_node, n) => ({ from_node: `n${n}`, to_node })),
  });
  const steps = manifestSteps(large);
  let count = 0;
  let step = steps.next();
  for (; !step.done; step = steps.next()) count++;
  // Nodes are read, indexed, ranked and put together, edges are read.
  assert.ok(count > (5 * names.length) / 70, `${count} steps`);
  assert.deepEqual(step.value, parseManifest(large));
});
