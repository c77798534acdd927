import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, homedir, hostname, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { isWithheldVariable } from "../engine/graph.ts";
import { workersEnvironment } from "./bucket-credentials.ts";
import { type Command, type Config, describeConfig, loadConfig } from "./config.ts";
import { table } from "./config-table.ts";

type Env = Record<string, string | undefined>;

function load(env: Env, command: Command = "up"): Config {
  const loaded = loadConfig(env, command);
  assert.equal(loaded.kind, "ok", loaded.kind === "invalid" ? loaded.problems.join("\n") : "");
  return (loaded as Extract<typeof loaded, { kind: "ok" }>).config;
}

function problems(env: Env, command: Command = "up"): readonly string[] {
  const loaded = loadConfig(env, command);
  return loaded.kind === "invalid" ? loaded.problems : [];
}

/** Variable, field, its default, and texts with the values they mean. */
const rows: readonly (readonly [string, keyof Config, unknown, readonly (readonly [string, unknown])[]])[] = [
  [
    "SVC_HOME",
    "home",
    join(homedir(), ".troupe"),
    [
      ["/srv/t", "/srv/t"],
      ["~/t", join(homedir(), "t")],
      ["~", homedir()],
      ["t", resolve("t")],
    ],
  ],
  [
    "SVC_API_PORT",
    "apiPort",
    54001,
    [
      ["0", 0],
      ["65535", 65535],
    ],
  ],
  [
    "SVC_RUNTIME_API_PORT",
    "runtimeApiPort",
    4000,
    [
      ["0", 0],
      ["8080", 8080],
      [" 8080 ", 8080],
    ],
  ],
  ["SVC_GRPC_PORT", "grpcPort", 55051, [["0", 0]]],
  [
    "SVC_API_HOST",
    "apiHost",
    "127.0.0.1",
    [
      ["localhost", "localhost"],
      ["::1", "::1"],
      ["[::1]", "::1"],
    ],
  ],
  ["SVC_RUNTIME_API_HOST", "runtimeApiHost", "127.0.0.1", [["127.0.0.2", "127.0.0.2"]]],
  ["SVC_GRPC_HOST", "grpcHost", "127.0.0.1", [["localhost", "localhost"]]],
  ["SVC_TLS_CERT", "tlsCert", null, []],
  ["SVC_TLS_KEY", "tlsKey", null, []],
  ["SVC_TLS_CLIENT_CA", "tlsClientCa", null, []],
  [
    "SVC_RUNTIME_API",
    "runtimeApi",
    "tcp",
    [
      ["tcp", "tcp"],
      ["socket", "socket"],
      ["off", "off"],
    ],
  ],
  ["SVC_RUNTIME_API_TOKEN", "runtimeApiToken", [], [["a,b", ["a", "b"]]]],
  ["SVC_RUNTIME_API_TOKEN_FILE", "runtimeApiTokenFile", null, []],
  [
    "SVC_ALLOW_REMOTE_RUNTIME",
    "allowRemoteRuntime",
    false,
    [
      ["true", true],
      ["1", true],
      ["false", false],
    ],
  ],
  [
    "SVC_ENV",
    "environment",
    "dev",
    [
      ["test", "test"],
      ["dev", "dev"],
    ],
  ],
  [
    "SVC_API_TOKEN",
    "apiToken",
    [],
    [
      ["abc", ["abc"]],
      ["new, old,\nolder\r\nnew", ["new", "old", "older"]],
    ],
  ],
  ["SVC_API_TOKEN_FILE", "apiTokenFile", null, []],
  [
    "SVC_SECRET_KEY",
    "secretKey",
    [],
    [
      ["0a".repeat(32), ["0a".repeat(32)]],
      [`${"A".repeat(43)}=`, [`${"A".repeat(43)}=`]],
      ["-_".repeat(21).concat("A"), ["-_".repeat(21).concat("A")]],
      [`${"0a".repeat(32)},${"0b".repeat(32)}`, ["0a".repeat(32), "0b".repeat(32)]],
    ],
  ],
  ["SVC_SECRET_KEY_FILE", "secretKeyFile", null, []],
  ["SVC_DATABASE_URL", "databaseUrl", null, [["postgres://a:b@h:5433/d?c=e", "postgres://a:b@h:5433/d?c=e"]]],
  [
    "SVC_BLOB_URL",
    "blobUrl",
    null,
    [["file:///srv/shared%20files/", { kind: "folder", path: "/srv/shared files" }]],
  ],
  ["SVC_DATABASE_POOLED", "databaseIsPooled", false, [["true", true]]],
  ["SVC_NODE_NAME", "nodeName", hostname(), [["node 1", "node 1"]]],
  [
    "SVC_NODE_LABELS",
    "nodeLabels",
    {},
    [["zone=a, ex.org/gpu = l4,x=", { zone: "a", "ex.org/gpu": "l4", x: "" }]],
  ],
  ["SVC_NODE_LEASE_SECONDS", "nodeLeaseSeconds", 15, [["10", 10]]],
  ["SVC_DRAIN_SECONDS", "drainSeconds", 30, [["0", 0]]],
  ["SVC_NODE_HOST", "nodeHost", "127.0.0.1", [["[::1]", "::1"]]],
  ["SVC_NODE_PORT", "nodePort", 55052, [["0", 0]]],
  [
    "SVC_NODE_ADDRESS",
    "nodeAddress",
    null,
    [
      ["node1.example.org:55052", "node1.example.org:55052"],
      ["10.0.0.1:7", "10.0.0.1:7"],
      ["[fe80::1]:065", "[fe80::1]:65"],
    ],
  ],
  ["SVC_NODE_TLS_CERT", "nodeTlsCert", null, []],
  ["SVC_NODE_TLS_KEY", "nodeTlsKey", null, []],
  ["SVC_NODE_TLS_CA", "nodeTlsCa", null, []],
  [
    "SVC_EXECUTOR_MAX_CONCURRENCY",
    "executorMaxConcurrency",
    Math.max(2, availableParallelism()),
    [
      ["1", 1],
      ["10000", 10000],
    ],
  ],
  ["SVC_EXECUTOR_POOL_CAPACITIES", "executorPoolCapacities", {}, [["gpu=1, io=8,", { gpu: 1, io: 8 }]]],
  ["SVC_SANDBOX_ENGINE", "sandboxEngine", "bubblewrap", [["gvisor", "gvisor"]]],
  ["SVC_REQUIRE_SANDBOX", "requireSandbox", false, [["true", true]]],
  [
    "SVC_BLUEPRINT_CATALOG",
    "blueprintCatalog",
    [fileURLToPath(new URL("../../examples", import.meta.url))],
    [["/a:/b:", ["/a", "/b"]]],
  ],
  ["SVC_BLUEPRINT_WEB_UI_PORT_START", "webUiPortStart", 61_000, [["61049", 61_049]]],
  ["SVC_BLUEPRINT_WEB_UI_PORT_END", "webUiPortEnd", 61_049, [["61000", 61_000]]],
  [
    "SVC_BLUEPRINT_WEB_UI_PORT_ALLOCATION_MODE",
    "webUiPortAllocationMode",
    "probe",
    [["prepublished", "prepublished"]],
  ],
  ["SVC_BLUEPRINT_WEB_UI_HOST", "webUiHost", "127.0.0.1", [["0.0.0.0", "0.0.0.0"]]],
  [
    "SVC_BLUEPRINT_WEB_UI_PUBLIC_URL",
    "webUiPublicUrl",
    "http://127.0.0.1:{port}/",
    [["https://desk.example.org/ui/{port}/", "https://desk.example.org/ui/{port}/"]],
  ],
  ["SVC_BUNDLE_MAX_BYTES", "bundleBytesMax", 536_870_912, [["1", 1]]],
  ["SVC_BUNDLES_MAX_BYTES", "bundlesBytesMax", 53_687_091_200, [["0", 0]]],
  ["SVC_BODY_MAX_BYTES", "bodyBytesMax", 5_242_880, [["1024", 1024]]],
  [
    "SVC_CORS_ORIGINS",
    "corsOrigins",
    [],
    [["https://a.example, http://localhost:5173/", ["https://a.example", "http://localhost:5173"]]],
  ],
  ["SVC_CONSOLE", "console", true, [["false", false]]],
  [
    "SVC_ALLOWED_HOSTS",
    "allowedHosts",
    [],
    [["Troupe.example.org, [fd00::7]", ["troupe.example.org", "fd00::7"]]],
  ],
  [
    "SVC_RATE_LIMIT",
    "requestsPerMinuteMax",
    0,
    [
      ["0", 0],
      ["600", 600],
    ],
  ],
  ["SVC_RETENTION_DAYS", "retentionDays", 30, [["0", 0]]],
  ["SVC_RETENTION_MAX_BYTES", "retentionBytesMax", 0, [["5000000000", 5_000_000_000]]],
  [
    "SVC_LOG_LEVEL",
    "logLevel",
    "info",
    [
      ["silent", "silent"],
      ["trace", "trace"],
    ],
  ],
  [
    "SVC_WORKER_ENV_PREFIXES",
    "workerEnvPrefixes",
    ["SVC_"],
    [
      ["ACME_", ["SVC_", "ACME_"]],
      ["SVC_,ACME_", ["SVC_", "ACME_"]],
    ],
  ],
];

