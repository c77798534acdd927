// `troupe up` and `troupe runtime`: start, stay, stop well.

import type { RunningRuntime } from "../app.ts";
import type { Config } from "../config.ts";
import { programVersion } from "../version.ts";
import { RuntimeClient } from "./client.ts";
import { type Call, CommandFailed, exitCodes } from "./command.ts";
import { configFor } from "./connection.ts";
import { listenForInterrupts } from "./interrupts.ts";
import { plural } from "./text.ts";

const COUNT_TIMEOUT_MS = 2_000;

export const up = (call: Call) => serve(call, "up");
export const runtime = (call: Call) => serve(call, "runtime");

async function serve(call: Call, command: "up" | "runtime"): Promise<number> {
  const { terminal } = call;
  const config = configFor(call, command);
  const interrupts = listenForInterrupts(() => {
    terminal.note("Stopped at once. What was acknowledged is kept; the next start carries on.");
    process.exit(exitCodes.interrupted);
  });
  try {
    const server = await startServer(config);
    announce(call, config, server.url);
    await aborted(interrupts.signal);
    terminal.note(await farewell(server.url));
    await server.close();
    terminal.note("Stopped.");
    return exitCodes.success;
  } finally {
    interrupts.release();
  }
}

/**
 * Starts the runtime in this process.
 *
 * @throws CommandFailed that says why it could not start
 */
export async function startServer(config: Config): Promise<RunningRuntime> {
  // Loaded here because it brings the whole engine, which a client of a running server does not need.
  const { startRuntime } = await import("../app.ts");
  try {
    return await startRuntime(config);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandFailed(`The runtime could not start. ${reason}`);
  }
}

function announce(call: Call, config: Config, url: string): void {
  const { terminal } = call;
  const version = programVersion();
  if (call.flag("json")) {
    terminal.print(JSON.stringify({ url, home: config.home, version, pid: process.pid }));
    return;
  }
  terminal.print(`${terminal.paint("bold", "Troupe")} ${version}`);
  terminal.print(`  runtime API  ${url}`);
  terminal.print(`  home         ${config.home}`);
  terminal.print("Ready. Ctrl-C stops; running jobs carry on at the next start.");
}

async function farewell(url: string): Promise<string> {
  const signal = AbortSignal.timeout(COUNT_TIMEOUT_MS);
  const client = new RuntimeClient({ baseUrl: url, signal });
  const open = await client.jobs({ limit: null, openOnly: true }).catch(() => null);
  if (open === null) return "Stopping: open jobs are handed to the next start.";
  if (open.length === 0) return "Stopping: no job is open.";
  return `Stopping: ${plural(open.length, "open job")} handed to the next start.`;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
