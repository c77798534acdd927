// One worker process: started, read while it runs, and ended with everything it started.
//
// - It never waits for ever on a worker that has ended: pipes that others hold are given up (pipes.ts).
// - `ended` resolves once, when the leader and its group are gone and all pipes are read.
// - Asked to end, the tree gets SIGTERM, and after the grace period SIGKILL; a tree that obeys is left its time.

import { closeSync, renameSync, unlinkSync } from "node:fs";
import { Socket } from "node:net";
import { limits } from "../../engine/limits.ts";
import type { Clock } from "../../engine/ports.ts";
import { type FifoSupply, openPipe, openReadEnd, type PipeEnds, PipeReader } from "../process/pipes.ts";
import { type ProcessTree, type ProcessTrees, signalGroup } from "../process/process-trees.ts";
import type { Spawner, StartedWorker } from "../process/spawner.ts";
import type { WorkerExit } from "../process/spawner-process.ts";

export interface WorkerTools {
  readonly spawner: Spawner;
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

export class WorkerProcess {
  /** Null when the spawner was lost, and with it how the worker ended. */
  readonly ended: Promise<WorkerExit | null>;
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

  private constructor(worker: StartedWorker, pipes: Pipes, spec: WorkerSpec, given: Given) {
    this.#tools = given.tools;
    this.#tree = given.tools.trees.started(spec.mark, worker.pid, worker.start);
    this.#eventKeeperFd = pipes.events.writeFd;
    this.#input = pipes.input === null ? null : inputSocket(pipes.input.writeFd);
    const { clock } = given.tools;
    const reader = (fd: number, sink: (chunk: Buffer) => void) =>
      new PipeReader({ fd, clock, sink, backpressure: given.sinks.backpressure });
    this.#readers = [
      reader(pipes.stdoutFd, given.sinks.stdout),
      reader(pipes.stderrFd, given.sinks.stderr),
      reader(pipes.events.readFd, given.sinks.events),
    ];
    this.ended = this.#untilEnded(worker.exited);
  }

  /**
   * Starts a worker.
   *
   * @throws the system's error (code ENOENT, EACCES, E2BIG, …) when the command cannot be started, or SpawnerLost
   */
  static async start(spec: WorkerSpec, given: Given): Promise<WorkerProcess> {
    const paths = await given.tools.fifos.take(spec.takesInput ? 4 : 3);
    // Names are removed whatever happens, our ends are closed only when no worker comes of them.
    using names = new DisposableStack();
    using ends = new DisposableStack();
    const { file, args, cwd, env, mark, eventStreamPath } = spec;
    const [stdout = "", stderr = "", events = "", stdin = null] = paths;
    for (const path of [stdout, stderr, stdin]) if (path !== null) names.defer(() => unlinkSync(path));
    // Opened before it lies where workers may replace it.
    const pipes = openPipes({ stdout, stderr, events, stdin }, ends);
    renameSync(events, eventStreamPath);
    const worker = await given.tools.spawner.start({ file, args, cwd, env, mark, stdin, stdout, stderr });
    if (pipes.input !== null) closeSync(pipes.input.readFd);
    ends.move();
    return new WorkerProcess(worker, pipes, spec, given);
  }

  /** Whether it ended because it was asked to, and not by itself. */
  get askedToEnd(): boolean {
    return this.#askedToEnd;
  }

  /** Asks the tree to end. Asking again, or when the leader has ended, changes nothing. */
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

  async #untilEnded(exited: Promise<WorkerExit | null>): Promise<WorkerExit | null> {
    const exit = await exited;
    this.#exited = true;
    this.#input?.destroy();
    const { trees } = this.#tools;
    if (this.#askedToEnd) {
      await trees.gone(this.#tree, () => this.#graceOver);
      this.#cancelGrace();
      await trees.kill(this.#tree);
    } else if (exit === null) await trees.kill(this.#tree);
    else signalGroup(this.#tree.pid, "SIGKILL");
    closeSync(this.#eventKeeperFd);
    const killEscaped = () => trees.kill(this.#tree);
    await Promise.all(this.#readers.map((reader) => reader.finish(killEscaped)));
    trees.ended(this.#tree.mark, this.#tree);
    return exit;
  }
}

interface Given {
  readonly tools: WorkerTools;
  readonly sinks: WorkerSinks;
}

/** The ends that are ours. */
interface Pipes {
  readonly stdoutFd: number;
  readonly stderrFd: number;
  readonly events: PipeEnds;
  /** Its read end is open until the worker has its own: a pipe that nobody reads cannot be opened for writing. */
  readonly input: PipeEnds | null;
}

interface PipePaths {
  readonly stdout: string;
  readonly stderr: string;
  readonly events: string;
  readonly stdin: string | null;
}

function openPipes({ stdout, stderr, events, stdin }: PipePaths, ends: DisposableStack): Pipes {
  const owned = (fd: number) => {
    ends.defer(() => closeSync(fd));
    return fd;
  };
  const both = (path: string) => {
    const { readFd, writeFd } = openPipe(path);
    return { readFd: owned(readFd), writeFd: owned(writeFd) };
  };
  return {
    stdoutFd: owned(openReadEnd(stdout)),
    stderrFd: owned(openReadEnd(stderr)),
    events: both(events),
    input: stdin === null ? null : both(stdin),
  };
}

function inputSocket(fd: number): Socket {
  const socket = new Socket({ fd, readable: false, writable: true });
  // EPIPE: the worker closed its stdin, or has ended. Its end is reported by itself.
  socket.on("error", () => socket.destroy());
  return socket;
}