function listOf(count: number): string {
  return Array.from({ length: count }, (_, n) => `token-${n}`).join(",");
}

/** Texts that no variable of that name accepts. */
const wrongTexts: Record<string, readonly string[]> = {
  SVC_HOME: ["a\0b"],
  SVC_API_PORT: ["65536", "-1", "eighty", "80.5", "0x50", "1e3"],
  SVC_RUNTIME_API_PORT: ["65536"],
  SVC_GRPC_PORT: ["65536"],
  SVC_API_HOST: ["http://a", "a b", "-a", "[::1"],
  SVC_RUNTIME_API_HOST: ["a/b"],
  SVC_GRPC_HOST: ["a:1"],
  SVC_TLS_CERT: ["/nowhere/at/all"],
  SVC_TLS_KEY: ["/nowhere/at/all"],
  SVC_TLS_CLIENT_CA: ["/nowhere/at/all"],
  SVC_RUNTIME_API: ["TCP", "on", "unix:/tmp/x"],
  SVC_RUNTIME_API_TOKEN: ["two words", ","],
  SVC_RUNTIME_API_TOKEN_FILE: ["/nowhere/at/all"],
  SVC_ALLOW_REMOTE_RUNTIME: ["yes", "TRUE", "__proto__"],
  SVC_ENV: ["production", "PROD"],
  SVC_API_TOKEN: ["two words", "naïve", "x".repeat(4097), ",", `${"t,".repeat(9)}two words`, listOf(17)],
  SVC_API_TOKEN_FILE: ["/nowhere/at/all", "/", "a\0b"],
  SVC_SECRET_KEY: [
    "short",
    "0a".repeat(31),
    "0a".repeat(33),
    "A".repeat(42),
    `${"A".repeat(44)}=`,
    "!".repeat(43),
    `${"0a".repeat(32)},short`,
  ],
  SVC_SECRET_KEY_FILE: ["/nowhere/at/all", "/", "a\0b"],
  SVC_DATABASE_URL: ["mysql://a/b", "nonsense", "postgres:///b", "postgres://a", "postgres://a:%zz@b/c"],
  SVC_BLOB_URL: [
    "/srv/shared",
    "file:///",
    "file://host/srv",
    "https://bucket/prefix",
    "s3:///prefix",
    "s3://UPPER_CASE",
    "s3://amy:hunter22@bucket",
    "s3://bucket/?acl=public",
    "s3://bucket/?endpoint=ftp://h",
    "s3://bucket/?endpoint=http://amy:hunter22@h",
    "s3://bucket/?region=EU%20west",
    "s3://bucket/a%2f..%2fb",
    "s3://bucket/%ff",
  ],
  SVC_DATABASE_POOLED: ["yes"],
  SVC_NODE_NAME: ["ä", "a\tb", "a".repeat(129)],
  SVC_NODE_LABELS: [
    "zone",
    "=a",
    "zone=a,zone=b",
    "zone=a b",
    ",",
    Array.from({ length: 65 }, (_, n) => `l${n}=1`).join(),
  ],
  SVC_NODE_LEASE_SECONDS: ["9", "301"],
  SVC_DRAIN_SECONDS: ["-1", "86401", "1.5"],
  SVC_NODE_HOST: ["a:1"],
  SVC_NODE_PORT: ["65536"],
  SVC_NODE_ADDRESS: ["a", "a:0", "a:65536", ":1", "fe80::1:65", "http://a:1", "a:1:2"],
  SVC_NODE_TLS_CERT: ["/nowhere/at/all", "/"],
  SVC_NODE_TLS_KEY: ["/nowhere/at/all", fileURLToPath(import.meta.url)],
  SVC_NODE_TLS_CA: ["/nowhere/at/all"],
  SVC_EXECUTOR_MAX_CONCURRENCY: ["0", "10001", "many"],
  SVC_EXECUTOR_POOL_CAPACITIES: [
    "gpu",
    "gpu=0",
    "gpu=10001",
    "=1",
    "gpu=1,gpu=2",
    "g pu=1",
    ",",
    "__proto__=1",
  ],
  SVC_SANDBOX_ENGINE: ["docker", "Gvisor", "podman"],
  SVC_REQUIRE_SANDBOX: ["yes"],
  SVC_BLUEPRINT_CATALOG: [":", "/a:b\0"],
  SVC_BLUEPRINT_WEB_UI_PORT_START: ["0", "1023", "65536", "61000-61049"],
  SVC_BLUEPRINT_WEB_UI_PORT_END: ["0", "65536"],
  SVC_BLUEPRINT_WEB_UI_PORT_ALLOCATION_MODE: ["look", "PROBE"],
  SVC_BLUEPRINT_WEB_UI_HOST: ["http://localhost", "a b"],
  SVC_BLUEPRINT_WEB_UI_PUBLIC_URL: ["http://127.0.0.1/", "ftp://a:{port}/", "http://a:{port}/?b", "{port}"],
  SVC_BUNDLE_MAX_BYTES: ["0", "512MiB"],
  SVC_BUNDLES_MAX_BYTES: ["-1", "50GiB"],
  SVC_BODY_MAX_BYTES: ["0", "536870913"],
  SVC_CORS_ORIGINS: ["*", "https://a.example/path", "ftp://a", "null", ","],
  SVC_CONSOLE: ["yes"],
  SVC_ALLOWED_HOSTS: ["https://a.example", "a.example:8443", "*.a.example", ","],
  SVC_RATE_LIMIT: ["-1", "10/s", "1.5", "10000001"],
  SVC_RETENTION_DAYS: ["-1", "36501"],
  SVC_RETENTION_MAX_BYTES: ["-1", "1G", "9007199254740992"],
  SVC_LOG_LEVEL: ["verbose", "INFO"],
  SVC_WORKER_ENV_PREFIXES: ["acme_", "ACME", "9_"],
};

