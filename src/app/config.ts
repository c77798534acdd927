// The configuration: every SVC_* variable, in one table, read once.
//
// - The type, the defaults, the checks and what `troupe config` prints all come from the table in config-table.ts.
// - Every wrong value is reported, each in one line that names the variable, the problem and an example.
// - The result is frozen; nothing reads the environment after it.
// - An empty variable counts as unset. Of one that is unset, a home that has joined a cluster may have a value.
// - A secret is never shown: not by describeConfig, and not in a problem.

import { isEvery, isLoopback } from "../lib/addresses.ts";
import { nearestName } from "../lib/text.ts";
import { type ClusterFile, readClusterFile } from "../store/cluster-file.ts";
import type { S3Credentials } from "../store/shared/s3-requests.ts";
import { StoreUnusable } from "../store/sql/database.ts";
import { bucketCredentials } from "./bucket-credentials.ts";
import { databaseSecrets, WrongValue } from "./config-parsers.ts";
import { type Setting, UNSET } from "./config-setting.ts";
import { type RuntimeApi, table, type Values } from "./config-table.ts";
import { runtimeSocket, SOCKET_PATH_BYTES_MAX } from "./runtime-socket.ts";

/** What the process is started for. A `client` talks to a server and binds no port. */
export type Command = "up" | "runtime" | "gateway" | "client";

/** The settled configuration. Sizes are bytes; a port of 0 means any free one. */
export interface Config extends Values {
  readonly command: Command;
  /** Slots by pool name, `default` always among them. */
  readonly executorPools: Readonly<Record<string, number>>;
  /** The gateway's tokens, from SVC_API_TOKEN or its file; empty: none is asked for. */
  readonly apiTokens: readonly string[];
  readonly runtimeApi: RuntimeApi;
  /** The runtime API's tokens on its port; empty: none is asked for. */
  readonly runtimeApiTokens: readonly string[];
  /** From SVC_SECRET_KEY or its file; the first encrypts. Empty: those of secret.key. */
  readonly secretKeys: readonly string[];
  /** Those of the bucket in SVC_BLOB_URL; null without one. */
  readonly blobCredentials: S3Credentials | null;
  /** Every secret of this configuration, which must not be shown anywhere. */
  readonly secretTexts: readonly string[];
  /** Names of the variables that were set. */
  readonly fromEnvironment: readonly string[];
  /** Names of those that are not set, and that the home has a value of (cluster-file.ts). */
  readonly fromHome: readonly string[];
}

export type { LogLevel } from "./config-table.ts";

export type LoadedConfig =
  | { readonly kind: "ok"; readonly config: Config; readonly warnings: readonly string[] }
  | { readonly kind: "invalid"; readonly problems: readonly string[]; readonly warnings: readonly string[] };

/**
 * Reads the configuration from environment variables.
 *
 * In `runtime`, `apiPort` and `apiHost` are where the runtime API listens, and `runtimeApiPort` and
 * `runtimeApiHost` have the same values: SVC_API_PORT wins, then SVC_RUNTIME_API_PORT, then 4000.
 *
 * @param joined what makes the home a node, in place of its own file; null: nothing
 * @returns `ok` with a frozen configuration, or `invalid` with one line per problem (the caller prints them and
 *   exits with 2). `warnings` are lines about variables that are probably misspelt.
 *
 * @example loadConfig({ SVC_API_PORT: "0" }, "runtime"); // any free port for the runtime API
 */
