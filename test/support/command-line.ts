// The `troupe` command as people use it: the real program, its words, output, signals and exit code.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { freePorts } from "./ports.ts";
import { programEnvironment, within } from "./program.ts";

const launcher = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves when stdout or stderr has shown the text. */
  shows(text: string): Promise<void>;
  printed(): string;
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
  let out = "";
  let err = "";
  const waiting: { text: string; resolve: () => void }[] = [];
  const look = () => {
    for (const { text, resolve } of waiting) if (out.includes(text) || err.includes(text)) resolve();
  };
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    out += chunk;
    look();
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    err += chunk;
    look();
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      running.delete(child);
      resolve({ code, out, err });
    });
  });
  const shows = async (text: string) => {
    const shown = new Promise<void>((resolve) => {
      waiting.push({ text, resolve });
      look();
    });
    const early = ended.then(() =>
      assert.ok(out.includes(text) || err.includes(text), `ended early:\n${out}${err}`),
    );
    await within(
      SHOWN_LIMIT_MS,
      Promise.race([shown, early]),
      () => `it does not show ${JSON.stringify(text)}; it printed:\n${out}${err}`,
    );
  };
  return { child, ended, shows, printed: () => out };
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