describe("each variable", () => {
  for (const [variable, field, fallback, examples] of rows) {
    test(`${variable} has its default, also when it is empty`, () => {
      assert.deepEqual(load({})[field], fallback);
      assert.deepEqual(load({ [variable]: " " })[field], fallback);
      assert.deepEqual(load({ [variable]: "" }).fromEnvironment, []);
    });
    for (const [text, value] of examples) {
      test(`${variable}=${text} is understood`, () => {
        const config = load({ [variable]: text });
        assert.deepEqual(config[field], value);
        assert.deepEqual(config.fromEnvironment, [variable]);
      });
    }
    for (const text of wrongTexts[variable] ?? []) {
      test(`${variable}=${JSON.stringify(text).slice(0, 30)} is refused in one line with an example`, () => {
        const [line = "", ...others] = problems({ [variable]: text });
        assert.deepEqual(others, []);
        assert.ok(line.startsWith(`${variable}: `), line);
        assert.ok(line.includes(`Example: ${variable}=`), line);
        assert.ok(!line.includes("\n"));
      });
    }
  }

  test("the test covers every variable that troupe config prints", () => {
    assert.deepEqual(
      describeConfig(load({})).map((row) => row.variable),
      rows.map(([variable]) => variable),
    );
    assert.deepEqual(
      Object.keys(wrongTexts),
      rows.map(([variable]) => variable),
    );
  });
});

