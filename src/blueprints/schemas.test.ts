// The JSON Schemas for editors, against the program's own judges: everything that ships is valid, and what the program
// refuses for its shape they refuse too.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { parseManifest } from "../engine/manifest.ts";
import { readLocalFolders, readWebUi } from "./describe-configuration.ts";
import { describePackage } from "./describe-package.ts";
import { configSchema, indexSchema } from "./schema-config.ts";
import { manifestSchema } from "./schema-manifest.ts";

const ajv = new Ajv2020({
  strict: true,
  strictTypes: false,
  strictTuples: false,
  strictRequired: false,
  allowUnionTypes: true,
  formats: { regex: isRegExp },
});
const isManifest = ajv.compile(manifestSchema);
const isConfig = ajv.compile(configSchema);
const isIndex = ajv.compile(indexSchema);

function isRegExp(text: string): boolean {
  try {
    new RegExp(text, "u");
    return true;
  } catch {
    return false;
  }
}

const read = (file: string): JsonValue => JSON.parse(readFileSync(file, "utf8")) as JsonValue;

const examples = join(import.meta.dirname, "../../examples");
for (const name of readdirSync(examples)) {
  const file = join(examples, name, "manifest.json");
  if (!existsSync(file)) continue;
  test(`the example ${name} is valid`, () => {
    assert.ok(isManifest(read(file)), JSON.stringify(isManifest.errors));
    const config = join(examples, name, "config/default.json");
    if (existsSync(config)) assert.ok(isConfig(read(config)), JSON.stringify(isConfig.errors));
  });
}

/** Every field that the manifest knows, each with a value that is allowed. */
const whole: JsonObject = {
  $schema: "http://127.0.0.1:54001/schemas/manifest.json",
  manifest_version: "1.0",
  graph_id: "whole",
  job_name: "Whole",
  type: "service",
  secrets: ["smtp.host", "accounts.pin"],
  entrypoints: ["route"],
  initial_inputs: { route: [{ n: 1 }] },
  nodes: [
    { node_id: "route", agent_type: "router", role: "Hands on", config: { emit_type: "t" } },
    {
      node_id: "gather",
      agent_type: "aggregator",
      config: {
        complete_after: 2,
        complete_on_message: false,
        output_message_type: "all",
        complete_run: true,
      },
    },
    {
      node_id: "wait",
      agent_type: "sensor",
      config: {
        complete_after: 3,
        interval_ms: 5,
        run_at: "2030-01-31T09:00:00Z",
        file: "flag",
        output_message_type: "x",
      },
    },
    {
      node_id: "boxed",
      agent_type: "executor",
      config: {
        command: "true",
        runner_module: "my.StrictSandbox",
        sandbox: {
          network: { allow: ["API.example.com:443", "*.example.org:1", "[::1]:65535"], check: true },
          read_only: ["/srv/data"],
          devices: ["/dev/dri/card0"],
          environment: ["API_KEY"],
          limits: { memory_mb: 1, processes: 8, file_mb: 1, cpu_seconds: 1, tmp_mb: 1 },
        },
      },
    },
    {
      node_id: "boxed-by-file",
      agent_type: "executor",
      config: { command: "true", runner_module: "OpenShell", policy: "policies/strict.json" },
    },
    {
      node_id: "work",
      agent_type: "executor",
      type: "stream",
      resources: {
        cpu: 0.5,
        memory_mb: 64,
        disk_mb: 1,
        gpu: 1,
        ports: [{ label: "http" }, { label: "fixed", port: 81 }],
      },
      services: [
        {
          name: "board",
          id: "one",
          port: 80,
          port_label: "http",
          address: "127.0.0.1",
          public_url: "http://localhost/",
          tags: ["v1"],
          meta: { a: 1 },
          checks: [
            {
              type: "http",
              name: "page",
              path: "/",
              method: "GET",
              expected_status: 200,
              contains: "ok",
              interval_ms: 1_000,
              timeout_ms: 100,
              failures_before_critical: 2,
              address: "localhost",
              port: 80,
            },
            { type: "grpc", service: "s" },
            { type: "script", command: ["true"] },
          ],
        },
      ],
      config: {
        command: ["python3", "x.py"],
        pool: "default",
        pool_slots: 1,
        node_labels: { zone: "a", "example.org/gpu": "" },
        timeout_seconds: 1,
        max_attempts: 2,
        retry_backoff_ms: 3,
        environment: { A: "1", B: 2, C: true },
        pass_env: ["TOKEN"],
        upload_path: "x",
        upload_as: "y",
        upload_paths: ["a", { path: "b", as: "c" }],
        workdir: "x",
        sandbox_upload_path: "/sandbox/job",
        runner_module: "HostLocal",
        output_message_type: "out",
        lifecycle: "long_lived",
        idempotent: true,
        safe_to_retry: true,
        run_events: false,
        optional: false,
      },
    },
    { node_id: "shell", agent_type: "executor", command: "echo hi", upload_path: "z" },
    {
      node_id: "call",
      agent_type: "module",
      config: { module: "m.mjs", timeout_seconds: 0, max_attempts: 1, retry_backoff_ms: 0, own: [1] },
    },
    { node_id: "thread", agent_type: "module", config: { module: "m.mjs", isolation: "thread", pool: 1 } },
    {
      node_id: "process",
      agent_type: "module",
      config: {
        module: "m.mjs",
        isolation: "process",
        sandbox: { limits: { memory_mb: 64 } },
        upload_path: "lib",
        upload_as: "l",
        upload_paths: ["data"],
        pool: "io",
        pool_slots: 2,
        node_labels: { zone: "a" },
        own: [1],
      },
    },
  ],
  edges: [{ edge_id: "e", from_node: "route", to_node: "work", message_type: "t" }],
  policies: {
    failure_policy: "continue",
    timeout_seconds: 5,
    placement_policy: "spread",
    recovery_mode: "manual_recover",
    recovery_policy: "cluster_recover",
  },
  outputs: ["a.csv", { path: "b.html", title: "B", primary: true }],
  services: { name: "whole", port: 1 },
  required_services: ["index", { name: "search", tags: ["a"], node: "n" }],
  metadata: {
    blueprint_id: "whole",
    name: "W",
    description: "d",
    version: "1",
    category: "c",
    tags: ["t"],
    own: 1,
  },
  input_schema: { type: "object" },
  config_schema: { type: "object" },
  requirements: {
    commands: ["python3"],
    environment: ["A"],
    platforms: ["linux"],
    cpu_cores: 1,
    memory_bytes: 1,
    disk_bytes: 1,
    pools: { gpu: 1 },
    models: ["m"],
    services: ["s", { name: "t", tags: [], node: "n" }],
  },
  resources: [{ name: "data", title: "Data", from: "d", prepare: ["make"], timeout_seconds: 1 }],
  models: [{ model_id: "m", path: "/m", sha256: "a".repeat(64) }],
  input_validation: {
    rules: [
      {
        path: "a.b",
        required: true,
        type: "string",
        enum: ["a"],
        min: 1,
        max: 2,
        pattern: "^a",
        exists: "file",
        extensions: [".a"],
        message: "m",
      },
    ],
  },
};

