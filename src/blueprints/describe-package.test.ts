// What a package says of itself: every field, and every mistake with its place.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { countTurns, endEachSlice } from "../../test/support/turns.ts";
import type { Definition } from "../bundles/definition.ts";
import type { JsonObject, JsonValue } from "../engine/json.ts";
import { parseManifest } from "../engine/manifest.ts";
import { readLocalFolders, readWebUi } from "./describe-configuration.ts";
import { describePackage, descriptionOf } from "./describe-package.ts";

/** A package whose node uploads worker/. */
function definitionOf(manifest: JsonObject = {}, configuration: JsonObject | null = null): Definition {
  const whole: JsonObject = {
    manifest_version: "1.0",
    graph_id: "graph",
    entrypoints: ["work"],
    nodes: [
      { node_id: "work", agent_type: "executor", config: { command: ["true"], upload_path: "worker" } },
    ],
    ...manifest,
  };
  const parsed = parseManifest(whole);
  assert.ok(parsed.kind === "valid", JSON.stringify(parsed));
  const manifestJson = JSON.stringify(whole);
  return {
    graph: parsed.graph,
    manifest: whole,
    manifestJson,
    configuration,
    jsonChars: manifestJson.length,
  };
}

const described = (manifest: JsonObject, configuration: JsonObject | null = null, folder = "folder") =>
  describePackage(definitionOf(manifest, configuration), folder);

/** A schema in which each definition asks for the next one twice. */
function doubled(times: number): JsonObject {
  const twice = (n: number) => ({ allOf: [{ $ref: `#/$defs/d${n}` }, { $ref: `#/$defs/d${n}` }] });
  const defs = Array.from({ length: times }, (_, n) => [`d${n}`, n + 1 < times ? twice(n + 1) : {}]);
  return { ...twice(0), $defs: Object.fromEntries(defs) };
}

/** Paths and codes of the problems. */
const wrong = (manifest: JsonObject, configuration: JsonObject | null = null) =>
  described(manifest, configuration).problems.map(({ path, code }) => `${path} ${code}`);

test("a package without an identity is described by its folder and its graph", () => {
  const { description, problems, warnings } = described({}, null, "word-count");
  assert.deepEqual([problems, warnings], [[], []]);
  assert.deepEqual(description, {
    identity: {
      blueprintId: "word-count",
      name: "word-count",
      description: "",
      version: null,
      category: null,
      tags: [],
    },
    inputSchema: null,
    configSchema: null,
    requirements: {
      commands: [],
      environment: [],
      platforms: [],
      cpuCores: null,
      memoryBytes: null,
      diskBytes: null,
      pools: {},
      models: [],
      services: [],
    },
    resources: [],
    models: [],
    inputRules: [],
  });
});

test("config identity wins over manifest metadata, field by field", () => {
  const metadata = { blueprint_id: "from-manifest", name: "Manifest", version: "1", tags: ["a"], more: 1 };
  const identity = { blueprint_id: "from-config", description: "Said in the configuration", tags: [] };
  const { identity: read } = described({ job_name: "Job", metadata }, { identity });
  assert.deepEqual(read, {
    blueprintId: "from-config",
    name: "Manifest",
    description: "Said in the configuration",
    version: "1",
    category: null,
    tags: [],
  });
  assert.equal(described({ job_name: "Job" }).identity.name, "Job");
});

test("a folder whose name is no id gives the characters that an id may have, with a warning", () => {
  for (const [folder, id] of [
    ["My Reports (2)", "my-reports-2"],
    ["_x", "x"],
    ["Ünïcode", "n-code"],
    ["日本", "blueprint"],
    [`${"a".repeat(80)}`, "a".repeat(64)],
  ] as const) {
    const { identity, warnings } = described({}, null, folder);
    assert.equal(identity.blueprintId, id);
    assert.deepEqual(
      warnings.map(({ path, code }) => `${path} ${code}`),
      ["/config/default.json#/identity/blueprint_id no_id"],
    );
  }
});