test("podman, which cannot make sandboxes, is refused with the reason", () => {
  const [line] = problems({ SVC_SANDBOX_ENGINE: "podman" });
  assert.match(line ?? "", /containers outlive the program.*docs\/sandbox\.md.*use bubblewrap, or gvisor/);
});

test("all wrong values are reported together", () => {
  const lines = problems({ SVC_API_PORT: "x", SVC_LOG_LEVEL: "y", SVC_RETENTION_DAYS: "z" });
  assert.deepEqual(
    lines.map((line) => line.split(":")[0]),
    ["SVC_API_PORT", "SVC_RETENTION_DAYS", "SVC_LOG_LEVEL"],
  );
});

test("the result and its lists are frozen", () => {
  const config = load({ SVC_EXECUTOR_POOL_CAPACITIES: "gpu=1", SVC_CORS_ORIGINS: "https://a.example" });
  for (const value of [config, ...Object.values(config)]) assert.ok(Object.isFrozen(value));
});

describe("pools", () => {
  test("the default pool has the slots of SVC_EXECUTOR_MAX_CONCURRENCY beside the named ones", () => {
    const config = load({ SVC_EXECUTOR_MAX_CONCURRENCY: "3", SVC_EXECUTOR_POOL_CAPACITIES: "gpu=1" });
    assert.deepEqual(config.executorPools, { default: 3, gpu: 1 });
  });
  test("default=… overrides SVC_EXECUTOR_MAX_CONCURRENCY", () => {
    const config = load({ SVC_EXECUTOR_MAX_CONCURRENCY: "3", SVC_EXECUTOR_POOL_CAPACITIES: "default=7" });
    assert.deepEqual(config.executorPools, { default: 7 });
  });
});

