// The program in the test's own process: the same composition root, configuration and sockets as
// `troupe up` and `troupe runtime`, for a fraction of the processor time. For tests of what is answered and what is
// stored; what is about signals, kills, the command line or input that may take the process down starts the real program
// (program.ts, command-line.ts).

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { type StartOptions, startProgram } from "../../src/app/app.ts";
import { loadConfig } from "../../src/app/config.ts";
import { startHere } from "./command-line.ts";
import { POSTGRES_VARIABLE, returnPostgres, takePostgres } from "./postgres.ts";
import { type Exit, type Program, programEnvironment, temporaryHome } from "./program.ts";
import { assertRefusal, type DomainError } from "./refusal.ts";

export interface InProcessOptions {
  /** `troupe up` when absent, with the runtime API beside the gateway. */
  readonly command?: "up" | "gateway";
  /** Variables of the program (SVC_*, OTEL_*), not of its commands; all ports are any free one. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** An existing SVC_HOME, to carry on where another program ended; it is the caller's to remove. */
  readonly home?: string;
  /** What an operator allows for this start. */
  readonly allowing?: StartOptions;
}

// As programEnvironment does for a child: no program sees the tester's own variables.
for (const name of Object.keys(process.env)) if (/^(SVC|OTEL)_/.test(name)) delete process.env[name];

/** `troupe up` in this process, seen at its gateway. */
export const startGatewayHere = (options: InProcessOptions = {}): Promise<Program> =>
  start(options.command ?? "up", options);

/** `troupe runtime` in this process. */
export const startRuntimeHere = (options: Omit<InProcessOptions, "command"> = {}): Promise<Program> =>
  start("runtime", options);

/** The kind of the programs' database, as their health calls it. */
export const databaseKind = process.env[POSTGRES_VARIABLE] === undefined ? "sqlite" : "postgresql";
/** For a test that looks into SQLite's file. */
export const unlessOnPostgres = databaseKind === "sqlite" ? {} : { skip: "on PostgreSQL" };
/** Databases of homes in which several programs are started, one after the other. */
const databases = new Map<string, string>();

async function databaseOf(home: string): Promise<string | undefined> {
  if (process.env[POSTGRES_VARIABLE] === undefined) return undefined;
  const url = databases.get(home) ?? (await takePostgres());
  databases.set(home, url);
  return url;
}

async function start(command: "up" | "gateway" | "runtime", options: InProcessOptions): Promise<Program> {
  const home = options.home ?? (await temporaryHome());
  const database = await databaseOf(home);
  const env = programEnvironment(home, { SVC_DATABASE_URL: database, ...options.env });
  const loaded = loadConfig(env, command);
  if (loaded.kind === "invalid") throw new Error(loaded.problems.join("\n"));
  let output = "";
  const logTo = {
    write(line: string) {
      output += line;
    },
  };
  const running = await startProgram(loaded.config, options.allowing, { logTo, env });
  const { gatewayUrl, runtimeUrl, grpcAddress } = running;
  // As the command prints them; the lines of the log follow.
  output = `  gateway      ${gatewayUrl}\n  runtime API  ${runtimeUrl}\n  gRPC         ${grpcAddress}\n${output}`;
  const api = gatewayUrl ?? runtimeUrl ?? "";
  const ended = Promise.withResolvers<Exit>();
  const stop = async () => {
    await running.close();
    if (options.home === undefined) {
      await rm(home, { recursive: true, force: true });
      if (databases.delete(home)) await returnPostgres(database!);
    }
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

/** A start that must be refused, in this process. */
export async function refusedStartHere(options: {
  readonly home: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}): Promise<DomainError> {
  const running = startHere(options.args ?? ["runtime"], options.home, options.env);
  const started = running
    .shows("Ready.")
    .then(() => assert.fail(`the program started:\n${running.printed()}`));
  const { code, out, err } = await Promise.race([running.ended, started]);
  assertRefusal(out + err);
  return { code, text: out + err };
}