export function loadConfig(
  env: Readonly<Record<string, string | undefined>>,
  command: Command,
  joined?: ClusterFile | null,
): LoadedConfig {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  const fromEnvironment: string[] = [];
  const fromHome: string[] = [];
  let ofHome: Readonly<Record<string, string>> = {};
  try {
    ofHome = variablesOf(joined === undefined ? readClusterFile(homeOf(env)) : joined);
  } catch (error) {
    // A home that is none is a problem below.
    if (!(error instanceof StoreUnusable || error instanceof WrongValue)) throw error;
    // A command that only talks to a server may be another user's.
    if (error instanceof StoreUnusable && command !== "client") problems.push(error.message);
  }
  for (const [key, entry] of Object.entries<Setting<unknown>>(table)) {
    const { variable } = entry;
    const given = env[variable]?.trim() ?? "";
    const text = given === "" ? (ofHome[variable] ?? "") : given;
    if (text === "") {
      values[key] = entry.fallback();
      continue;
    }
    (given === "" ? fromHome : fromEnvironment).push(variable);
    try {
      values[key] = entry.parse(text);
    } catch (error) {
      if (!(error instanceof WrongValue)) throw error;
      problems.push(`${entry.variable}: ${error.message} Example: ${entry.variable}=${entry.example}`);
    }
  }
  const warnings = misspelt(env);
  if (problems.length > 0) return { kind: "invalid", problems, warnings };
  const isBucket = (values as Values).blobUrl?.kind === "s3";
  const found = isBucket ? bucketCredentials(env) : null;
  const wrong = typeof found === "string" ? found : null;
  // A command that only talks to a server needs none.
  if (wrong !== null && command !== "client") return { kind: "invalid", problems: [wrong], warnings };
  const credentials = typeof found === "string" ? null : found;
  const config = settle(values as Values, command, { fromEnvironment, fromHome }, credentials);
  const conflicts = checkRelations(config);
  if (conflicts.length > 0) return { kind: "invalid", problems: conflicts, warnings };
  return { kind: "ok", config, warnings };
}

function settle(
  values: Values,
  command: Command,
  { fromEnvironment, fromHome }: Pick<Config, "fromEnvironment" | "fromHome">,
  blobCredentials: S3Credentials | null,
): Config {
  const isSet = (variable: string) => fromEnvironment.includes(variable);
  const merged = { ...values };
  if (command === "runtime") {
    const apiPort = isSet("SVC_API_PORT") ? values.apiPort : values.runtimeApiPort;
    const apiHost = isSet("SVC_API_HOST") ? values.apiHost : values.runtimeApiHost;
    Object.assign(merged, { apiPort, runtimeApiPort: apiPort, apiHost, runtimeApiHost: apiHost });
  }
  const executorPools = Object.freeze({
    default: values.executorMaxConcurrency,
    ...values.executorPoolCapacities,
  });
  const apiTokens = values.apiTokenFile?.secrets ?? values.apiToken;
  const runtimeApiTokens = values.runtimeApiTokenFile?.secrets ?? values.runtimeApiToken;
  const isClosed = values.environment === "prod" && runtimeApiTokens.length === 0;
  const secretKeys = values.secretKeyFile?.secrets ?? values.secretKey;
  const ofBlobs = Object.values(blobCredentials ?? {}).filter((one) => one !== null);
  const secrets = [...apiTokens, ...runtimeApiTokens, ...secretKeys, ...ofBlobs];
  return Object.freeze({
    ...merged,
    command,
    executorPools,
    apiTokens,
    runtimeApi: values.runtimeApi ?? (isClosed ? "socket" : "tcp"),
    runtimeApiTokens,
    secretKeys,
    blobCredentials,
    secretTexts: Object.freeze([...secrets, ...databaseSecrets(values.databaseUrl)]),
    fromEnvironment: Object.freeze(fromEnvironment),
    fromHome: Object.freeze(fromHome),
  });
}

function homeOf(env: Readonly<Record<string, string | undefined>>): string {
  const text = env.SVC_HOME?.trim() ?? "";
  return text === "" ? table.home.fallback() : table.home.parse(text);
}

/** What a home that has joined a cluster has in place of variables. */
function variablesOf(file: ClusterFile | null): Readonly<Record<string, string>> {
  if (file === null) return {};
  const { database_url: url, name, labels, address } = file;
  const given = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return {
    SVC_DATABASE_URL: url,
    SVC_NODE_NAME: name,
    SVC_NODE_LABELS: given.join(","),
    SVC_NODE_ADDRESS: address ?? "",
  };
}