describe("the runtime API's door", () => {
  const prod = { SVC_ENV: "prod", SVC_API_TOKEN: "a-token-of-the-tests" };
  const token = { SVC_RUNTIME_API_TOKEN: "b-token-of-the-tests" };

  test("in prod it is the socket, or the port when there is a token; elsewhere the port", () => {
    assert.equal(load(prod).runtimeApi, "socket");
    assert.equal(load({ ...prod, ...token }).runtimeApi, "tcp");
    assert.equal(load({ ...prod, SVC_RUNTIME_API: "off" }).runtimeApi, "off");
    assert.equal(load({ SVC_ENV: "test" }).runtimeApi, "tcp");
    const row = describeConfig(load(prod)).find(({ variable }) => variable === "SVC_RUNTIME_API");
    assert.deepEqual([row?.value, row?.from], ["socket", "default"]);
  });

  test("its tokens are secrets like all others", () => {
    assert.deepEqual(load(token).secretTexts, ["b-token-of-the-tests"]);
    assert.ok(!JSON.stringify(describeConfig(load(token))).includes("b-token"));
  });
});

test("of two that have one port, the example is another port", () => {
  assert.match(problems({ SVC_API_PORT: "4000" }, "up")[0] ?? "", /Example: SVC_RUNTIME_API_PORT=4001$/);
});

describe("troupe runtime", () => {
  test("listens on 4000 by default", () => {
    assert.equal(load({}, "runtime").runtimeApiPort, 4000);
    assert.equal(load({}, "runtime").apiPort, 4000);
  });
  test("takes SVC_API_PORT and SVC_API_HOST, before SVC_RUNTIME_API_PORT and _HOST", () => {
    const env = { SVC_API_PORT: "4100", SVC_RUNTIME_API_PORT: "4200", SVC_API_HOST: "localhost" };
    assert.equal(load(env, "runtime").runtimeApiPort, 4100);
    assert.equal(load(env, "runtime").runtimeApiHost, "localhost");
    assert.equal(load({ SVC_RUNTIME_API_PORT: "4200" }, "runtime").apiPort, 4200);
  });
  test("is not confused with the gateway's port in troupe up", () => {
    const config = load({ SVC_API_PORT: "4100" }, "up");
    assert.deepEqual([config.apiPort, config.runtimeApiPort], [4100, 4000]);
  });
});

