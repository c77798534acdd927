// A copy of the project in which faults are made and tests are run, so that neither touches the project itself.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, cpSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { processesIn } from "../support/processes.ts";
import { LIMIT_VARIABLE } from "../support/until.ts";
import { TIMED_OUT } from "./first-failure.ts";
import { type Mutation, mutated } from "./mutation.ts";

const LEFT_OUT = new Set([".git", "node_modules", "tmp"]);
const reporter = fileURLToPath(new URL("first-failure.ts", import.meta.url));
/** How long a test looks for a fact. It is enough for all tests as they are, which is tried first. */
const UNTIL_MS = 15_000;
/** Of one test. */
const TEST_MS_MAX = 120_000;
/** Of a file that a fault keeps so busy that the limit of its tests is not noticed. */
const FILE_MS_MAX = 300_000;

export type Verdict = "passed" | "failed" | "timed out";

export interface Outcome {
  readonly verdict: Verdict;
  /** What was printed; the last line names the test that has failed. */
  readonly output: string;
}

export class ProjectCopy {
  readonly #folder: string;
  readonly #root: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #output: string;

  /**
   * @param root folder of the project
   * @param folder does not exist yet; the copy and the temporary files of its tests are made in it
   */
  constructor(root: string, folder: string) {
    this.#folder = folder;
    this.#root = join(folder, "project");
    this.#output = join(folder, "output");
    const temporary = join(folder, "tmp");
    mkdirSync(temporary, { recursive: true });
    cpSync(root, this.#root, { recursive: true, filter: (path) => !LEFT_OUT.has(relative(root, path)) });
    symlinkSync(join(root, "node_modules"), join(this.#root, "node_modules"));
    // An inherited NODE_TEST_CONTEXT would have the tests report to the caller, and succeed.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    this.#env = {
      ...env,
      TMPDIR: temporary,
      NODE_COMPILE_CACHE: join(folder, "compiled"),
      [LIMIT_VARIABLE]: `${UNTIL_MS}`,
    };
  }

  /** Runs the tests with the fault in the copy, which is afterwards as it was. */
  async runWith(mutation: Mutation): Promise<Outcome> {
    const file = join(this.#root, mutation.file);
    const original = readFileSync(file);
    writeFileSync(file, mutated(this.#root, mutation));
    try {
      return await this.run(mutation.tests);
    } finally {
      writeFileSync(file, original);
    }
  }

  /** Runs test files one after the other, until one does not pass. */
  async run(tests: readonly string[]): Promise<Outcome> {
    for (const test of tests) {
      const outcome = await this.#runFile(test);
      if (outcome.verdict !== "passed") return outcome;
    }
    return { verdict: "passed", output: "" };
  }

  /** Without a runner between: its process would cost half a second more for each file. */
  async #runFile(test: string): Promise<Outcome> {
    const options = [`--test-timeout=${TEST_MS_MAX}`, `--test-reporter=${reporter}`];
    // A file, not a pipe: a process that outlives the test would keep a pipe open.
    const output = openSync(this.#output, "w");
    const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", ...options, test], {
      cwd: this.#root,
      env: this.#env,
      stdio: ["ignore", output, output],
      timeout: FILE_MS_MAX,
      killSignal: "SIGKILL",
    });
    closeSync(output);
    const [code, signal] = await once(child, "exit");
    endProcessesIn(this.#folder);
    const isLate = code === TIMED_OUT || signal === "SIGKILL";
    const verdict = code === 0 ? "passed" : isLate ? "timed out" : "failed";
    return { verdict, output: readFileSync(this.#output, "utf8").trimEnd() };
  }
}

/** What a test that was cut off has left running: workers, for example, whose program was killed with it. */
function endProcessesIn(folder: string): void {
  for (const pid of processesIn(folder)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended by itself.
    }
  }
}