/** One row of `troupe config`. */
export interface ConfigRow {
  readonly variable: string;
  readonly value: string;
  readonly from: "default" | "environment" | "cluster.json";
  readonly meaning: string;
}

/** The rows that `troupe config` prints, in the table's order, with secrets masked. */
export function describeConfig(config: Config): readonly ConfigRow[] {
  return Object.entries<Setting<unknown>>(table).map(([key, entry]) => {
    const value = config[key as keyof Values];
    return {
      variable: entry.variable,
      value: entry.show === undefined ? showPlain(value) : entry.show(value),
      from: sourceOf(config, entry.variable),
      meaning: entry.meaning,
    };
  });
}

function sourceOf({ fromEnvironment, fromHome }: Config, variable: string): ConfigRow["from"] {
  if (fromEnvironment.includes(variable)) return "environment";
  return fromHome.includes(variable) ? "cluster.json" : "default";
}

function showPlain(value: unknown): string {
  if (value === null) return UNSET;
  if (Array.isArray(value)) return value.length === 0 ? UNSET : value.join(",");
  return String(value);
}

/** What no single value shows: the addresses and secrets of the command together. */
function checkRelations(config: Config): readonly string[] {
  const { command, apiTokens } = config;
  const problems = [...bothGiven(config)];
  if (command === "client") return problems;
  const needToken = "Example: SVC_API_TOKEN=$(openssl rand -hex 32)";
  if (config.environment === "prod" && apiTokens.length === 0) {
    problems.push(`SVC_API_TOKEN: SVC_ENV=prod does not start without a token. ${needToken}`);
  }
  problems.push(...shortTokens(config));
  if (command !== "runtime" && !isLoopback(config.apiHost) && apiTokens.length === 0) {
    problems.push(
      `SVC_API_HOST: ${config.apiHost} can be reached from other machines, so SVC_API_TOKEN must be set. ${needToken}`,
    );
  }
  if (command !== "gateway") problems.push(...runtimeDoor(config), ...protocolDoor(config));
  if (config.databaseUrl !== null) problems.push(...nodeDoor(config));
  return [...problems, ...samePorts(config), ...dashboardPorts(config)];
}

/** Whether the runtime API, which runs commands, is reached only by those who may. */
function runtimeDoor(config: Config): readonly string[] {
  const { command, environment, runtimeApi, runtimeApiTokens, home } = config;
  const { variable } = table.runtimeApi;
  const hasToken = runtimeApiTokens.length > 0;
  const problems: string[] = [];
  if (runtimeApi === "off" && command === "runtime") {
    problems.push(
      `${variable}: with off, \`troupe runtime\` has nothing to serve. Example: ${variable}=socket`,
    );
  }
  if (runtimeApi === "tcp" && environment === "prod" && !hasToken) {
    problems.push(
      `${variable}: with SVC_ENV=prod a port needs SVC_RUNTIME_API_TOKEN, or every user of this machine could run commands. Example: ${variable}=socket`,
    );
  }
  const bytes = Buffer.byteLength(runtimeSocket(home));
  if (runtimeApi === "socket" && bytes > SOCKET_PATH_BYTES_MAX) {
    problems.push(
      `SVC_HOME: the path of the runtime API's socket in it has ${bytes} bytes; the system takes ${SOCKET_PATH_BYTES_MAX}. Choose a shorter folder. Example: SVC_HOME=/var/lib/troupe`,
    );
  }
  if (config.allowRemoteRuntime) return problems;
  for (const [name, address] of runtimeAddresses(config)) {
    if (isLoopback(address)) continue;
    problems.push(
      `${name}: ${address} can be reached from other machines, and the runtime API runs commands for anyone ` +
        "without a password. Set SVC_RUNTIME_API_TOKEN, or, if the network is trusted, allow it. Example: SVC_ALLOW_REMOTE_RUNTIME=true",
    );
  }
  return problems;
}