test("everything that a manifest declares is read", () => {
  const { description, problems, warnings } = described({
    input_schema: { type: "object", properties: { n: { type: "integer" } } },
    config_schema: { $schema: "http://json-schema.org/draft-07/schema#", type: "object" },
    requirements: {
      commands: ["python3"],
      environment: ["TOKEN"],
      platforms: ["linux", "darwin"],
      cpu_cores: 2,
      memory_bytes: 1,
      disk_bytes: 1,
      pools: { gpu: 1 },
      models: ["tiny"],
      services: ["index", { name: "search", tags: ["v2"], node: "a" }],
    },
    required_services: ["index"],
    resources: [{ name: "data", title: "Data", from: "data", prepare: ["python3", "make.py"] }],
    models: [{ model_id: "tiny", path: "/models/tiny.gguf", sha256: "A".repeat(64) }],
    input_validation: {
      rules: [{ path: "a.b", required: true, type: "integer", min: 1, max: 2, extensions: [".CSV", ".csv"] }],
    },
  });
  assert.deepEqual([problems, warnings], [[], []]);
  assert.ok(description !== null);
  assert.deepEqual(description.requirements.services, [
    { name: "index", tags: [], node: null },
    { name: "search", tags: ["v2"], node: "a" },
  ]);
  assert.deepEqual(description.requirements.pools, { gpu: 1 });
  assert.deepEqual(description.resources, [
    { name: "data", title: "Data", from: "data", prepare: ["python3", "make.py"], timeoutSeconds: 600 },
  ]);
  assert.deepEqual(description.models, [
    { modelId: "tiny", path: "/models/tiny.gguf", sha256: "a".repeat(64) },
  ]);
  assert.deepEqual(description.inputRules, [
    {
      path: "a.b",
      required: true,
      type: "integer",
      enum: null,
      min: 1,
      max: 2,
      pattern: null,
      exists: null,
      extensions: [".csv"],
      message: null,
    },
  ]);
});

const manifestMistakes: readonly (readonly [JsonObject, string])[] = [
  [{ metadata: { blueprint_id: "No Id" } }, "/metadata/blueprint_id invalid_value"],
  [{ metadata: { tags: "a" } }, "/metadata/tags wrong_type"],
  [{ metadata: { tags: ["a", "a"] } }, "/metadata/tags/1 invalid_value"],
  [{ input_schema: [] }, "/input_schema wrong_type"],
  [{ input_schema: { type: "objct" } }, "/input_schema invalid_schema"],
  [{ input_schema: { $ref: "https://example.org/x.json" } }, "/input_schema invalid_schema"],
  [{ input_schema: { properties: { a: { pattern: "(" } } } }, "/input_schema invalid_schema"],
  [{ config_schema: { $async: true } }, "/config_schema invalid_schema"],
  [{ config_schema: { description: "x".repeat(70_000) } }, "/config_schema invalid_schema"],
  [{ config_schema: { $ref: "#" } }, "/config_schema invalid_schema"],
  [
    { config_schema: { oneOf: Array.from({ length: 3_500 }, (_, i) => ({ const: i })) } },
    "/config_schema invalid_schema",
  ],
  [{ requirements: "python3" }, "/requirements wrong_type"],
  [{ requirements: { commands: ["/bin/sh"] } }, "/requirements/commands/0 invalid_value"],
  [{ requirements: { commands: [1] } }, "/requirements/commands/0 wrong_type"],
  [{ requirements: { environment: ["A=B"] } }, "/requirements/environment/0 invalid_value"],
  [{ requirements: { platforms: ["windows"] } }, "/requirements/platforms/0 invalid_value"],
  [{ requirements: { cpu_cores: 0 } }, "/requirements/cpu_cores out_of_range"],
  [{ requirements: { memory_bytes: 1.5 } }, "/requirements/memory_bytes out_of_range"],
  [{ requirements: { pools: { gpu: 0 } } }, "/requirements/pools/gpu out_of_range"],
  [{ requirements: { services: [{ tags: [] }] } }, "/requirements/services/0/name missing"],
  [{ resources: [{}] }, "/resources/0/name missing"],
  [{ resources: [{ name: "../x" }] }, "/resources/0/name invalid_value"],
  [{ resources: [{ name: "a" }, { name: "a" }] }, "/resources/1/name duplicate"],
  [{ resources: [{ name: "a", from: "../x" }] }, "/resources/0/from path_outside"],
  [{ resources: [{ name: "a", prepare: "make" }] }, "/resources/0/prepare wrong_type"],
  [{ resources: [{ name: "a", prepare: [] }] }, "/resources/0/prepare empty"],
  [{ resources: [{ name: "a", prepare: ["x", 1] }] }, "/resources/0/prepare/1 wrong_type"],
  [{ resources: [{ name: "a", timeout_seconds: 0 }] }, "/resources/0/timeout_seconds out_of_range"],
  [{ models: [{ model_id: "m" }] }, "/models/0/path missing"],
  [{ models: [{ model_id: "m", path: "../m" }] }, "/models/0/path path_outside"],
  [{ models: [{ model_id: "m", path: "m", sha256: "12" }] }, "/models/0/sha256 invalid_value"],
  [{ models: new Array(101).fill({ model_id: "m", path: "m" }) }, "/models too_many"],
  [
    { input_validation: { rules: [{ type: "text", path: "a" }] } },
    "/input_validation/rules/0/type unknown_value",
  ],
  [{ input_validation: { rules: [{}] } }, "/input_validation/rules/0/path missing"],
  [{ input_validation: { rules: [{ path: "a..b" }] } }, "/input_validation/rules/0/path invalid_value"],
  [
    { input_validation: { rules: [{ path: "__proto__.a" }] } },
    "/input_validation/rules/0/path invalid_value",
  ],
  [{ input_validation: { rules: [{ path: "a", enum: [] }] } }, "/input_validation/rules/0/enum empty"],
  [
    { input_validation: { rules: [{ path: "a", min: 2, max: 1 }] } },
    "/input_validation/rules/0/min contradiction",
  ],
  [
    { input_validation: { rules: [{ path: "a", pattern: "(" }] } },
    "/input_validation/rules/0/pattern invalid_pattern",
  ],
  [
    { input_validation: { rules: [{ path: "a", pattern: "a".repeat(1_001) }] } },
    "/input_validation/rules/0/pattern too_long",
  ],
  [
    { input_validation: { rules: [{ path: "a", extensions: ["csv"] }] } },
    "/input_validation/rules/0/extensions/0 invalid_value",
  ],
];

