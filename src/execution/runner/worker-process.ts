// One worker process: started, read while it runs, and ended with everything it started.
//
// - It never waits for ever on a worker that has ended: pipes that others hold are given up (worker-pipes.ts).
// - `ended` resolves once, when the leader and its group are gone and all pipes are read.
// - Asked to end, the tree gets SIGTERM, and after the grace period SIGKILL; a tree that obeys is left its time.

import { closeSync, lchownSync } from "node:fs";
import { Socket } from "node:net";
import type { Clock } from "../../engine/ports.ts";
import type { OpenedFile } from "../process/native-spawn.ts";
import { type FifoSupply, openPipe } from "../process/pipes.ts";
import { type ProcessTree, type ProcessTrees, signalGroup } from "../process/process-trees.ts";
import type { Spawner, StartedWorker } from "../process/spawner.ts";
import type { WorkerExit } from "../process/spawner-process.ts";
import type { Peaks } from "../process/usage.ts";
import type { WorkerPipes, WorkerSinks } from "../process/worker-pipes.ts";

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
  readonly files: readonly OpenedFile[];
  readonly mark: string;
  readonly pipes: WorkerPipes;
  /** Whether stdin is a pipe that messages are sent through. */
  readonly takesInput: boolean;
  /** What it may hold with all that it starts; null: nobody watches. */
  readonly memoryBytes: number | null;
  /** Null: the worker is the process itself. */
  readonly wrapped: Wrapped | null;
}

/** A worker in a session of its own, whose process group only holds what it runs in, and would end with. */
export interface Wrapped {
  /** The user that the worker is; null: the runtime's own. */
  readonly user: number | null;
  /** Passes SIGTERM to the worker, if its processes are none of the machine's. @returns whether that was possible */
  terminate(): Promise<boolean>;
}

export class WorkerProcess {
  /** Null when the spawner was lost, and with it how the worker ended. */
  readonly ended: Promise<WorkerExit | null>;
  readonly #tools: WorkerTools;
  readonly #tree: ProcessTree;
  readonly #pipes: WorkerPipes;
  readonly #input: Input | null;
  readonly #wrapped: Wrapped | null;
  #isTreeGone = false;
  #askedToEnd = false;
  /** After the grace period of a worker that was asked to end. */
  #graceOver = false;
  #cancelGrace: () => void = () => {};
  #exited = false;

  private constructor(
    worker: StartedWorker,
    { pipes, mark, wrapped }: WorkerSpec,
    input: Input | null,
    tools: WorkerTools,
  ) {
    this.#tools = tools;
    this.#tree = tools.trees.started(mark, worker.pid, worker.start);
    this.#pipes = pipes;
    this.#input = input;
    this.#wrapped = wrapped;
    this.ended = this.#untilEnded(worker.exited);
  }

  /**
   * Starts a worker. Its pipes are read from now on, and are the caller's to close when it cannot be started.
   *
   * @throws the system's error (code ENOENT, EACCES, E2BIG, …) when the command cannot be started, or SpawnerLost
   */
  static async start(spec: WorkerSpec, { tools, sinks }: Given): Promise<WorkerProcess> {
    const { file, args, cwd, env, files, mark, takesInput, wrapped, pipes, memoryBytes } = spec;
    // What it writes is passed on when it is known that it has started.
    using _ = pipes.listenLater(sinks);
    // Closed, and given back, when no worker comes of it.
    using unused = new DisposableStack();
    const [stdin = null] = takesInput ? await tools.fifos.take(1) : [];
    if (stdin !== null) unused.defer(() => tools.fifos.giveBack(stdin, false));
    if (stdin !== null && wrapped?.user != null) lchownSync(stdin, wrapped.user, wrapped.user);
    const ends = stdin === null ? null : openPipe(stdin);
    if (ends !== null) for (const fd of [ends.readFd, ends.writeFd]) unused.defer(() => closeSync(fd));
    const { stdout, stderr } = pipes;
    const worker = await tools.spawner.start({
      ...{ file, args, cwd, env, files, mark, stdin, stdout, stderr, memoryBytes },
      endsWithRuntime: wrapped !== null,
    });
    unused.move();
    if (stdin === null || ends === null) return new WorkerProcess(worker, spec, null, tools);
    // Open until the worker has its own: a pipe that nobody reads cannot be opened for writing.
    closeSync(ends.readFd);
    return new WorkerProcess(worker, spec, { path: stdin, socket: inputSocket(ends.writeFd) }, tools);
  }

  /** Whether it ended because it was asked to, and not by itself. */
  get askedToEnd(): boolean {
    return this.#askedToEnd;
  }

  /** Whether nothing of its process tree is left for sure; after it has ended. */
  get isTreeGone(): boolean {
    return this.#isTreeGone;
  }

  /** Asks the tree to end within `graceMs`. Asking again sets another grace; when the leader has ended it changes nothing. */
  async end(graceMs: number): Promise<void> {
    if (this.#exited) return;
    this.#cancelGrace();
    this.#cancelGrace = this.#tools.clock.after(graceMs, () => {
      this.#graceOver = true;
      if (!this.#exited) void this.#tools.trees.signal(this.#tree, "SIGKILL");
    });
    if (this.#askedToEnd) return;
    this.#askedToEnd = true;
    if ((await this.#wrapped?.terminate()) === true) return;
    await this.#tools.trees.signal(this.#tree, "SIGTERM", this.#wrapped !== null);
  }

  /** The most that it was seen to use so far; null when nobody has looked. */
  peaks(): Promise<Peaks | null> {
    return this.#tools.spawner.peaksOf(this.#tree.pid);
  }

  /** Bytes sent that the worker's stdin has not taken. */
  get unreadBytes(): number {
    return this.#input?.socket.writableLength ?? 0;
  }

  /** Writes one line to the worker's stdin; nothing happens when that is closed. */
  writeLine(line: string): void {
    if (this.#input?.socket.writable) this.#input.socket.write(`${line}\n`);
  }

  async #untilEnded(exited: Promise<WorkerExit | null>): Promise<WorkerExit | null> {
    const exit = await exited;
    this.#exited = true;
    this.#input?.socket.destroy();
    const { trees } = this.#tools;
    if (this.#askedToEnd) {
      await trees.gone(this.#tree, () => this.#graceOver);
      this.#cancelGrace();
      await trees.kill(this.#tree);
    } else if (exit === null) await trees.kill(this.#tree);
    else if (!exit.isTreeGone) signalGroup(this.#tree.pid, "SIGKILL");
    this.#isTreeGone = exit?.isTreeGone === true;
    if (this.#isTreeGone && !this.#askedToEnd) await this.#pipes.drain();
    else await this.#pipes.finish(() => trees.kill(this.#tree));
    trees.ended(this.#tree.mark, this.#tree, this.#isTreeGone);
    if (this.#input !== null) this.#tools.fifos.giveBack(this.#input.path, this.#isTreeGone);
    return exit;
  }
}

/** Stdin of a worker. */
interface Input {
  readonly path: string;
  readonly socket: Socket;
}

interface Given {
  readonly tools: WorkerTools;
  readonly sinks: WorkerSinks;
}

function inputSocket(fd: number): Socket {
  const socket = new Socket({ fd, readable: false, writable: true });
  // EPIPE: the worker closed its stdin, or has ended. Its end is reported by itself.
  socket.on("error", () => socket.destroy());
  return socket;
}