/** The same for a configuration. */
const wholeConfig: JsonObject = {
  identity: { blueprint_id: "whole", name: "W", description: "d", version: "1", category: "c", tags: ["t"] },
  local_inputs: {
    folders: [
      {
        config_path: "a.b",
        payload_path: "x/mn_local_inputs",
        runtime_path: "mn_local_inputs",
        allowed_extensions: [".md"],
        linked_config_paths: ["c"],
      },
    ],
  },
  web_ui: { enabled: true, output: { adapter: "static_html", title: "T", page: "x/page.html" } },
  a: { b: "" },
};

/** Mistakes that a JSON Schema cannot see, or that are beyond the shape of a document. */
const beyondShape = new Set([
  "duplicate",
  "contradiction",
  "unknown_node",
  "unknown_entrypoint",
  "invalid_time",
  "invalid_url",
  "no_body",
  "no_command",
  "no_sandbox",
  "not_allowed",
  "path_not_allowed",
  "not_uploaded",
  "overlaps",
  "invalid_schema",
]);

const manifestMistakes = (value: JsonValue): readonly string[] => {
  const parsed = parseManifest(value);
  if (parsed.kind === "invalid") return parsed.problems.map(({ code }) => code);
  const manifest = value as JsonObject;
  const definition = { graph: parsed.graph, manifest, manifestJson: "", configuration: null, jsonChars: 0 };
  return describePackage(definition, "folder").problems.map(({ code }) => code);
};

