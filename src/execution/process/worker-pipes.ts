// The pipes of a worker that are read here: stdout, stderr and its events. They are open for one worker after the other, as
// opening three pipes, and making streams of them, can take longer than a short command.
//
// - The own write ends keep the pipes open between two writers.
// - When no process of a worker is left for sure, what it had written is read within two turns of the event loop (`drain`),
//   and the next one may have the pipes. Otherwise they are read to their ends and closed (`finish`): a process that
//   still holds one can write into no other worker's.
// - Everything is closed once, and the paths are given back: by `finish` or `close`.

import { closeSync, fstatSync, lstatSync, renameSync } from "node:fs";
import type { Clock } from "../../engine/ports.ts";
import { type FifoSupply, openPipe, PipeReader, type PipeSink } from "./pipes.ts";

export interface WorkerSinks {
  stdout(chunk: Buffer): void;
  stderr(chunk: Buffer): void;
  events(chunk: Buffer): void;
  backpressure(): Promise<void> | null;
}

interface OpenPipe {
  readonly inode: number;
  readonly keeperFd: number;
  readonly reader: PipeReader;
}

const nobody = [() => {}, () => null] as const;

export class WorkerPipes {
  readonly stdout: string;
  readonly stderr: string;
  readonly #fifos: FifoSupply;
  /** stdout, stderr, events. */
  readonly #pipes: readonly OpenPipe[];
  #isOpen = true;

  private constructor(fifos: FifoSupply, paths: readonly [string, string], pipes: readonly OpenPipe[]) {
    this.#fifos = fifos;
    [this.stdout, this.stderr] = paths;
    this.#pipes = pipes;
  }

  /**
   * @param eventStreamPath where the worker finds the pipe for its events: nothing is there yet
   * @throws the system's error
   */
  static async open(fifos: FifoSupply, clock: Clock, eventStreamPath: string): Promise<WorkerPipes> {
    const [stdout = "", stderr = "", events = ""] = await fifos.take(3);
    using unused = new DisposableStack();
    const opened = (path: string): OpenPipe => {
      const { readFd, writeFd } = openPipe(path);
      unused.defer(() => closeSync(writeFd));
      const { ino: inode } = fstatSync(writeFd);
      const reader = new PipeReader(readFd, clock);
      unused.defer(() => reader.close());
      return { inode, keeperFd: writeFd, reader };
    };
    for (const path of [stdout, stderr, events]) unused.defer(() => fifos.giveBack(path, false));
    // Opened before it lies where workers may replace it.
    const pipes = [opened(stdout), opened(stderr), opened(events)];
    renameSync(events, eventStreamPath);
    unused.move();
    return new WorkerPipes(fifos, [stdout, stderr], pipes);
  }

  /** Sets where it goes what is written from now on. */
  listen(sinks: WorkerSinks): void {
    const backpressure = () => sinks.backpressure();
    const each: readonly PipeSink[] = [
      (chunk) => sinks.stdout(chunk),
      (chunk) => sinks.stderr(chunk),
      (chunk) => sinks.events(chunk),
    ];
    for (const [index, { reader }] of this.#pipes.entries()) {
      const sink = each[index];
      if (sink !== undefined) reader.listen(sink, backpressure);
    }
  }

  /** The same from the disposal of what this returns: until then what comes is held, and little of it is read. */
  listenLater(sinks: WorkerSinks): Disposable {
    const held: (() => void)[] = [];
    const room = Promise.withResolvers<void>();
    const hold = (stream: "stdout" | "stderr" | "events") => (chunk: Buffer) => {
      held.push(() => sinks[stream](chunk));
    };
    const streams = { stdout: hold("stdout"), stderr: hold("stderr"), events: hold("events") };
    this.listen({ ...streams, backpressure: () => room.promise });
    return {
      [Symbol.dispose]: () => {
        for (const pass of held) pass();
        this.listen(sinks);
        const busy = held.length === 0 ? null : sinks.backpressure();
        room.resolve(busy ?? undefined);
      },
    };
  }

  /** Reads what a worker has written of which no process is left. What comes later, until somebody listens, is dropped. */
  async drain(): Promise<void> {
    await Promise.all(this.#pipes.map(({ reader }) => reader.drain()));
    for (const { reader } of this.#pipes) reader.listen(...nobody);
  }

  /**
   * Reads what is left, and closes the pipes.
   *
   * @param onHeld called when a process still holds a pipe
   */
  async finish(onHeld: () => Promise<unknown>): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const { keeperFd } of this.#pipes) closeSync(keeperFd);
    await Promise.all(this.#pipes.map(({ reader }) => reader.finish(onHeld)));
    const isAtEnd = this.#pipes.every(({ reader }) => reader.isAtEnd);
    for (const path of [this.stdout, this.stderr]) this.#fifos.giveBack(path, isAtEnd);
  }

  /** Gives up what may still come. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const { keeperFd, reader } of this.#pipes) {
      closeSync(keeperFd);
      reader.close();
    }
    for (const path of [this.stdout, this.stderr]) this.#fifos.giveBack(path, false);
  }

  /**
   * Whether the next worker can have them: all are open, and those at the paths.
   *
   * @param eventStreamPath where the worker has found the pipe for its events
   */
  isUsable(eventStreamPath: string): boolean {
    const paths = [this.stdout, this.stderr, eventStreamPath];
    return (
      this.#isOpen &&
      this.#pipes.every(({ reader, inode }, index) => {
        const found = lstatSync(paths[index] ?? "", { throwIfNoEntry: false });
        return reader.isOpen && found?.ino === inode && found.nlink === 1;
      })
    );
  }
}