for (const [manifest, expected] of manifestMistakes) {
  test(`a mistake is told with its place: ${expected}`, () => {
    assert.deepEqual(wrong(manifest), [expected]);
    assert.equal(described(manifest).description, null);
  });
}

test("a schema that doubles at each step is checked for a limited time, and accepted", () => {
  assert.deepEqual(wrong({ config_schema: doubled(40) }), []);
});

test("all mistakes are reported at once, those of the manifest and those of the configuration", () => {
  const problems = wrong(
    { requirements: { cpu_cores: "two" }, models: {} },
    { identity: { blueprint_id: "A" }, web_ui: { enabled: "yes" } },
  );
  assert.deepEqual(problems, [
    "/requirements/cpu_cores wrong_type",
    "/models wrong_type",
    "/config/default.json#/identity/blueprint_id invalid_value",
    "/config/default.json#/web_ui/enabled wrong_type",
  ]);
});

test("an unknown field is a warning with the nearest name, and no problem", () => {
  const { warnings, description } = described(
    { requirements: { comands: ["x"] }, resources: [{ name: "a", form: "b" }], _note: 1 },
    { web_ui: { enabled: true, ouput: {} }, local_inputs: { folder: [] }, mine: 1 },
  );
  assert.notEqual(description, null);
  assert.deepEqual(
    warnings.map(({ path, message }) => [path, /did you mean "(\w+)"/.exec(message)?.[1]]),
    [
      ["/requirements/comands", "commands"],
      ["/resources/0/form", "from"],
      ["/config/default.json#/local_inputs/folder", "folders"],
      ["/config/default.json#/web_ui/ouput", "output"],
    ],
  );
});

test("an unknown field of the graph is a warning, with the nearest name, and a note of one's own is none", () => {
  const { warnings, description } = described({
    entrypoints: ["a"],
    "x-owner": "me",
    metadata: { anything: 1 },
    extensions: ["a"],
    nodes: [
      {
        node_id: "a",
        agent_type: "executor",
        comand: "x",
        config: { command: ["x"], max_atempts: 2, environment: { comand: "1" }, emit_type: 1, _note: 1 },
        services: [{ name: "s", port: 1, checks: [{ type: "http", intervall_ms: 1 }] }],
      },
      { node_id: "b", agent_type: "router", config: { emitt_type: "t", when: "x" } },
      { node_id: "c", agent_type: "module", config: { module: "m.mjs", mine: 1, max_atempts: 2 } },
    ],
    edges: [{ from_node: "a", to_node: "b", mesage_type: "t", condition: "x > 1", routing: {} }],
    policies: { failure_polcy: "continue" },
    entrypoint: "a",
    schedule: "0 * * * *",
    triggers: [],
  });
  assert.notEqual(description, null);
  assert.deepEqual(
    warnings.map(({ path, message }) => [path, /did you mean "(\w+)"/.exec(message)?.[1]]),
    [
      ["/nodes/0/comand", "command"],
      ["/nodes/0/config/max_atempts", "max_attempts"],
      ["/nodes/0/config/emit_type", undefined],
      ["/nodes/0/services/0/checks/0/intervall_ms", "interval_ms"],
      ["/nodes/1/config/emitt_type", "emit_type"],
      ["/nodes/1/config/when", undefined],
      ["/nodes/2/config/max_atempts", "max_attempts"],
      ["/edges/0/mesage_type", "message_type"],
      ["/edges/0/condition", undefined],
      ["/edges/0/routing", undefined],
      ["/policies/failure_polcy", "failure_policy"],
      ["/entrypoint", "entrypoints"],
      ["/schedule", undefined],
      ["/triggers", undefined],
    ],
  );
});