const configMistakes = (value: JsonValue): readonly string[] => {
  const parsed = parseManifest(whole);
  assert.ok(parsed.kind === "valid" && isObject(value));
  const configuration = value as JsonObject;
  const definition = { graph: parsed.graph, manifest: {}, manifestJson: "", configuration, jsonChars: 0 };
  const described = describePackage({ ...definition, manifest: {} }, "folder").problems;
  const folders = readLocalFolders(configuration, parsed.graph).problems;
  const webUi = readWebUi(configuration, { name: "W" }).problems;
  return [...described, ...folders, ...webUi].map(({ code }) => code);
};

test("a manifest and a configuration with every field are valid for the program and for the schema", () => {
  assert.deepEqual(manifestMistakes(whole), []);
  assert.ok(isManifest(whole), JSON.stringify(isManifest.errors));
  assert.deepEqual(configMistakes(wholeConfig), []);
  assert.ok(isConfig(wholeConfig), JSON.stringify(isConfig.errors));
});

type Place = readonly (string | number)[];

/** Every place of a document, the document itself left out. */
function placesOf(value: JsonValue, place: Place = []): readonly Place[] {
  const entries: readonly (readonly [string | number, JsonValue])[] = Array.isArray(value)
    ? value.map((item: JsonValue, i) => [i, item] as const)
    : isObject(value)
      ? Object.entries(value)
      : [];
  return entries.flatMap(([key, item]) => [[...place, key], ...placesOf(item, [...place, key])]);
}

/** The document with another value at a place; undefined takes it away. */
function changed(value: JsonValue, [key, ...rest]: Place, to: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) {
    return value.flatMap((item: JsonValue, i) => (i !== key ? [item] : inside(item, rest, to)));
  }
  const entries = Object.entries(value as JsonObject).flatMap(([name, item]) =>
    name !== key ? [[name, item] as const] : inside(item, rest, to).map((one) => [name, one] as const),
  );
  return Object.fromEntries(entries);
}

function inside(item: JsonValue, rest: Place, to: JsonValue | undefined): readonly JsonValue[] {
  if (rest.length > 0) return [changed(item, rest, to)];
  return to === undefined ? [] : [to];
}

const replacements: readonly (JsonValue | undefined)[] = [
  undefined,
  null,
  true,
  0,
  -1,
  1.5,
  1e300,
  "",
  "x",
  "/absolute",
  "x".repeat(5_000),
  [],
  [1],
  [""],
  {},
  { x: 1 },
];

/** What the judge refuses for its shape, the schema refuses; checked for every place and every replacement. */
function assertAgreement(
  document: JsonObject,
  mistakes: (value: JsonValue) => readonly string[],
  schema: (value: JsonValue) => boolean,
): void {
  const passed: string[] = [];
  let refused = 0;
  for (const place of placesOf(document)) {
    for (const to of replacements) {
      const value = changed(document, place, to);
      const shape = mistakes(value).filter((code) => !beyondShape.has(code));
      if (shape.length === 0) continue;
      refused++;
      if (schema(value)) passed.push(`/${place.join("/")} = ${JSON.stringify(to)?.slice(0, 20)}: ${shape}`);
    }
  }
  assert.deepEqual(passed, []);
  assert.ok(refused > 100, `the judge refused ${refused} changes`);
}

test("what the program refuses in a manifest for its shape, the schema refuses", () => {
  assertAgreement(whole, manifestMistakes, (value) => isManifest(value));
});

test("what the program refuses in a configuration for its shape, the schema refuses", () => {
  assertAgreement(wholeConfig, configMistakes, (value) => isConfig(value));
});

test("an index is a list of folders", () => {
  assert.ok(isIndex({ blueprints: ["a", { path: "b/c" }] }));
  for (const wrong of [
    [],
    {},
    { blueprints: {} },
    { blueprints: [1] },
    { blueprints: ["/a"] },
    { blueprints: [{}] },
  ]) {
    assert.ok(!isIndex(wrong), JSON.stringify(wrong));
  }
});

test("every field has a description, so that editors have something to show", () => {
  const silent: string[] = [];
  const look = (schema: JsonValue, place: string): void => {
    if (!isObject(schema)) return;
    const isField = place.includes("/properties/") && !place.includes("/then/") && !place.includes("/if/");
    const own = place.split("/").at(-2) === "properties";
    if (isField && own && schema.description === undefined && schema.anyOf === undefined) silent.push(place);
    for (const [key, value] of Object.entries(schema)) look(value, `${place}/${key}`);
  };
  for (const schema of [manifestSchema, configSchema, indexSchema]) look(schema, "");
  assert.deepEqual(silent, []);
});
