// The table of variables: name, meaning, example, default, check and display of each. The types of the
// configuration are derived from it, so a variable exists here or nowhere.

import { availableParallelism, homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { SandboxEngineName } from "../engine/sandbox.ts";
import {
  bearerTokens,
  folder,
  folders,
  host,
  hosts,
  oneOf,
  onOrOff,
  origins,
  type PemFile,
  pemFile,
  poolCapacities,
  port,
  portUrl,
  prefixes,
  type SecretFile,
  sandboxEngine,
  secretFile,
  secretKeys,
  wholeNumber,
} from "./config-parsers.ts";
import { placeSettings } from "./config-places.ts";
import { masked, type Setting, setting, shownPath, UNSET } from "./config-setting.ts";

const MiB = 1024 * 1024;
const shippedExamples = fileURLToPath(new URL("../../examples", import.meta.url));

export const table = {
  home: setting<string>({
    variable: "SVC_HOME",
    meaning: "Folder of everything on disk: database, blobs, bundles, run directories, catalog state.",
    example: "/var/lib/troupe",
    fallback: () => join(homedir(), ".troupe"),
    parse: folder,
  }),
  apiPort: setting<number>({
    variable: "SVC_API_PORT",
    meaning:
      "Port of the API the process is started for: the gateway in `up` and `gateway`, the runtime API in `runtime`. 0: any free port.",
    fallback: () => 54001,
    parse: port,
  }),
  runtimeApiPort: setting<number>({
    variable: "SVC_RUNTIME_API_PORT",
    meaning: "Port of the runtime API, and where the commands look for it. 0: any free port.",
    fallback: () => 4000,
    parse: port,
  }),
  grpcPort: setting<number>({
    variable: "SVC_GRPC_PORT",
    meaning: "Port of the runtime protocol (gRPC) in `up` and `runtime`. 0: any free port.",
    fallback: () => 55051,
    parse: port,
  }),
  apiHost: setting<string>({
    variable: "SVC_API_HOST",
    meaning: "Address the gateway binds. Anything but loopback needs SVC_API_TOKEN.",
    fallback: () => "127.0.0.1",
    parse: host,
  }),
  runtimeApiHost: setting<string>({
    variable: "SVC_RUNTIME_API_HOST",
    meaning:
      "Address the runtime API binds. Anything but loopback needs SVC_RUNTIME_API_TOKEN or SVC_ALLOW_REMOTE_RUNTIME=true.",
    fallback: () => "127.0.0.1",
    parse: host,
  }),
  grpcHost: setting<string>({
    variable: "SVC_GRPC_HOST",
    meaning:
      "Address the runtime protocol binds. Anything but loopback needs SVC_API_TOKEN, SVC_TLS_CERT and SVC_TLS_KEY.",
    fallback: () => "127.0.0.1",
    parse: host,
  }),
  tlsCert: setting<PemFile | null>({
    variable: "SVC_TLS_CERT",
    meaning:
      "File with the certificate of the runtime protocol's port, and those above it, as PEM: it is served over TLS.",
    example: "/etc/troupe/server.pem",
    fallback: () => null,
    parse: pemFile,
    show: shownPath,
  }),
  tlsKey: setting<PemFile | null>({
    variable: "SVC_TLS_KEY",
    meaning: "File with the key of SVC_TLS_CERT, as PEM.",
    example: "/etc/troupe/server.key",
    fallback: () => null,
    parse: pemFile,
    show: shownPath,
  }),
  tlsClientCa: setting<PemFile | null>({
    variable: "SVC_TLS_CLIENT_CA",
    meaning:
      "File with authorities, as PEM: the runtime protocol's clients need a certificate of one of them.",
    example: "/etc/troupe/clients.pem",
    fallback: () => null,
    parse: pemFile,
    show: shownPath,
  }),
  runtimeApi: setting<RuntimeApi | null>({
    variable: "SVC_RUNTIME_API",
    meaning:
      "Where the runtime API is served: tcp (a port), socket (runtime.sock in SVC_HOME, for this user alone) or off. Unset: tcp; with SVC_ENV=prod and no SVC_RUNTIME_API_TOKEN, socket.",
    example: "socket",
    fallback: () => null,
    parse: oneOf("tcp", "socket", "off"),
  }),
  runtimeApiToken: setting<readonly string[]>({
    variable: "SVC_RUNTIME_API_TOKEN",
    meaning:
      "Bearer token of the runtime API on its port; several, joined by commas, are all accepted. The socket asks for none.",
    example: "the output of `openssl rand -hex 32`",
    fallback: () => Object.freeze([]),
    parse: bearerTokens,
    show: masked,
  }),
  runtimeApiTokenFile: setting<SecretFile | null>({
    variable: "SVC_RUNTIME_API_TOKEN_FILE",
    meaning: "File with the runtime API's tokens, one per line, in place of SVC_RUNTIME_API_TOKEN.",
    example: "/run/credentials/troupe.service/runtime-api-token",
    fallback: () => null,
    parse: secretFile(bearerTokens),
    show: shownPath,
  }),
  allowRemoteRuntime: setting<boolean>({
    variable: "SVC_ALLOW_REMOTE_RUNTIME",
    meaning:
      "true lets the runtime API without a token, which runs commands for anyone who asks, be reached from other machines.",
    example: "true",
    fallback: () => false,
    parse: onOrOff,
  }),
  environment: setting<"dev" | "test" | "prod">({
    variable: "SVC_ENV",
    meaning: "dev, test or prod; prod refuses to start without SVC_API_TOKEN.",
    example: "prod",
    fallback: () => "dev",
    parse: oneOf("dev", "test", "prod"),
  }),
  apiToken: setting<readonly string[]>({
    variable: "SVC_API_TOKEN",
    meaning: "Bearer token of the gateway; several, joined by commas, are all accepted.",
    example: "the output of `openssl rand -hex 32`",
    fallback: () => Object.freeze([]),
    parse: bearerTokens,
    show: masked,
  }),
  apiTokenFile: setting<SecretFile | null>({
    variable: "SVC_API_TOKEN_FILE",
    meaning: "File with the gateway's tokens, one per line, in place of SVC_API_TOKEN.",
    example: "/run/credentials/troupe.service/api-token",
    fallback: () => null,
    parse: secretFile(bearerTokens),
    show: shownPath,
  }),
  secretKey: setting<readonly string[]>({
    variable: "SVC_SECRET_KEY",
    meaning:
      "Key that encrypts stored secrets: 32 bytes as base64 or hex. Of several, joined by commas, the first encrypts (on PostgreSQL the one that the database names) and all decrypt. Unset: the file secret.key in SVC_HOME, made at the first start.",
    example: "the output of `openssl rand -base64 32`",
    fallback: () => Object.freeze([]),
    parse: secretKeys,
    show: masked,
  }),
  secretKeyFile: setting<SecretFile | null>({
    variable: "SVC_SECRET_KEY_FILE",
    meaning: "File with the keys, one per line, in place of SVC_SECRET_KEY.",
    example: "/run/credentials/troupe.service/secret-key",
    fallback: () => null,
    parse: secretFile(secretKeys),
    show: shownPath,
  }),
  ...placeSettings,
  executorMaxConcurrency: setting<number>({
    variable: "SVC_EXECUTOR_MAX_CONCURRENCY",
    meaning: "Slots of the executor pool `default`: how many commands run at once.",
    example: "4",
    fallback: () => Math.max(2, availableParallelism()),
    parse: wholeNumber(1, 10_000),
  }),
  executorPoolCapacities: setting<Readonly<Record<string, number>>>({
    variable: "SVC_EXECUTOR_POOL_CAPACITIES",
    meaning: "Further executor pools and their slots; `default=…` overrides SVC_EXECUTOR_MAX_CONCURRENCY.",
    example: "default=4,gpu=1,io=8",
    fallback: () => Object.freeze({}),
    parse: poolCapacities,
    show: showPools,
  }),
  sandboxEngine: setting<SandboxEngineName>({
    variable: "SVC_SANDBOX_ENGINE",
    meaning: "What makes sandboxes: bubblewrap, or gvisor (runsc). Where it cannot, there are none.",
    example: "gvisor",
    fallback: () => "bubblewrap",
    parse: sandboxEngine,
  }),
  requireSandbox: setting<boolean>({
    variable: "SVC_REQUIRE_SANDBOX",
    meaning:
      "true: commands run in sandboxes only. Jobs and runs with other commands, or with modules, are refused; validators, prepare commands and script checks are not started.",
    example: "true",
    fallback: () => false,
    parse: onOrOff,
  }),
  blueprintCatalog: setting<readonly string[]>({
    variable: "SVC_BLUEPRINT_CATALOG",
    meaning: "Colon-separated folders, each with blueprint folders (or an index.json).",
    example: "/srv/blueprints:/home/me/blueprints",
    fallback: () => Object.freeze([shippedExamples]),
    parse: folders,
    show: (value) => value.join(delimiter),
  }),
  webUiPortStart: setting<number>({
    variable: "SVC_BLUEPRINT_WEB_UI_PORT_START",
    meaning: "First port that dashboards of blueprints may have.",
    fallback: () => 61_000,
    parse: wholeNumber(1_024, 65_535),
  }),
  webUiPortEnd: setting<number>({
    variable: "SVC_BLUEPRINT_WEB_UI_PORT_END",
    meaning: "Last port that dashboards of blueprints may have.",
    fallback: () => 61_049,
    parse: wholeNumber(1_024, 65_535),
  }),
  webUiPortAllocationMode: setting<"probe" | "prepublished">({
    variable: "SVC_BLUEPRINT_WEB_UI_PORT_ALLOCATION_MODE",
    meaning:
      "probe passes over ports on which something listens; prepublished does not look, because a container runtime listens on the ports it publishes.",
    example: "prepublished",
    fallback: () => "probe",
    parse: oneOf("probe", "prepublished"),
  }),
  webUiHost: setting<string>({
    variable: "SVC_BLUEPRINT_WEB_UI_HOST",
    meaning:
      "Address that dashboards of blueprints bind. Beyond loopback they ask for a key, which their public URL has.",
    fallback: () => "127.0.0.1",
    parse: host,
  }),
  webUiPublicUrl: setting<string>({
    variable: "SVC_BLUEPRINT_WEB_UI_PUBLIC_URL",
    meaning: "URL under which browsers reach a dashboard; {port} stands for its port.",
    example: "http://desktop.example.org:{port}/",
    fallback: () => "http://127.0.0.1:{port}/",
    parse: portUrl,
  }),
  bundleBytesMax: setting<number>({
    variable: "SVC_BUNDLE_MAX_BYTES",
    meaning: "Bytes of an uploaded bundle; more is answered with 413.",
    fallback: () => 512 * MiB,
    parse: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  }),
  bundlesBytesMax: setting<number>({
    variable: "SVC_BUNDLES_MAX_BYTES",
    meaning:
      "Bytes that all bundles may have together, unpacked; a further one is answered with 507. 0 for no limit.",
    example: String(10 * 1024 * MiB),
    fallback: () => 50 * 1024 * MiB,
    parse: wholeNumber(0, Number.MAX_SAFE_INTEGER),
  }),
  bodyBytesMax: setting<number>({
    variable: "SVC_BODY_MAX_BYTES",
    meaning: "Bytes of a JSON request body; more is answered with 413.",
    fallback: () => 5 * MiB,
    parse: wholeNumber(1, 512 * MiB),
  }),
  corsOrigins: setting<readonly string[]>({
    variable: "SVC_CORS_ORIGINS",
    meaning: "Comma-separated web origins that may call the gateway from a browser.",
    example: "https://app.example.org,http://localhost:5173",
    fallback: () => Object.freeze([]),
    parse: origins,
  }),
  console: setting<boolean>({
    variable: "SVC_CONSOLE",
    meaning: "false: the gateway does not serve its console, the web page at /console.",
    example: "false",
    fallback: () => true,
    parse: onOrOff,
  }),
  allowedHosts: setting<readonly string[]>({
    variable: "SVC_ALLOWED_HOSTS",
    meaning:
      "Comma-separated host names, without ports, by which this server is known beside loopback and the addresses it binds. Without a token, requests to other names are refused.",
    example: "troupe.example.org,build-host",
    fallback: () => Object.freeze([]),
    parse: hosts,
  }),
  requestsPerMinuteMax: setting<number>({
    variable: "SVC_RATE_LIMIT",
    meaning:
      "Requests per minute that the gateway takes from one token, or without one from one address; more are answered with 429. 0: no limit.",
    example: "600",
    fallback: () => 0,
    parse: wholeNumber(0, 10_000_000),
  }),
  retentionDays: setting<number>({
    variable: "SVC_RETENTION_DAYS",
    meaning: "Days that ended runs are kept, with their events and files; 0: no age limit.",
    fallback: () => 30,
    parse: wholeNumber(0, 36_500),
  }),
  retentionBytesMax: setting<number>({
    variable: "SVC_RETENTION_MAX_BYTES",
    meaning:
      "Bytes that the histories and artifacts of ended runs may have together; above that, those that ended first are removed. 0: no limit.",
    example: String(20 * 1024 * MiB),
    fallback: () => 0,
    parse: wholeNumber(0, Number.MAX_SAFE_INTEGER),
  }),
  logLevel: setting<LogLevel>({
    variable: "SVC_LOG_LEVEL",
    meaning: "What the program itself logs: trace, debug, info, warn, error, fatal or silent.",
    fallback: () => "info",
    parse: oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"),
  }),
  workerEnvPrefixes: setting<readonly string[]>({
    variable: "SVC_WORKER_ENV_PREFIXES",
    meaning: "Prefixes under which workers find their variables; SVC_ is always one of them.",
    example: "SVC_,ACME_",
    fallback: () => Object.freeze(["SVC_"]),
    parse: prefixes,
  }),
};

export type RuntimeApi = "tcp" | "socket" | "off";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/** The value of every variable, under its name in code. */
export type Values = {
  readonly [K in keyof typeof table]: (typeof table)[K] extends Setting<infer V> ? V : never;
};

function showPools(pools: Readonly<Record<string, number>>): string {
  const items = Object.entries(pools).map(([name, slots]) => `${name}=${slots}`);
  return items.length === 0 ? UNSET : items.join(",");
}