test("a misspelt field is found after any number of names that are unlike a known one", () => {
  const names = Array.from({ length: 1_001 }, (_, i) => `n${i}`);
  const { warnings } = described({
    initial_inputs: Object.fromEntries(names.map((name) => [name, {}])),
    entrypoints: names,
    nodes: names.map((node_id) => ({ node_id, agent_type: "router" })),
    polices: {},
  });
  assert.deepEqual(
    warnings.map(({ path }) => path),
    ["/polices"],
  );
});

const foldersOf = (...folders: readonly JsonObject[]) =>
  readLocalFolders({ local_inputs: { folders } }, definitionOf().graph);
const folder = (more: JsonObject = {}): JsonObject => ({
  config_path: "documents.folder",
  payload_path: "worker/mn_local_inputs",
  runtime_path: "mn_local_inputs",
  ...more,
});

test("a local folder is read, its paths without a slash at the end, its extensions in lower case", () => {
  const { folders, problems } = foldersOf(
    folder({
      payload_path: "worker/mn_local_inputs/",
      allowed_extensions: [".MD"],
      linked_config_paths: ["a.b"],
    }),
  );
  assert.deepEqual(problems, []);
  assert.deepEqual(folders, [
    {
      configPath: "documents.folder",
      payloadPath: "worker/mn_local_inputs",
      runtimePath: "mn_local_inputs",
      allowedExtensions: [".md"],
      linkedConfigPaths: ["a.b"],
    },
  ]);
});

test("mistakes of local folders have their places in the configuration", () => {
  const table: readonly (readonly [JsonObject, string])[] = [
    [folder({ config_path: "" }), "/config_path empty"],
    [folder({ payload_path: "worker/.hidden" }), "/payload_path dot_prefixed"],
    [folder({ payload_path: "worker/../other" }), "/payload_path dot_prefixed"],
    [folder({ payload_path: "../worker" }), "/payload_path path_outside"],
    [folder({ payload_path: "/worker" }), "/payload_path path_outside"],
    [folder({ payload_path: "elsewhere" }), "/payload_path not_uploaded"],
    [folder({ payload_path: "worker2/in" }), "/payload_path not_uploaded"],
    [folder({ runtime_path: "./in" }), "/runtime_path dot_prefixed"],
    [folder({ runtime_path: 1 }), "/runtime_path wrong_type"],
    [folder({ allowed_extensions: [] }), "/allowed_extensions empty"],
    [folder({ allowed_extensions: ["md"] }), "/allowed_extensions/0 invalid_value"],
  ];
  for (const [given, expected] of table) {
    const found = foldersOf(given).problems.map(({ path, code }) => `${path} ${code}`);
    assert.deepEqual(found, [`/local_inputs/folders/0${expected}`]);
  }
});

test("a folder that no node uploads is a problem with what the nodes upload, and where it could be", () => {
  const [problem] = foldersOf(folder({ payload_path: "mn_local_inputs" })).problems;
  assert.match(problem?.message ?? "", /node "work" has the upload_path "worker"/);
  assert.match(problem?.message ?? "", /"worker\/mn_local_inputs" would be inside/);
});

test("a node that uploads the whole payload takes every folder along", () => {
  const node = { node_id: "work", agent_type: "executor", config: { command: ["true"], upload_path: "." } };
  const { graph } = definitionOf({ nodes: [node] });
  const anywhere = { local_inputs: { folders: [folder({ payload_path: "anywhere" })] } };
  assert.deepEqual(readLocalFolders(anywhere, graph).problems, []);
});

