// The `troupe` command as people use it: its words, output, signals and exit code. `start` is the real program, a process;
// `startHere` runs the command in the test's own process, which takes a fiftieth of the time. Whatever needs a process is
// tested with one: signals, stdin, a reader that goes away, a server that the command starts.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { Writable } from "node:stream";
import { after } from "node:test";
import { runCommand } from "../../src/cli/cli.ts";
import { terminalOn } from "../../src/cli/terminal.ts";
import { launcher } from "./packed-program.ts";
import { freePorts } from "./ports.ts";
import { programEnvironment, within } from "./program.ts";

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Running {
  readonly ended: Promise<Ended>;
  /** Resolves when stdout or stderr has shown the text. */
  shows(text: string): Promise<void>;
  printed(): string;
}

export interface Started extends Running {
  readonly child: ChildProcess;
}

/** How long a text that does not come can hold up a test run; no test asserts on it. */
const SHOWN_LIMIT_MS = 120_000;

/** Those that run, so that a test that failed half way leaves none behind. */
const running = new Set<ChildProcess>();
after(() => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a command. @param input what it reads from stdin */
export function start(
  args: readonly string[],
  home: string,
  env: Readonly<Record<string, string>> = {},
  input = "",
): Started {
  const child = spawn(process.execPath, [launcher, ...args], { env: programEnvironment(home, env) });
  // A command that does not read its stdin is gone before the input is written.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  running.add(child);
  const transcript = new Transcript();
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => transcript.add("out", chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => transcript.add("err", chunk));
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      running.delete(child);
      resolve(code);
    });
  });
  return { child, ...transcript.until(ended) };
}

/** Runs a command in this process, with an environment and streams of its own. */
export function startHere(
  args: readonly string[],
  home: string,
  env: Readonly<Record<string, string>> = {},
): Running {
  const transcript = new Transcript();
  const into = (stream: "out" | "err") =>
    new Writable({
      decodeStrings: false,
      write(chunk: string, _encoding, done) {
        transcript.add(stream, chunk);
        done();
      },
    });
  const surroundings = programEnvironment(home, env);
  const terminal = terminalOn(into("out"), into("err"), surroundings);
  return transcript.until(runCommand(args, { terminal, env: surroundings }));
}

/** What a command prints. */
class Transcript {
  readonly #texts = { out: "", err: "" };
  readonly #waiting: { readonly text: string; readonly resolve: () => void }[] = [];

  add(stream: "out" | "err", chunk: string): void {
    this.#texts[stream] += chunk;
    this.#look();
  }

  /** @param code the exit code, once the command has ended */
  until(code: Promise<number | null>): Running {
    const ended = code.then((known) => ({ code: known, ...this.#texts }));
    return {
      ended,
      shows: (text) => this.#shows(text, ended),
      printed: () => this.#texts.out,
    };
  }

  #has(text: string): boolean {
    return this.#texts.out.includes(text) || this.#texts.err.includes(text);
  }

  #look(): void {
    for (const { text, resolve } of this.#waiting) if (this.#has(text)) resolve();
  }

  async #shows(text: string, ended: Promise<Ended>): Promise<void> {
    const shown = new Promise<void>((resolve) => {
      this.#waiting.push({ text, resolve });
      this.#look();
    });
    const printed = () => `${this.#texts.out}${this.#texts.err}`;
    const early = ended.then(() => assert.ok(this.#has(text), `ended early:\n${printed()}`));
    await within(
      SHOWN_LIMIT_MS,
      Promise.race([shown, early]),
      () => `it does not show ${JSON.stringify(text)}; it printed:\n${printed()}`,
    );
  }
}

/** A manifest with one command. */
export function oneCommand(graphId: string, command: string, config: Record<string, unknown> = {}): string {
  return JSON.stringify({
    manifest_version: "1.0",
    graph_id: graphId,
    entrypoints: ["work"],
    nodes: [{ node_id: "work", agent_type: "executor", config: { command, ...config } }],
  });
}

/** A port that nothing listens on, and that only the caller's own programs will. */
export const closedPort = (): Promise<number> => freePorts(1);