describe("what must not be combined", () => {
  const LONG = "a-token-of-the-tests";
  const DATABASE = "postgres://h/d";
  const folder = mkdtempSync(join(tmpdir(), "troupe-pem-"));
  after(() => rmSync(folder, { recursive: true }));
  const pem = join(folder, "any.pem");
  writeFileSync(pem, "-----BEGIN CERTIFICATE-----\n");
  const tls = { SVC_TLS_CERT: pem, SVC_TLS_KEY: pem };
  const refused: readonly (readonly [string, Env, Command, string])[] = [
    ["prod without a token", { SVC_ENV: "prod" }, "up", "SVC_API_TOKEN"],
    ["prod without a token, runtime alone", { SVC_ENV: "prod" }, "runtime", "SVC_API_TOKEN"],
    ["a remote gateway without a token", { SVC_API_HOST: "0.0.0.0" }, "up", "SVC_API_HOST"],
    ["a remote gateway without a token, alone", { SVC_API_HOST: "::" }, "gateway", "SVC_API_HOST"],
    ["a remote runtime", { SVC_RUNTIME_API_HOST: "0.0.0.0" }, "up", "SVC_RUNTIME_API_HOST"],
    ["a remote runtime, by SVC_API_HOST", { SVC_API_HOST: "10.0.0.1" }, "runtime", "SVC_API_HOST"],
    [
      "a remote runtime with a token",
      { SVC_RUNTIME_API_HOST: "10.0.0.1", SVC_API_TOKEN: "t" },
      "up",
      "SVC_RUNTIME_API_HOST",
    ],
    [
      "a remote gRPC port without TLS",
      { SVC_GRPC_HOST: "example.org", SVC_API_TOKEN: LONG },
      "up",
      "SVC_GRPC_HOST",
    ],
    ["a remote gRPC port without a token", { SVC_GRPC_HOST: "example.org", ...tls }, "up", "SVC_GRPC_HOST"],
    ["a certificate without its key", { SVC_TLS_CERT: pem }, "up", "SVC_TLS_CERT"],
    ["a key without its certificate", { SVC_TLS_KEY: pem }, "runtime", "SVC_TLS_KEY"],
    ["an authority without a certificate", { SVC_TLS_CLIENT_CA: pem }, "up", "SVC_TLS_CLIENT_CA"],
    ["the gateway at the port of gRPC", { SVC_API_PORT: "55051" }, "up", "SVC_GRPC_PORT"],
    ["one port for two APIs", { SVC_API_PORT: "4000" }, "up", "SVC_RUNTIME_API_PORT"],
    ["a runtime that serves nothing", { SVC_RUNTIME_API: "off" }, "runtime", "SVC_RUNTIME_API"],
    [
      "prod with the runtime API at a port for everybody",
      { SVC_ENV: "prod", SVC_API_TOKEN: LONG, SVC_RUNTIME_API: "tcp" },
      "up",
      "SVC_RUNTIME_API",
    ],
    [
      "prod with a short token of the runtime API",
      { SVC_ENV: "prod", SVC_API_TOKEN: LONG, SVC_RUNTIME_API_TOKEN: "short" },
      "up",
      "SVC_RUNTIME_API_TOKEN",
    ],
    [
      "a home whose path is too long for a socket in it",
      { SVC_HOME: `/${"x".repeat(100)}`, SVC_RUNTIME_API: "socket" },
      "up",
      "SVC_HOME",
    ],
    [
      "a range of dashboards' ports that ends before it begins",
      { SVC_BLUEPRINT_WEB_UI_PORT_START: "61050" },
      "up",
      "SVC_BLUEPRINT_WEB_UI_PORT_START",
    ],
    [
      "a port for nodes on other machines, without certificates",
      { SVC_DATABASE_URL: DATABASE, SVC_NODE_HOST: "10.0.0.1" },
      "up",
      "SVC_NODE_HOST",
    ],
    [
      "a port for nodes at no address",
      { SVC_DATABASE_URL: DATABASE, SVC_NODE_HOST: "0.0.0.0" },
      "up",
      "SVC_NODE_ADDRESS",
    ],
    [
      "one port for nodes and the gateway",
      { SVC_DATABASE_URL: DATABASE, SVC_NODE_PORT: "54001" },
      "up",
      "SVC_NODE_PORT",
    ],
    ["a gateway on a dashboard's port", { SVC_API_PORT: "61049" }, "gateway", "SVC_API_PORT"],
    ["a runtime API on a dashboard's port", { SVC_API_PORT: "61000" }, "runtime", "SVC_API_PORT"],
  ];
  for (const [name, env, command, variable] of refused) {
    test(`${name} is refused`, () => {
      const [line = "", ...others] = problems(env, command);
      assert.ok(line.startsWith(`${variable}: `), line);
      assert.match(line, /Example: SVC_/);
      assert.deepEqual(others, []);
    });
    test(`a client does not mind ${name}`, () => void load(env, "client"));
  }

  const allowed: readonly (readonly [string, Env, Command])[] = [
    ["prod with a token", { SVC_ENV: "prod", SVC_API_TOKEN: "a-token-of-the-tests" }, "up"],
    [
      "a remote runtime that asks for its own token",
      { SVC_RUNTIME_API_HOST: "0.0.0.0", SVC_RUNTIME_API_TOKEN: "t" },
      "up",
    ],
    ["any address for a socket", { SVC_RUNTIME_API_HOST: "0.0.0.0", SVC_RUNTIME_API: "socket" }, "up"],
    ["the gateway's port for a socket", { SVC_API_PORT: "4000", SVC_RUNTIME_API: "socket" }, "up"],
    ["the port of gRPC for the gateway alone", { SVC_API_PORT: "55051" }, "gateway"],
    [
      "a remote gRPC port with a token and TLS",
      { SVC_GRPC_HOST: "0.0.0.0", SVC_API_TOKEN: LONG, ...tls },
      "up",
    ],
    ["a remote gateway with a token", { SVC_API_HOST: "0.0.0.0", SVC_API_TOKEN: "t" }, "up"],
    [
      "a remote runtime that is allowed",
      { SVC_RUNTIME_API_HOST: "0.0.0.0", SVC_ALLOW_REMOTE_RUNTIME: "true" },
      "up",
    ],
    ["a gateway alone beside a remote runtime", { SVC_RUNTIME_API_HOST: "10.0.0.1" }, "gateway"],
    ["one port for dashboards", { SVC_BLUEPRINT_WEB_UI_PORT_END: "61000" }, "up"],
    ["an API after the dashboards' ports", { SVC_API_PORT: "61050" }, "up"],
    ["dashboards for other machines, which ask for a key", { SVC_BLUEPRINT_WEB_UI_HOST: "0.0.0.0" }, "up"],
    ["any free port three times", { SVC_API_PORT: "0", SVC_RUNTIME_API_PORT: "0", SVC_GRPC_PORT: "0" }, "up"],
    [
      "loopback in every spelling",
      { SVC_API_HOST: "127.9.9.9", SVC_RUNTIME_API_HOST: "[::1]", SVC_GRPC_HOST: "LOCALHOST" },
      "up",
    ],
  ];
  for (const [name, env, command] of allowed) test(`${name} is allowed`, () => void load(env, command));
});

