// The program and its commands in the test's own process: the same composition root, configuration and sockets as
// `troupe up` and `troupe runtime`, for a fraction of the processor time. For tests of what is answered and what is
// stored; what is about signals, kills, the command line or input that may take the process down starts the real program
// (program.ts, command-line.ts).

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { type StartOptions, startProgram } from "../../src/app/app.ts";
import { loadConfig } from "../../src/app/config.ts";
import { runCommand } from "../../src/cli/cli.ts";
import { plainPaint } from "../../src/cli/terminal.ts";
import type { Ended } from "./command-line.ts";
import { type Exit, type Program, temporaryHome } from "./program.ts";
import { assertRefusal, type DomainError } from "./refusal.ts";

export interface InProcessOptions {
  /** Variables of the program (SVC_*); all ports are any free one. */
  readonly env?: Readonly<Record<string, string>>;
  /** An existing SVC_HOME, to carry on where another program ended; it is the caller's to remove. */
  readonly home?: string;
  /** What an operator allows for this start. */
  readonly allowing?: StartOptions;
}

// As programEnvironment does for a child: no program sees the tester's own variables.
for (const name of Object.keys(process.env)) if (/^(SVC|OTEL)_/.test(name)) delete process.env[name];

/** `troupe up` in this process, seen at its gateway. */
export const startGatewayHere = (options: InProcessOptions = {}): Promise<Program> => start("up", options);

/** `troupe runtime` in this process. */
export const startRuntimeHere = (options: InProcessOptions = {}): Promise<Program> =>
  start("runtime", options);

const variables = (home: string, more: Readonly<Record<string, string>> = {}) => ({
  SVC_API_PORT: "0",
  SVC_RUNTIME_API_PORT: "0",
  SVC_HOME: home,
  ...more,
});

async function start(command: "up" | "runtime", options: InProcessOptions): Promise<Program> {
  const home = options.home ?? (await temporaryHome());
  const loaded = loadConfig(variables(home, options.env), command);
  if (loaded.kind === "invalid") throw new Error(loaded.problems.join("\n"));
  let output = "";
  const log = {
    write(line: string) {
      output += line;
    },
  };
  const running = await startProgram(loaded.config, options.allowing, log);
  const { gatewayUrl, runtimeUrl } = running;
  // As the command prints them; the lines of the log follow.
  output = `  gateway      ${gatewayUrl}\n  runtime API  ${runtimeUrl}\n${output}`;
  const api = gatewayUrl ?? runtimeUrl ?? "";
  const ended = Promise.withResolvers<Exit>();
  const stop = async () => {
    await running.close();
    if (options.home === undefined) await rm(home, { recursive: true, force: true });
    ended.resolve({ code: 0, signal: null });
    return ended.promise;
  };
  return {
    url: new URL(api).origin,
    api,
    home,
    pid: process.pid,
    exited: ended.promise,
    stop,
    kill: () => Promise.reject(new Error("Only a program of its own can be killed: use startProgram.")),
    output: () => output,
    [Symbol.asyncDispose]: async () => void (await stop()),
  };
}

/** A command of `troupe` that ends by itself, in this process. */
export async function troupeHere(
  args: readonly string[],
  home: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const out: string[] = [];
  const err: string[] = [];
  const terminal = {
    isScreen: false,
    paint: plainPaint,
    print: (line = "") => {
      assert.ok(!line.startsWith("Ready."), "the program started");
      out.push(`${line}\n`);
    },
    note: (line: string) => void err.push(`${line}\n`),
    size: () => ({ columns: 80, rows: 24 }),
    redraw: () => {},
    settle: () => {},
  };
  // Commands that write files set it, and leave it to their process to forget it.
  const umask = process.umask();
  const code = await runCommand(args, { env: { ...process.env, ...variables(home, env) }, terminal });
  process.umask(umask);
  return { code, out: out.join(""), err: err.join("") };
}

/** A start that must be refused, in this process. */
export async function refusedStartHere(options: {
  readonly home: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}): Promise<DomainError> {
  const { code, out, err } = await troupeHere(options.args ?? ["runtime"], options.home, options.env);
  assertRefusal(out + err);
  return { code, text: out + err };
}
