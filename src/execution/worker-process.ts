// One worker process: spawned, read while it runs, and ended with everything it started.
//
// C1. It never waits for ever on a worker that has ended: pipes that others hold are given up (pipe-reader.ts).
// C2. `ended` resolves once, when the leader and its group are gone and all pipes are read.
// C3. Asked to end, the tree gets SIGTERM, and after the grace period SIGKILL; a tree that obeys is left its time.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, renameSync, unlinkSync } from "node:fs";
import { Socket } from "node:net";
import { limits } from "../engine/limits.ts";
import type { Clock } from "../engine/ports.ts";
import { type FifoSupply, openPipe, type PipeEnds } from "./fifos.ts";
import { PipeReader } from "./pipe-reader.ts";
import { type ProcessTree, type ProcessTrees, signalGroup } from "./process-trees.ts";

export interface WorkerTools {
  readonly fifos: FifoSupply;
  readonly trees: ProcessTrees;
  readonly clock: Clock;
}

export interface WorkerSpec {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly mark: string;
  /** Where the worker finds the pipe for its events. */
  readonly eventStreamPath: string;
  /** Whether stdin is a pipe that messages are sent through. */
  readonly takesInput: boolean;
}

export interface WorkerSinks {
  stdout(chunk: Buffer): void;
  stderr(chunk: Buffer): void;
  events(chunk: Buffer): void;
  backpressure(): Promise<void> | null;
}

export interface WorkerExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

export class WorkerProcess {
  readonly ended: Promise<WorkerExit>;
  readonly #tools: WorkerTools;
  readonly #tree: ProcessTree;
  readonly #readers: readonly PipeReader[];
  /** Keeps the event stream open between two writers; closed when the worker has ended. */
  readonly #eventKeeperFd: number;
  readonly #input: Socket | null;
  #askedToEnd = false;
  /** After the grace period of a worker that was asked to end. */
  #graceOver = false;
  #cancelGrace: () => void = () => {};
  #exited = false;

  private constructor(child: ChildProcess, pid: number, pipes: Pipes, spec: WorkerSpec, given: Given) {
    this.#tools = given.tools;
    this.#tree = given.tools.trees.started(spec.mark, pid);
    this.#eventKeeperFd = pipes.events.writeFd;
    this.#input = pipes.input === null ? null : inputSocket(pipes.input.writeFd);
    const { clock } = given.tools;
    const reader = (fd: number, sink: (chunk: Buffer) => void) =>
      new PipeReader({ fd, clock, sink, backpressure: given.sinks.backpressure });
    this.#readers = [
      reader(pipes.stdout.readFd, given.sinks.stdout),
      reader(pipes.stderr.readFd, given.sinks.stderr),
      reader(pipes.events.readFd, given.sinks.events),
    ];
    const exited = new Promise<WorkerExit>((resolve) => {
      child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
    });
    this.ended = this.#untilEnded(exited);
  }

  /**
   * Spawns a worker.
   *
   * @throws the system's error (code ENOENT, EACCES, E2BIG, …) when the command cannot be started
   */
  static async start(spec: WorkerSpec, given: Given): Promise<WorkerProcess> {
    const paths = await given.tools.fifos.take(spec.takesInput ? 4 : 3);
    // The child's ends are closed here whatever happens, ours only when no worker comes of it.
    using childEnds = new DisposableStack();
    using ourEnds = new DisposableStack();
    const pipes = openPipes(paths, spec.eventStreamPath, childEnds, ourEnds);
    const child = spawn(spec.file, spec.args, {
      cwd: spec.cwd,
      env: spec.env,
      shell: false,
      // A group of its own, whose id is the worker's pid.
      detached: true,
      stdio: [pipes.input?.readFd ?? "ignore", pipes.stdout.writeFd, pipes.stderr.writeFd],
    });
    const { pid } = child;
    if (pid === undefined) throw await new Promise((resolve) => child.once("error", resolve));
    ourEnds.move();
    return new WorkerProcess(child, pid, pipes, spec, given);
  }

  /** Whether it ended because it was asked to, and not by itself. */
  get askedToEnd(): boolean {
    return this.#askedToEnd;
  }

  /** Asks the tree to end (C3). Asking again, or when the leader has ended, changes nothing. */
  async end(): Promise<void> {
    if (this.#askedToEnd || this.#exited) return;
    this.#askedToEnd = true;
    this.#cancelGrace = this.#tools.clock.after(limits.killGraceMs, () => {
      this.#graceOver = true;
      if (!this.#exited) void this.#tools.trees.signal(this.#tree, "SIGKILL");
    });
    await this.#tools.trees.signal(this.#tree, "SIGTERM");
  }

  /** Bytes sent that the worker's stdin has not taken. */
  get unreadBytes(): number {
    return this.#input?.writableLength ?? 0;
  }

  /** Writes one line to the worker's stdin; nothing happens when that is closed. */
  writeLine(line: string): void {
    if (this.#input?.writable) this.#input.write(`${line}\n`);
  }

  async #untilEnded(exited: Promise<WorkerExit>): Promise<WorkerExit> {
    const exit = await exited;
    this.#exited = true;
    this.#input?.destroy();
    const { trees } = this.#tools;
    if (this.#askedToEnd) {
      await trees.gone(this.#tree, () => this.#graceOver);
      this.#cancelGrace();
      await trees.kill(this.#tree);
    } else signalGroup(this.#tree.pid, "SIGKILL");
    closeSync(this.#eventKeeperFd);
    const killEscaped = async () => {
      await trees.kill(this.#tree);
    };
    await Promise.all(this.#readers.map((reader) => reader.finish(killEscaped)));
    trees.ended(this.#tree.mark, this.#tree);
    return exit;
  }
}

interface Given {
  readonly tools: WorkerTools;
  readonly sinks: WorkerSinks;
}

interface Pipes {
  readonly stdout: PipeEnds;
  readonly stderr: PipeEnds;
  readonly events: PipeEnds;
  readonly input: PipeEnds | null;
}

/** Opens the pipes; only the event stream keeps a name, so that grandchildren can open it too. */
function openPipes(
  paths: readonly string[],
  eventStreamPath: string,
  childEnds: DisposableStack,
  ourEnds: DisposableStack,
): Pipes {
  const [stdoutPath = "", stderrPath = "", eventsPath = "", inputPath] = paths;
  const open = (path: string, readBy: DisposableStack, writtenBy: DisposableStack) => {
    const ends = openPipe(path);
    readBy.defer(() => closeSync(ends.readFd));
    writtenBy.defer(() => closeSync(ends.writeFd));
    return ends;
  };
  const openNameless = (path: string, readBy: DisposableStack, writtenBy: DisposableStack) => {
    const ends = open(path, readBy, writtenBy);
    unlinkSync(path);
    return ends;
  };
  renameSync(eventsPath, eventStreamPath);
  return {
    stdout: openNameless(stdoutPath, ourEnds, childEnds),
    stderr: openNameless(stderrPath, ourEnds, childEnds),
    events: open(eventStreamPath, ourEnds, ourEnds),
    input: inputPath === undefined ? null : openNameless(inputPath, childEnds, ourEnds),
  };
}

function inputSocket(fd: number): Socket {
  const socket = new Socket({ fd, readable: false, writable: true });
  // EPIPE: the worker closed its stdin, or has ended. Its end is reported by itself.
  socket.on("error", () => socket.destroy());
  return socket;
}
