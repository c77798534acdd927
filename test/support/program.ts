// The real program as a child process, for tests that must see what a user sees: `bin/troupe.mjs`, its own
// folder, its own port, real signals.
//
// - No program outlives the test process that started it, unless that process is ended by SIGKILL.
// - A program never sees the tester's own SVC_* and OTEL_* variables, and its home lies outside the checkout.
// - Starting resolves once the program has printed its URL, or rejects with everything it printed.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testedEngine } from "./engines.ts";
import { launcher, launcherEnvironment } from "./packed-program.ts";

const OUTPUT_CHARS_MAX = 1024 * 1024;
const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 60_000;

export interface ProgramOptions {
  /** Arguments of `troupe`; ["runtime"] when absent. */
  readonly args?: readonly string[];
  /** Further variables; one that is undefined is removed. All ports default to 0, any free one. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** An existing SVC_HOME, to carry on where another program ended; it is the caller's to remove. */
  readonly home?: string;
  /** The launcher of an installed package; this checkout's when absent. */
  readonly launcher?: string;
  /** Words before the program's own, such as ["nice", "-n", "5"]: a command that in the end becomes the program. */
  readonly through?: readonly string[];
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Program {
  /** Scheme, host and port, without a path: "http://127.0.0.1:41234". */
  readonly url: string;
  /** Where the API begins: `url` + "/api/v1". */
  readonly api: string;
  readonly home: string;
  readonly pid: number;
  /** Resolves when the program has ended, for whatever reason. */
  readonly exited: Promise<Exit>;
  /** Asks with SIGTERM, waits for the end, and removes the home if `startProgram` made it. May be called twice. */
  stop(): Promise<Exit>;
  /** SIGKILL, as a power cut would; waits for the end and leaves the home, for a next start with `home`. */
  kill(): Promise<Exit>;
  /** What it has printed so far, stdout and stderr in order of arrival; of a very long output the end. */
  output(): string;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts the program and waits until it serves.
 *
 * @example await using program = await startProgram({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "4" } });
 */
export async function startProgram(options: ProgramOptions = {}): Promise<Program> {
  const home = options.home ?? (await temporaryHome());
  const [file, ...args] = programWords(options);
  const child = spawn(file, args, {
    env: programEnvironment(home, options.env),
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own, so that one kill reaches the launcher and the program behind it.
    detached: true,
  });
  const exited = exitOf(child);
  const read = collectOutput(child);
  const removeHome = () =>
    // What a killed program has left may still write there for a moment.
    options.home === undefined
      ? rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
      : Promise.resolve();
  try {
    const url = await urlOf(child, read, exited);
    return program({ child, exited, url, home, output: read, removeHome });
  } catch (error) {
    killGroup(child);
    await exited;
    await removeHome();
    throw error;
  }
}

/** The command that starts the program, word by word. */
export function programWords(options: ProgramOptions): readonly [string, ...string[]] {
  const [first, ...rest] = options.through ?? [];
  const own = [options.launcher ?? launcher, ...(options.args ?? ["runtime"])];
  return first === undefined ? [process.execPath, ...own] : [first, ...rest, process.execPath, ...own];
}

/** An empty folder for SVC_HOME. Its name has a blank in it: paths with blanks must work everywhere. */
export function temporaryHome(): Promise<string> {
  return mkdtemp(join(tmpdir(), "troupe home "));
}

/** The environment of a program under test: the tester's own without SVC_* and OTEL_*, any free port, few logs. */
export function programEnvironment(
  home: string,
  extra: Readonly<Record<string, string | undefined>> = {},
): Record<string, string> {
  const env: Record<string, string> = {};
  if (testedEngine !== "bubblewrap") env.SVC_SANDBOX_ENGINE = testedEngine;
  const own = Object.entries(process.env).filter(([name]) => !/^(SVC|OTEL)_/.test(name));
  const ports = { SVC_API_PORT: "0", SVC_RUNTIME_API_PORT: "0", SVC_GRPC_PORT: "0", SVC_NODE_PORT: "0" };
  for (const [name, value] of [
    ...own,
    ...Object.entries({ ...ports, ...launcherEnvironment, SVC_HOME: home, ...extra }),
  ]) {
    if (value !== undefined) env[name] = value;
  }
  // Set by the test runner for its own children; a program that inherits it would report to the runner.
  delete env.NODE_TEST_CONTEXT;
  return env;
}

interface Parts {
  readonly child: ChildProcess;
  readonly exited: Promise<Exit>;
  readonly url: string;
  readonly home: string;
  readonly output: () => string;
  readonly removeHome: () => Promise<void>;
}

function program(parts: Parts): Program {
  const { child, exited, url, home, output } = parts;
  const stop = async () => {
    if (isAlive(child)) child.kill("SIGTERM");
    const exit = await within(STOP_LIMIT_MS, exited, () => {
      killGroup(child);
      return `the program did not end within ${STOP_LIMIT_MS} ms of SIGTERM; it printed:\n${output()}`;
    });
    await parts.removeHome();
    return exit;
  };
  const kill = () => {
    killGroup(child);
    return exited;
  };
  return {
    url,
    api: `${url}/api/v1`,
    home,
    pid: child.pid ?? -1,
    exited,
    stop,
    kill,
    output,
    [Symbol.asyncDispose]: async () => void (await stop()),
  };
}

const running = new Set<ChildProcess>();
const killAll = () => {
  for (const child of running) killGroup(child);
};
process.on("exit", killAll);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  // Not "once": a signal that comes twice must not end this process before the programs are ended.
  const handle = () => {
    killAll();
    process.off(signal, handle);
    process.kill(process.pid, signal);
  };
  process.on(signal, handle);
}

function exitOf(child: ChildProcess): Promise<Exit> {
  running.add(child);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    // "close", not "exit": by then all output has been read.
    child.once("close", (code, signal) => {
      running.delete(child);
      resolve({ code, signal });
    });
  });
}

function collectOutput(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text = (text + chunk).slice(-OUTPUT_CHARS_MAX);
    });
  }
  return () => text;
}

function urlOf(child: ChildProcess, output: () => string, exited: Promise<Exit>): Promise<string> {
  const printed = new Promise<string>((resolve, reject) => {
    const look = () => {
      // The port must be followed by something, or the rest of it may still be on its way.
      const url = /http:\/\/(?:127\.0\.0\.1|localhost|\[::1\]):\d+(?=[^\d])/.exec(output())?.[0];
      if (url !== undefined) resolve(url);
    };
    child.stdout?.on("data", look);
    child.stderr?.on("data", look);
    exited.then(
      ({ code, signal }) => reject(new Error(`the program ended early (${signal ?? code}):\n${output()}`)),
      reject,
    );
  });
  return within(START_LIMIT_MS, printed, () => `no URL within ${START_LIMIT_MS} ms:\n${output()}`);
}

/** A limit on how long a broken program can hold up a test run; no test asserts on it. */
export async function within<T>(limitMs: number, promise: Promise<T>, message: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message())), limitMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // Nothing is left of the group.
  }
}
