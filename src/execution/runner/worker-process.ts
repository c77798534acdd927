// One worker process: started, read while it runs, and ended with everything it started.
//
// - It never waits for ever on a worker that has ended: pipes that others hold are given up (pipes.ts).
// - `ended` resolves once, when the leader and its group are gone and all pipes are read.
// - Asked to end, the tree gets SIGTERM, and after the grace period SIGKILL; a tree that obeys is left its time.

import { closeSync, renameSync } from "node:fs";
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
  /** Whether one is there already. */
  readonly hasEventStream: boolean;
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
  /** Paths of the pipes for stdin, stdout and stderr. */
  readonly #names: readonly string[];
  #isTreeGone = false;
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
    this.#names = pipes.names;
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
    const { file, args, cwd, env, mark, takesInput, eventStreamPath, hasEventStream } = spec;
    const names = await given.tools.fifos.take(2 + Number(takesInput) + Number(!hasEventStream));
    const newEvents = hasEventStream ? null : (names.pop() ?? "");
    // Given back and closed when no worker comes of them.
    using unused = new DisposableStack();
    for (const path of names) unused.defer(() => given.tools.fifos.giveBack(path, false));
    const [stdout = "", stderr = "", stdin = null] = names;
    // Opened before it lies where workers may replace it.
    const paths = { stdout, stderr, stdin, events: newEvents ?? eventStreamPath };
    const pipes = { ...openPipes(paths, unused), names };
    if (newEvents !== null) renameSync(newEvents, eventStreamPath);
    const worker = await given.tools.spawner.start({ file, args, cwd, env, mark, stdin, stdout, stderr });
    if (pipes.input !== null) closeSync(pipes.input.readFd);
    unused.move();
    return new WorkerProcess(worker, pipes, spec, given);
  }

  /** Whether it ended because it was asked to, and not by itself. */
  get askedToEnd(): boolean {
    return this.#askedToEnd;
  }

  /** Whether nothing of its process tree is left for sure, and nobody has its pipes; after it has ended. */
  get isTreeGone(): boolean {
    return this.#isTreeGone;
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
    this.#isTreeGone = exit?.isTreeGone === true && this.#readers.every((reader) => reader.isAtEnd);
    for (const path of this.#names) this.#tools.fifos.giveBack(path, this.#isTreeGone);
    return exit;
  }
}

interface Given {
  readonly tools: WorkerTools;
  readonly sinks: WorkerSinks;
}

/** The ends that are ours. */
interface Pipes {
  readonly names: readonly string[];
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

function openPipes(
  { stdout, stderr, events, stdin }: PipePaths,
  ends: DisposableStack,
): Omit<Pipes, "names"> {
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