describe("secrets", () => {
  const token = "correct-horse-battery";
  test("the token is masked in troupe config", () => {
    const shown = JSON.stringify(describeConfig(load({ SVC_API_TOKEN: token })));
    assert.ok(!shown.includes(token));
    assert.ok(shown.includes("********"));
  });
  test("the secret key is masked in troupe config, and a wrong one is not repeated", () => {
    const shown = JSON.stringify(describeConfig(load({ SVC_SECRET_KEY: "0a".repeat(32) })));
    assert.ok(!shown.includes("0a0a0a"));
    assert.ok(
      !problems({ SVC_SECRET_KEY: "0a".repeat(31) })
        .join("\n")
        .includes("0a0a0a"),
    );
  });
  test("the database's user and password are masked, the host is not", () => {
    const env = { SVC_DATABASE_URL: "postgres://amy:hunter22@db.example:5433/t?sslpassword=hunter33" };
    const row = describeConfig(load(env, "client")).find(({ variable }) => variable === "SVC_DATABASE_URL");
    assert.equal(row?.value, "postgres://********@db.example:5433/t?********");
  });
  test("a wrong secret is not repeated in its problem", () => {
    const env = { SVC_API_TOKEN: `${token} x`, SVC_DATABASE_URL: "mysql://amy:hunter22@db/t" };
    assert.ok(!/horse|hunter22/.test(problems(env).join("\n")));
    assert.equal(problems(env).length, 2);
  });
});

