// From the environment to a client: the configuration, or a usage error with every problem in it.

import { existsSync } from "node:fs";
import { type Command, type Config, type LoadedConfig, loadConfig } from "../app/config.ts";
import { runtimeSocket } from "../app/runtime-socket.ts";
import { ApiError, RuntimeClient, type Unreachable } from "./client.ts";
import { type Call, UsageError } from "./command.ts";

/**
 * Reads the configuration; warnings go to stderr.
 *
 * @throws UsageError with one line per problem
 */
export function configFor(call: Call, command: Command): Config {
  const loaded = loadConfig(call.env, command);
  for (const warning of loaded.warnings) call.terminal.note(`warning: ${warning}`);
  return settled(loaded);
}

/** The configuration, or a UsageError with one line per problem. */
export function settled(loaded: LoadedConfig): Config {
  if (loaded.kind === "invalid") throw new UsageError(loaded.problems.join("\n"));
  return loaded.config;
}

/** How a command gets to the runtime API. */
export interface RuntimeDoor {
  readonly baseUrl: string;
  readonly socket: string | null;
  readonly token: string | null;
}

/**
 * Where the runtime API of this configuration is looked for. A socket in the home is a running server's (each start
 * removes a dead one's), and wins over the defaults: a person's shell need not have the server's variables.
 *
 * @returns null when its port is "any free one", or it is off
 */
export function runtimeDoor(config: Config): RuntimeDoor | null {
  const { runtimeApi, runtimeApiHost, runtimeApiPort, home } = config;
  if (runtimeApi === "off") return null;
  const socket = runtimeSocket(home);
  const url = localUrl(runtimeApiHost, runtimeApiPort);
  const isPortGiven = url !== null && config.fromEnvironment.includes("SVC_RUNTIME_API_PORT");
  const isGiven = isPortGiven || config.fromEnvironment.includes("SVC_RUNTIME_API");
  if (runtimeApi === "socket" || (!isGiven && existsSync(socket))) return throughSocket(socket);
  return url === null ? null : { baseUrl: url, socket: null, token: config.runtimeApiTokens[0] ?? null };
}

/** The host in the URL stands for none. */
export const throughSocket = (socket: string): RuntimeDoor => ({
  baseUrl: "http://localhost/api/v1",
  socket,
  token: null,
});

/** Where the gateway of this configuration is looked for; null when its port is "any free one". */
export function defaultGatewayUrl(config: Config): string | null {
  return localUrl(config.apiHost, config.apiPort);
}

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
      `--url: ${JSON.stringify(text)} is no address. Give one that \`troupe up\` prints: --url http://127.0.0.1:PORT/api/v1`,
    );
  }
  const path = url.pathname.replace(/\/+$/, "");
  return `${url.origin}${path === "" ? "/api/v1" : path}`;
}

/** The client that a command talks through. @throws UsageError when nobody knows where the server is */
export function clientFor(call: Call, signal?: AbortSignal): RuntimeClient {
  const config = configFor(call, "client");
  const client = findClient(call, config, signal);
  if (client !== null) return client;
  if (config.runtimeApi !== "off") throw unknownAddress("SVC_RUNTIME_API_PORT");
  throw new UsageError(
    "SVC_RUNTIME_API is off: this server takes work at its gateway only, with `troupe launch`, `troupe runs` and `troupe jobs`.",
  );
}

/** As clientFor: --url, else the socket or the configured port on this machine; null when that is not known. */
export function findClient(call: Call, config: Config, signal?: AbortSignal): RuntimeClient | null {
  const given = call.text("url");
  const door =
    given === null
      ? runtimeDoor(config)
      : { baseUrl: baseUrl(given), socket: null, token: config.runtimeApiTokens[0] ?? null };
  return door === null ? null : new RuntimeClient({ ...door, ...(signal !== undefined && { signal }) });
}

/** The gateway that a command talks to: --url, else the configured port on this machine; and how it is let in. */
export function gatewayAddress(call: Call): { readonly baseUrl: string; readonly token: string | null } {
  const config = configFor(call, "client");
  const given = call.text("url");
  const url = given === null ? defaultGatewayUrl(config) : baseUrl(given);
  if (url === null) throw unknownAddress("SVC_API_PORT");
  return { baseUrl: url, token: config.apiTokens[0] ?? null };
}

function unknownAddress(variable: string): UsageError {
  return new UsageError(
    `${variable} is 0, so the address is not known here. Give the one that \`troupe up\` printed: --url http://127.0.0.1:PORT/api/v1`,
  );
}

/** The lines that tell a person about an error of the client. */
export function clientErrorLines(error: ApiError | Unreachable): readonly string[] {
  if (error instanceof ApiError) {
    const hint = error.status === 401 ? ["Set SVC_RUNTIME_API_TOKEN to a token of the server."] : [];
    return [`${error.message} (HTTP ${error.status})`, ...hint];
  }
  return [error.message, "Start one with `troupe up`, or name another with --url."];
}