/** Whether the runtime protocol is reached only by those who may. */
function protocolDoor({ grpcHost, apiTokens, tlsCert, tlsKey, tlsClientCa }: Config): readonly string[] {
  const { variable: cert, example: certExample } = table.tlsCert;
  const { variable: key, example: keyExample } = table.tlsKey;
  const problems: string[] = [];
  if (tlsCert !== null && tlsKey === null)
    problems.push(`${cert}: ${key} must be set too. Example: ${key}=${keyExample}`);
  if (tlsCert === null && (tlsKey ?? tlsClientCa) !== null) {
    const { variable } = tlsKey === null ? table.tlsClientCa : table.tlsKey;
    problems.push(`${variable}: ${cert} must be set too. Example: ${cert}=${certExample}`);
  }
  const { variable } = table.grpcHost;
  const isOpen = !isLoopback(grpcHost);
  if (isOpen && apiTokens.length === 0) {
    problems.push(
      `${variable}: ${grpcHost} can be reached from other machines, so SVC_API_TOKEN must be set. Example: SVC_API_TOKEN=$(openssl rand -hex 32)`,
    );
  }
  if (isOpen && tlsCert === null) {
    problems.push(
      `${variable}: ${grpcHost} can be reached from other machines, so it is served over TLS only: set ${cert} and ${key}. Example: ${cert}=${certExample}`,
    );
  }
  return problems;
}

/** Whether other nodes reach this one, and nobody else does. */
function nodeDoor({ nodeHost, nodeAddress, nodeTlsCert, nodeTlsKey, nodeTlsCa }: Config): readonly string[] {
  if (isEvery(nodeHost) && nodeAddress === null) {
    const { variable: address, example } = table.nodeAddress;
    return [
      `${address}: ${nodeHost} is no address at which other nodes reach this one; name one. Example: ${address}=${example}`,
    ];
  }
  const files = [
    [table.nodeTlsCert, nodeTlsCert],
    [table.nodeTlsKey, nodeTlsKey],
    [table.nodeTlsCa, nodeTlsCa],
  ] as const;
  const missing = files
    .filter(([, file]) => file === null)
    .map(([{ variable, example }]) => ({ variable, example }));
  const { variable } = table.nodeHost;
  const problems: string[] = [];
  const [first] = missing;
  if (first !== undefined && missing.length < files.length) {
    problems.push(
      `${first.variable}: certificates of nodes take SVC_NODE_TLS_CERT, SVC_NODE_TLS_KEY and SVC_NODE_TLS_CA; set all of them or none. Example: ${first.variable}=${first.example}`,
    );
  } else if (first !== undefined && !isLoopback(nodeHost)) {
    problems.push(
      `${variable}: ${nodeHost} can be reached from other machines, so nodes must prove themselves with certificates: set SVC_NODE_TLS_CERT, SVC_NODE_TLS_KEY and SVC_NODE_TLS_CA. Example: ${first.variable}=${first.example}`,
    );
  }
  return problems;
}

/** With a variable and its file both set, it is unclear which one counts. */
function bothGiven({ fromEnvironment }: Config): readonly string[] {
  const given = (variable: string) => fromEnvironment.includes(variable);
  return [table.apiToken, table.runtimeApiToken, table.secretKey]
    .map(({ variable }) => variable)
    .filter((variable) => given(variable) && given(`${variable}_FILE`))
    .map(
      (variable) =>
        `${variable}: ${variable}_FILE is set too; leave one of them unset. Example: ${variable}=`,
    );
}

const TOKEN_CHARS_MIN = 16;

