// From the environment and --url to the address of a server; a configuration that is not valid is a usage error.

import { existsSync } from "node:fs";
import { type Command, type Config, loadConfig } from "../app/config.ts";
import { fetchThrough, runtimeSocket } from "../app/runtime-socket.ts";
import { isLoopback } from "../lib/addresses.ts";
import { madeOnce } from "../lib/async.ts";
import { type Call, UsageError } from "./command.ts";
import { readTextFile } from "./input.ts";

/** Where SVC_GRPC_PORT is not set. */
const PROTOCOL_PORT = 55_051;

/**
 * Reads the configuration; warnings go to stderr.
 *
 * @throws UsageError with one line per problem
 */
export function configFor(call: Call, command: Command): Config {
  const loaded = loadConfig(call.env, command);
  for (const warning of loaded.warnings) call.terminal.note(`warning: ${warning}`);
  if (loaded.kind === "invalid") throw new UsageError(loaded.problems.join("\n"));
  return loaded.config;
}

/** How a command gets to one of the two servers, or to the gateway by the port of the runtime protocol. */
export interface ServerAddress {
  readonly name: "gateway" | "runtime" | "runtime protocol";
  readonly baseUrl: string;
  /** What people call it: its URL, or its socket. */
  readonly place: string;
  readonly token: string | null;
  readonly fetch: typeof fetch;
}

/** The gateway: --url, else the configured port on this machine. */
export function gatewayAddress(call: Call): ServerAddress {
  const config = configFor(call, "client");
  const given = call.text("url");
  const url = given === null ? defaultGatewayUrl(config) : baseUrl(given);
  if (url === null) throw unknownAddress("SVC_API_PORT");
  return { name: "gateway", baseUrl: url, place: url, token: config.apiTokens[0] ?? null, fetch };
}

/** Of commands with the options `operated`: the port of the runtime protocol that --address names, else the gateway. */
export function operatedAddress(call: Call): ServerAddress {
  const address = call.text("address");
  if (address === null) {
    if (call.text("token") === null && call.text("client-cert") === null) return gatewayAddress(call);
    throw new UsageError(
      "--token and --client-cert go with --address; at the gateway, SVC_API_TOKEN is the token.",
    );
  }
  if (call.text("url") !== null)
    throw new UsageError("--address and --url name one server: give one of them.");
  return protocolAddress(call, address, configFor(call, "client"));
}

/** Its client is loaded with the first request: most commands do without it. */
function protocolAddress(call: Call, address: string, { apiTokens }: Config): ServerAddress {
  const origin = protocolOrigin(address);
  const file = call.text("client-cert");
  const certificate = file === null ? null : readTextFile(file);
  const opened = madeOnce(async () =>
    (await import("../grpc/client.ts")).fetchByProtocol({ origin, certificate }),
  );
  return {
    name: "runtime protocol",
    baseUrl: `${origin}/api/v1`,
    place: origin,
    token: call.text("token") ?? apiTokens[0] ?? null,
    fetch: async (input, init) => (await opened())(input, init),
  };
}

/** A token leaves the machine over TLS alone. */
function protocolOrigin(address: string): string {
  const text = /^https?:\/\//.test(address) ? address : `//${address}`;
  const url = URL.canParse(text, "https://localhost") ? new URL(text, "https://localhost") : null;
  if (url === null || url.hostname === "" || (url.pathname !== "/" && url.pathname !== ""))
    throw new UsageError(
      `--address: ${JSON.stringify(address)} is not an address. Give that of the runtime protocol, such as 127.0.0.1:55051`,
    );
  const isLocal = isLoopback(url.hostname.replace(/^\[|\]$/g, ""));
  if (address.startsWith("http://") && !isLocal)
    throw new UsageError(
      "--address: without TLS only this machine is called. Give HOST:PORT, or https://HOST:PORT.",
    );
  const port = url.port === "" ? String(PROTOCOL_PORT) : url.port;
  const isSecure = address.startsWith("https://") || !isLocal;
  return `${isSecure ? "https" : "http"}://${url.hostname}:${port}`;
}

/** The runtime API: --url, else its socket or the configured port on this machine. */
export function runtimeAddress(call: Call): ServerAddress {
  const config = configFor(call, "client");
  const given = call.text("url");
  const address = given === null ? defaultRuntimeAddress(config) : runtimeAt(baseUrl(given), config);
  if (address !== null) return address;
  if (config.runtimeApi !== "off") throw unknownAddress("SVC_RUNTIME_API_PORT");
  throw new UsageError(
    "SVC_RUNTIME_API is off: this server takes work at its gateway only, with `troupe run`, `troupe runs` and `troupe jobs`.",
  );
}

function unknownAddress(variable: string): UsageError {
  return new UsageError(
    `${variable} is 0, so the address is not known here. Give the one that \`troupe up\` printed: --url http://127.0.0.1:PORT/api/v1`,
  );
}

/** The gateway's address by this configuration; null when its port is "any free one". */
export function defaultGatewayUrl(config: Config): string | null {
  return localUrl(config.apiHost, config.apiPort);
}

/**
 * The runtime API's address by this configuration. A socket in the home is a running server's (each start
 * removes a dead one's), and wins over the defaults: a person's shell need not have the server's variables.
 *
 * @returns null when its port is "any free one", or it is off
 */
export function defaultRuntimeAddress(config: Config): ServerAddress | null {
  const { runtimeApi, runtimeApiHost, runtimeApiPort, home } = config;
  if (runtimeApi === "off") return null;
  const socket = runtimeSocket(home);
  const url = localUrl(runtimeApiHost, runtimeApiPort);
  const isPortGiven = url !== null && config.fromEnvironment.includes("SVC_RUNTIME_API_PORT");
  const isGiven = isPortGiven || config.fromEnvironment.includes("SVC_RUNTIME_API");
  if (runtimeApi === "socket" || (!isGiven && existsSync(socket))) {
    // The host in the URL is not used.
    const baseUrl = "http://localhost/api/v1";
    return {
      name: "runtime",
      baseUrl,
      place: `the socket ${socket}`,
      token: null,
      fetch: fetchThrough(socket),
    };
  }
  return url === null ? null : runtimeAt(url, config);
}

const runtimeAt = (url: string, { runtimeApiTokens }: Config): ServerAddress => ({
  name: "runtime",
  baseUrl: url,
  place: url,
  token: runtimeApiTokens[0] ?? null,
  fetch,
});

function localUrl(boundHost: string, port: number): string | null {
  if (port === 0) return null;
  const host = boundHost === "0.0.0.0" || boundHost === "::" ? "127.0.0.1" : boundHost;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}/api/v1`;
}

/** Checks the value of --url; the path /api/v1 may be left out. */
export function baseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new UsageError(
      `--url: ${JSON.stringify(text)} is not an address. Give one that \`troupe up\` prints: --url http://127.0.0.1:PORT/api/v1`,
    );
  }
  const path = url.pathname.replace(/\/+$/, "");
  return `${url.origin}${path === "" ? "/api/v1" : path}`;
}
