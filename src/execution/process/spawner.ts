// Starts workers, through a small process beside this one (spawner-process.ts).
//
// A process of its own asks the system for them: it is small, which matters where starting one means to fork, and as it
// starts nothing else it can tell whether anything is left of a worker's process tree (native-spawn.ts).
//
// - Every start is answered: by a worker, or by the system's error.
// - Every worker's end is told once. It is not known (null) when the spawner was lost: the worker may then still
//   run, and is its caller's to end.
// - Where workers may run for a time only, the spawner ends them, also while this process is stopped (lease-guard.ts).
// - The spawner is started with the first worker, and again after it was lost. It never outlives this process.

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { LineSplitter } from "../output/lines.ts";
import type {
  LeaseOver,
  LeaseRequest,
  PeaksRequest,
  StartReport,
  StartRequest,
  StartSpec,
  WorkerExit,
} from "./spawner-process.ts";
import type { Peaks } from "./usage.ts";

const PROGRAM = fileURLToPath(new URL("./spawner-process.ts", import.meta.url));
/** More than any system lets a process have as its arguments and environment. */
const REQUEST_CHARS_MAX = 8 * 1024 * 1024;
const REPORT_BYTES_MAX = 64 * 1024;

export interface StartedWorker {
  readonly pid: number;
  /** As the process table shows it; null when that is not known. */
  readonly start: string | null;
  /** Never rejects. */
  readonly exited: Promise<WorkerExit | null>;
}

/** The spawner ended before it had answered; nothing may be wrong with what was to be started. */
export class SpawnerLost extends Error {
  override readonly name = "SpawnerLost";
}

type Open =
  | { readonly kind: "starting"; resolve(worker: StartedWorker): void; reject(error: Error): void }
  | { readonly kind: "running"; resolve(exit: WorkerExit | null): void }
  | { readonly kind: "asking"; resolve(peaks: Peaks | null): void };

export class Spawner {
  #process: ChildProcess | null = null;
  readonly #open = new Map<number, Open>();
  #seq = 0;
  readonly #onProcess: (pid: number) => void;
  readonly #onLeaseOver: () => void;
  #untilNs: bigint | null = null;

  /**
   * @param onProcess told of the process that starts workers, each time that it has been started itself
   * @param onLeaseOver told before the end of any worker is told that was ended for that
   */
  constructor(onProcess: (pid: number) => void = () => {}, onLeaseOver: () => void = () => {}) {
    this.#onProcess = onProcess;
    this.#onLeaseOver = onLeaseOver;
  }

  /** Workers may run for so long, until this is called again. @param leftMs asked once, now */
  mayRunFor(leftMs: () => number): void {
    // In this order: a process that is stopped in between gives its workers less time, not more.
    const nowNs = process.hrtime.bigint();
    this.#untilNs = nowNs + BigInt(Math.floor(leftMs() * 1e6));
    this.#sendLease();
  }

  #sendLease(): void {
    if (this.#untilNs === null) return;
    const request: LeaseRequest = { untilNs: String(this.#untilNs) };
    this.#process?.stdin?.write(`${JSON.stringify(request)}\n`);
  }

  /** @throws the system's error (code ENOENT, EACCES, E2BIG, …), or SpawnerLost */
  start(spec: StartSpec): Promise<StartedWorker> {
    const id = ++this.#seq;
    const line = JSON.stringify({ id, ...spec } satisfies StartRequest);
    if (line.length > REQUEST_CHARS_MAX) return Promise.reject(systemError("E2BIG", "spawn E2BIG"));
    if (this.#process === null) {
      this.#process = this.#startProcess();
      this.#sendLease();
    }
    this.#process.stdin?.write(`${line}\n`);
    return new Promise((resolve, reject) => this.#open.set(id, { kind: "starting", resolve, reject }));
  }

  /** @returns the most that was seen of a worker that runs; null when nothing was */
  peaksOf(pid: number): Promise<Peaks | null> {
    if (this.#process === null) return Promise.resolve(null);
    const request: PeaksRequest = { id: ++this.#seq, peaksOf: pid };
    this.#process.stdin?.write(`${JSON.stringify(request)}\n`);
    return new Promise((resolve) => this.#open.set(request.id, { kind: "asking", resolve }));
  }

  /** Ends the spawner. To be called once no worker is left; may be called twice. */
  async close(): Promise<void> {
    const child = this.#process;
    if (child === null) return;
    await new Promise((resolve) => {
      child.once("close", resolve);
      child.kill("SIGKILL");
    });
  }

  #startProcess(): ChildProcess {
    // A session of its own: a Ctrl-C in the terminal is for the runtime. Nothing of the runtime's environment is for it.
    const { NODE_COMPILE_CACHE: cache } = process.env;
    const child = spawn(
      process.execPath,
      ["--max-semi-space-size=1", "--disable-warning=ExperimentalWarning", PROGRAM],
      {
        stdio: ["pipe", "pipe", "inherit"],
        detached: true,
        cwd: "/",
        env: cache === undefined ? {} : { NODE_COMPILE_CACHE: cache },
      },
    );
    if (child.pid !== undefined) this.#onProcess(child.pid);
    const reports = new LineSplitter(REPORT_BYTES_MAX, (line) =>
      this.#take(JSON.parse(line) as StartReport | LeaseOver),
    );
    child.stdout?.on("data", (chunk: Buffer) => reports.push(chunk));
    child.stdin?.on("error", () => {
      // EPIPE: it has ended, which is reported by itself.
    });
    child.once("error", (error) => this.#lost(child, error));
    const ended = new SpawnerLost("The process that starts commands has ended.");
    child.once("close", () => this.#lost(child, ended));
    return child;
  }

  #take(report: StartReport | LeaseOver): void {
    if (report.kind === "lease over") {
      this.#onLeaseOver();
      return;
    }
    const open = this.#open.get(report.id);
    if (open === undefined) return;
    this.#open.delete(report.id);
    if (report.kind === "started" && open.kind === "starting") {
      const { pid, start } = report;
      const exited = new Promise<WorkerExit | null>((resolve) => {
        this.#open.set(report.id, { kind: "running", resolve });
      });
      open.resolve({ pid, start, exited });
    } else if (report.kind === "failed" && open.kind === "starting") {
      open.reject(systemError(report.code, report.message));
    } else if (report.kind === "ended" && open.kind === "running") {
      const { exitCode, signal, usage, memory, isTreeGone } = report;
      open.resolve({ exitCode, signal, usage, memory, isTreeGone });
    } else if (report.kind === "peaks" && open.kind === "asking") open.resolve(report.peaks);
  }

  #lost(child: ChildProcess, error: Error): void {
    if (this.#process !== child) return;
    this.#process = null;
    const lost = [...this.#open.values()];
    this.#open.clear();
    for (const open of lost) {
      if (open.kind === "starting") open.reject(error);
      else open.resolve(null);
    }
  }
}

function systemError(code: string | null, message: string): Error {
  return code === null ? new Error(message) : Object.assign(new Error(message), { code });
}