/** A short token of a server in use can be guessed. */
function shortTokens(config: Config): readonly string[] {
  if (config.environment !== "prod") return [];
  const { variable: api } = config.apiTokenFile === null ? table.apiToken : table.apiTokenFile;
  const { variable: runtime } =
    config.runtimeApiTokenFile === null ? table.runtimeApiToken : table.runtimeApiTokenFile;
  const text = `with SVC_ENV=prod every token must have at least ${TOKEN_CHARS_MIN} characters.`;
  return [
    [api, table.apiToken.variable, config.apiTokens] as const,
    [runtime, table.runtimeApiToken.variable, config.runtimeApiTokens] as const,
  ]
    .filter(([, , tokens]) => tokens.some((token) => token.length < TOKEN_CHARS_MIN))
    .map(([variable, plain]) => `${variable}: ${text} Example: ${plain}=$(openssl rand -hex 32)`);
}

/** The range of ports that dashboards have is one, and no API listens in it. */
function dashboardPorts(config: Config): readonly string[] {
  const { webUiPortStart: start, webUiPortEnd: end } = config;
  const [first, last] = [table.webUiPortStart.variable, table.webUiPortEnd.variable];
  if (start > end) {
    return [`${first}: ${start} is greater than ${last}, which is ${end}. Example: ${last}=${start}`];
  }
  return listenedPorts(config)
    .filter(([, port]) => port >= start && port <= end)
    .map(
      ([variable, port, example]) =>
        `${variable}: ${port} is one of the dashboards' ports, ${start} to ${end} (${first}, ${last}). Example: ${variable}=${example}`,
    );
}

/** Where commands would be run for anyone, each with its variable. */
function runtimeAddresses(config: Config): readonly (readonly [string, string])[] {
  const isHttpOpen = config.runtimeApi === "tcp" && config.runtimeApiTokens.length === 0;
  const http = config.fromEnvironment.includes("SVC_API_HOST") ? "SVC_API_HOST" : "SVC_RUNTIME_API_HOST";
  const name = config.command === "runtime" ? http : "SVC_RUNTIME_API_HOST";
  return isHttpOpen ? [[name, config.runtimeApiHost]] : [];
}

/** The ports on which the command listens, each with its variable and an example. */
function listenedPorts(config: Config): readonly (readonly [string, number, string])[] {
  return [
    ...(config.command === "runtime" ? [] : [["SVC_API_PORT", config.apiPort, "54001"] as const]),
    ...(config.command === "gateway" || config.runtimeApi !== "tcp"
      ? []
      : [[runtimePortName(config), config.runtimeApiPort, "4000"] as const]),
    ...(config.command === "gateway" ? [] : [[table.grpcPort.variable, config.grpcPort, "55051"] as const]),
    ...(config.databaseUrl === null ? [] : [[table.nodePort.variable, config.nodePort, "55052"] as const]),
  ];
}

function samePorts(config: Config): readonly string[] {
  const ports = listenedPorts(config);
  return ports.flatMap(([variable, value, example], i) => {
    const other = ports.slice(0, i).find((earlier) => earlier[1] === value && value !== 0);
    if (other === undefined) return [];
    // The default port is no example when it is the one that both have.
    const free = example === String(value) ? value + 1 : example;
    return [
      `${variable}: ${value} is the port of ${other[0]} too; each needs its own. Example: ${variable}=${free}`,
    ];
  });
}

/** The variable that settled the runtime API's port. */
export function runtimePortName(config: Config): string {
  const byApiPort = config.command === "runtime" && config.fromEnvironment.includes("SVC_API_PORT");
  return byApiPort ? "SVC_API_PORT" : "SVC_RUNTIME_API_PORT";
}

function misspelt(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const known = Object.values<Setting<unknown>>(table).map((entry) => entry.variable);
  return Object.keys(env)
    .filter((name) => /^SVC_/i.test(name) && !known.includes(name))
    .flatMap((name) => {
      const nearest =
        nearestName(name.toUpperCase(), known, name.length <= 9 ? 1 : 2) ??
        known.find((k) => k === name.toUpperCase());
      return nearest === undefined
        ? []
        : [`${name} is not a variable of this program; did you mean ${nearest}?`];
    });
}