test("two folders with one place, or one in the other, are refused", () => {
  const inside = folder({ config_path: "b", payload_path: "worker/mn_local_inputs/b" });
  assert.deepEqual(
    foldersOf(folder(), inside, folder({ config_path: "b", payload_path: "worker/c" })).problems.map(
      ({ path, code }) => `${path} ${code}`,
    ),
    ["/local_inputs/folders/1/payload_path overlaps", "/local_inputs/folders/2/config_path duplicate"],
  );
});

test("the web interface is there when it is enabled, with the blueprint's name as its title", () => {
  const read = (webUi: JsonValue) => readWebUi({ web_ui: webUi }, { name: "Report" });
  assert.deepEqual(read({ enabled: true }).webUi, { adapter: "dashboard", title: "Report", page: null });
  assert.equal(read({ enabled: false, output: { title: "T" } }).webUi, null);
  assert.deepEqual(read({ enabled: true, output: { adapter: "static_html", page: "ui/index.html" } }).webUi, {
    adapter: "static_html",
    title: "Report",
    page: "ui/index.html",
  });
  assert.equal(readWebUi({}, { name: "Report" }).webUi, null);
  const wrongOnes = [
    [{ enabled: true, output: { adapter: "static_html" } }, "/web_ui/output/page missing"],
    [{ enabled: true, output: { adapter: "html" } }, "/web_ui/output/adapter unknown_value"],
    [
      { enabled: true, output: { adapter: "static_html", page: "../x.html" } },
      "/web_ui/output/page path_outside",
    ],
    ["on", "/web_ui wrong_type"],
  ] as const;
  for (const [webUi, expected] of wrongOnes) {
    const { problems, webUi: none } = read(webUi);
    assert.equal(none, null);
    assert.deepEqual(
      problems.map(({ path, code }) => `${path} ${code}`),
      [expected],
    );
  }
  assert.deepEqual(
    read({ output: { title: "T" } }).warnings.map(({ code }) => code),
    ["missing"],
  );
});

test("a definition is described once", async () => {
  const definition = definitionOf();
  const first = await descriptionOf(definition, "a");
  assert.equal(await descriptionOf(definition, "a"), first);
  assert.equal((await descriptionOf(definition, "b")).identity.blueprintId, "b");
  assert.equal((await descriptionOf(definitionOf())).identity.blueprintId, "graph");
});

test("a large manifest is described in slices, with what is odd at its end", async (t) => {
  const nodes = Array.from({ length: 1_000 }, (_, n) => ({ node_id: `n${n}`, agent_type: "router" }));
  const last = { node_id: "work", agent_type: "router", rol: "x" };
  const definition = definitionOf({ nodes: [...nodes, last] });
  using counted = countTurns();
  endEachSlice(t);
  const { warnings } = await descriptionOf(definition);
  assert.deepEqual(
    warnings.map(({ path }) => path),
    ["/nodes/1000/rol"],
  );
  assert.ok(counted.turns >= 10, `${counted.turns} turns`);
});

test("whatever the declared fields hold, reading never throws, and a description means no problem", () => {
  const names = [
    "metadata",
    "input_schema",
    "config_schema",
    "requirements",
    "resources",
    "models",
    "input_validation",
  ];
  const keys = fc.constantFrom("name", "path", "rules", "commands", "pools", "folders", "enabled", "output");
  const value = fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<JsonValue>(null, true, 0, -1, "", "a", "../x", "\0"),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(keys, tie("value"), { maxKeys: 4 }),
    ),
  })).value;
  const definition = definitionOf();
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom(...names), value),
      fc.dictionary(fc.constantFrom("identity", "local_inputs", "web_ui"), value),
      (manifest, configuration) => {
        const given = { ...definition, manifest: { ...definition.manifest, ...manifest }, configuration };
        const { description, problems } = describePackage(given, "folder");
        assert.equal(description === null, problems.length > 0);
        for (const { path, message } of problems) assert.ok(path.startsWith("/") && message.length > 10);
      },
    ),
    { numRuns: 300 },
  );
});

test("a linked_config_path that repeats the config_path, and a web interface that is off, harm nothing", () => {
  const given = folder({ linked_config_paths: ["a.b", "documents.folder"] });
  const { folders, problems } = foldersOf(given);
  assert.deepEqual([problems, folders[0]?.linkedConfigPaths], [[], ["a.b"]]);
  const off = readWebUi({ web_ui: { enabled: false, output: { adapter: "later" } } }, { name: "n" });
  assert.deepEqual([off.webUi, off.problems], [null, []]);
});
