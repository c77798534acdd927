// `troupe up`, `troupe gateway` and `troupe runtime`: start, stay, stop well.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { RunningProgram, Served, StartOptions } from "../app/app.ts";
import { type Config, runtimePortName } from "../app/config.ts";
import { refusedAddress, StartFailed } from "../app/listen.ts";
import { programVersion } from "../lib/version.ts";
import { type Call, CommandFailed, exitCodes } from "./command.ts";
import { configFor } from "./connection.ts";
import { listenForInterrupts } from "./interrupts.ts";
import { cleanText, plural } from "./text.ts";

export const up = (call: Call) => serve(call, "up");
export const gateway = (call: Call) => serve(call, "gateway");
export const runtime = (call: Call) => serve(call, "runtime");

async function serve(call: Call, command: "up" | "gateway" | "runtime"): Promise<number> {
  const { terminal } = call;
  let config = configFor(call, command);
  const interrupts = listenForInterrupts(() => {
    terminal.note("Stopped immediately. What was acknowledged is kept; open jobs resume at the next start.");
    process.exit(exitCodes.interrupted);
  });
  try {
    let options: StartOptions = {
      newDatabase: call.flag("new-database") === true,
      newKey: call.flag("new-key") === true,
      acceptDataLoss: call.flag("accept-data-loss") === true,
    };
    for (;;) {
      const server = await startServer(config, options);
      announce(call, config, server);
      if (server.gatewayUrl !== null) await warnAboutCatalog(call, config);
      const end = await Promise.race([aborted(interrupts.signal), server.ending]);
      if (end !== undefined) terminal.note(end.reason);
      terminal.note(stopNotice(server));
      await server.close();
      terminal.note("Stopped.");
      if (end?.again == null) return end === undefined ? exitCodes.success : exitCodes.left;
      // What prevents it leaves the program as it was.
      await end.again().catch((error: unknown) => terminal.note(cleanText(String(error))));
      options = {};
      config = { ...configFor(call, command), ...portsOf(config, server) };
    }
  } finally {
    interrupts.release();
  }
}

/** Any free port stays the one that clients know. */
function portsOf(
  { apiPort, runtimeApiPort, grpcPort, command }: Config,
  { gatewayUrl, runtimeUrl, grpcAddress }: Served,
) {
  const portOf = (url: string | null, otherwise: number) =>
    url === null ? otherwise : Number(new URL(url).port);
  const runtimePort = portOf(runtimeUrl, runtimeApiPort);
  return {
    apiPort: command === "runtime" ? runtimePort : portOf(gatewayUrl, apiPort),
    runtimeApiPort: runtimePort,
    grpcPort: portOf(grpcAddress === null ? null : `grpc://${grpcAddress}`, grpcPort),
  };
}

/**
 * Starts the program in this process.
 *
 * @throws CommandFailed with the reason when it could not start
 */
export async function startServer(config: Config, options: StartOptions = {}): Promise<RunningProgram> {
  try {
    await checkPorts(config);
    // Loaded here because it brings the whole engine, which a client of a running server does not need.
    const { startProgram } = await import("../app/app.ts");
    return await startProgram(config, options);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const code = error instanceof StartFailed && error.isFinal ? exitCodes.left : exitCodes.failure;
    throw new CommandFailed(`Troupe could not start. ${reason}`, code);
  }
}

/**
 * Finds out that a port is taken before anything is loaded or opened: on a busy machine a start takes long.
 *
 * @throws StartFailed, or StoreUnusable when it is this home's own program that has the port
 */
async function checkPorts(config: Config): Promise<void> {
  const { command, apiHost, apiPort, runtimeApi, runtimeApiHost, runtimeApiPort, home } = config;
  const { grpcHost, grpcPort } = config;
  const isGateway = command === "up" || command === "gateway";
  const isRuntime = command !== "gateway" && runtimeApi === "tcp";
  const variable = runtimePortName(config);
  const addresses = [
    ...(isGateway ? [{ host: apiHost, port: apiPort, variable: "SVC_API_PORT" }] : []),
    ...(isRuntime ? [{ host: runtimeApiHost, port: runtimeApiPort, variable }] : []),
    ...(command === "gateway" ? [] : [{ host: grpcHost, port: grpcPort, variable: "SVC_GRPC_PORT" }]),
  ];
  for (const address of addresses) {
    const refused = await refusedAddress(address);
    if (refused === null) continue;
    const { openHome } = await import("../store/home.ts");
    if (existsSync(join(home, "lock.db"))) openHome(home).release();
    throw refused;
  }
}

function announce(call: Call, config: Config, served: Served): void {
  const { gatewayUrl, runtimeUrl, runtimeSocket, grpcAddress } = served;
  const { terminal } = call;
  const version = programVersion();
  if (call.flag("json")) {
    const url = gatewayUrl ?? runtimeUrl;
    const urls = { url, gateway_url: gatewayUrl, runtime_url: runtimeUrl, runtime_socket: runtimeSocket };
    terminal.print(
      JSON.stringify({ ...urls, grpc_address: grpcAddress, home: config.home, version, pid: process.pid }),
    );
    return;
  }
  const at = (name: string, where: string | null) =>
    where === null ? [] : [`  ${name.padEnd(11)}  ${where}`];
  const pageOf = (path: string) => (gatewayUrl === null ? null : new URL(path, gatewayUrl).href);
  // In one write: a program that reads this has all of it, or nothing yet.
  const lines = [
    `${terminal.paint("bold", "Troupe")} ${version}`,
    ...at("gateway", gatewayUrl),
    ...at("console", config.console ? pageOf("/console") : null),
    ...at("API docs", pageOf("/docs")),
    ...at("runtime API", runtimeText(config, served)),
    ...at("gRPC", grpcAddress),
    ...at("home", config.home),
    "Ready. Ctrl-C stops; open jobs resume at the next start.",
  ];
  terminal.print(lines.join("\n"));
}

/** Null where none is asked for. */
function runtimeText(config: Config, { runtimeUrl, runtimeSocket }: Served): string | null {
  if (runtimeUrl !== null)
    return runtimeUrl + (config.runtimeApiTokens.length > 0 ? " (asks for its token)" : "");
  if (runtimeSocket !== null) return `${runtimeSocket} (for this user alone)`;
  return config.command === "gateway" ? null : "off";
}

/** The gateway serves the valid part of the catalog; a wrong folder or index shows nowhere else. */
async function warnAboutCatalog({ terminal }: Call, { blueprintCatalog }: Config): Promise<void> {
  const { lookInto } = await import("../blueprints/catalog-folder.ts");
  for (const folder of blueprintCatalog) {
    const { problems } = await lookInto(folder);
    for (const { message } of problems) terminal.note(cleanText(`warning: ${message}. (${folder})`));
  }
}

function stopNotice({ openJobs }: RunningProgram): string {
  const open = openJobs();
  if (open === 0) return "Stopping: no job is open.";
  return `Stopping: ${plural(open, "open job")} will resume at the next start.`;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