describe("a bucket for files", () => {
  const keys = {
    AWS_ACCESS_KEY_ID: "AKIAQUITESECRET",
    AWS_SECRET_ACCESS_KEY: "quite/secret+key",
    AWS_SESSION_TOKEN: "secret-session",
  };
  const placed = (url: string) => load({ ...keys, SVC_BLOB_URL: url }).blobUrl;
  test("is named by its address, with the region and where it is", () => {
    const bucket = { bucket: "my-bucket", prefix: "", endpoint: null, region: "us-east-1" };
    assert.deepEqual(placed("s3://my-bucket"), { kind: "s3", place: bucket });
    const url = "s3://b.ucket/a//b%20c/?endpoint=http://127.0.0.1:9000&region=eu-1";
    const place = { bucket: "b.ucket", prefix: "a/b c/", endpoint: "http://127.0.0.1:9000", region: "eu-1" };
    assert.deepEqual(placed(url), { kind: "s3", place });
  });
  test("needs credentials, of which none is shown or repeated, and a client needs none", () => {
    const env = { ...keys, SVC_BLOB_URL: "s3://b-ucket" };
    const config = load(env);
    assert.deepEqual(Object.values(config.blobCredentials ?? {}), Object.values(keys));
    for (const secret of Object.values(keys)) {
      assert.ok(config.secretTexts.includes(secret));
      assert.ok(!JSON.stringify(describeConfig(config)).includes(secret));
    }
    const [line = ""] = problems({ ...env, AWS_SECRET_ACCESS_KEY: " " });
    assert.match(line, /needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/);
    const [broken = ""] = problems({ ...env, AWS_SECRET_ACCESS_KEY: "quite secret" });
    assert.ok(broken.startsWith("AWS_SECRET_ACCESS_KEY: ") && !broken.includes("quite"), broken);
    assert.equal(load({ SVC_BLOB_URL: "s3://b-ucket" }, "client").blobCredentials, null);
  });
  test("keeps its credentials from workers; without one the variables are theirs", () => {
    const env = { ...keys, PATH: "/bin", AWS_REGION: "eu-1" };
    const config = load({ ...env, SVC_BLOB_URL: "s3://b-ucket" });
    const given = workersEnvironment(env, config.blobCredentials);
    assert.deepEqual(given, { PATH: "/bin", AWS_REGION: "eu-1" });
    const without = load(env);
    assert.deepEqual(workersEnvironment(env, without.blobCredentials), env);
    assert.ok(!without.secretTexts.includes(keys.AWS_SECRET_ACCESS_KEY));
  });
});

describe("unknown variables", () => {
  const warnings = (env: Env) => loadConfig(env, "up").warnings;
  test("one that looks misspelt is named with the nearest", () => {
    assert.deepEqual(warnings({ SVC_HOEM: "/x" }), [
      "SVC_HOEM is not a variable of this program; did you mean SVC_HOME?",
    ]);
    assert.match(warnings({ SVC_RETENTION_DAY: "3" })[0] ?? "", /SVC_RETENTION_DAYS/);
    assert.match(warnings({ svc_home: "/x" })[0] ?? "", /SVC_HOME/);
  });
  test("one that resembles none is left alone", () => {
    assert.deepEqual(warnings({ SVC_JOB_ID: "1", SVC_RUN_ID: "2", SVC_INPUT_FILE: "3", SVCHOME: "4" }), []);
  });
});

test("troupe config distinguishes defaults from settings, and explains each", () => {
  const shown = describeConfig(
    load({ SVC_EXECUTOR_POOL_CAPACITIES: "gpu=1,io=8", SVC_CORS_ORIGINS: "http://a,http://b" }),
  );
  const byName = new Map(shown.map((row) => [row.variable, row]));
  assert.equal(byName.get("SVC_EXECUTOR_POOL_CAPACITIES")?.value, "gpu=1,io=8");
  assert.equal(byName.get("SVC_EXECUTOR_POOL_CAPACITIES")?.from, "environment");
  assert.equal(byName.get("SVC_CORS_ORIGINS")?.value, "http://a,http://b");
  assert.equal(byName.get("SVC_DATABASE_URL")?.value, "(unset)");
  assert.equal(byName.get("SVC_API_PORT")?.from, "default");
  for (const row of shown) assert.ok(row.meaning.length > 10);
});

test("every setting that holds a secret, or names a file with one, is withheld from workers", () => {
  const variables = Object.values(table).map(({ variable }) => variable);
  const secret = variables.filter((name) => /TOKEN|SECRET|PASSWORD|CREDENTIAL|KEY|DATABASE_URL/.test(name));
  assert.ok(secret.includes("SVC_API_TOKEN") && secret.includes("SVC_SECRET_KEY_FILE"), String(secret));
  // What `troupe config` does not show as it is.
  const hidden = Object.values(table).filter(
    ({ show, example }) => show !== undefined && /[*]{4}/.test(`${shownBy(show, example)}`),
  );
  assert.ok(hidden.length >= 3);
  const withheld = new Set([...secret, ...hidden.map(({ variable }) => variable)]);
  assert.deepEqual(
    [...withheld].filter((name) => !isWithheldVariable(name)),
    [],
  );
  assert.deepEqual(
    variables.filter((name) => isWithheldVariable(name) && !withheld.has(name)),
    [],
  );
});

/** What a setting's own view makes of its example, as a list and as a text. */
function shownBy(show: (value: never) => string, example: string): string {
  return [[example], example]
    .map((value) => {
      try {
        return show(value as never);
      } catch {
        return "";
      }
    })
    .join(" ");
}
