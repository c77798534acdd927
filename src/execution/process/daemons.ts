// Programs that run beside the tasks until they are told to end, such as a model's server.
//
// - They end with the runtime, also when that is killed: the process that starts commands ends their groups (spawner.ts), and
//   what even so is left is found by its mark at the next start (process-trees.ts).
// - What one prints is told line by line; a line of any length is cut.
// - No process of one is left when its end is told.

import { closeSync } from "node:fs";
import type { Clock } from "../../engine/ports.ts";
import { LineSplitter } from "../output/lines.ts";
import { type FifoSupply, openPipe, PipeReader } from "./pipes.ts";
import type { ProcessTrees } from "./process-trees.ts";
import type { Spawner } from "./spawner.ts";

const LINE_BYTES_MAX = 2_000;

export interface DaemonSpec {
  /** The program, as a path or found on the PATH of its environment. */
  readonly file: string;
  readonly args: readonly string[];
  readonly folder: string;
  /** All of its environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** Of stdout and stderr. */
  readonly onLine: (line: string) => void;
}

export interface DaemonExit {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
}

export interface Daemon {
  /** Whether its leader has ended; `exited` follows, once nothing of it is left and all that it printed is read. */
  readonly hasEnded: boolean;
  /** Null when it is not known how it ended. Never rejects. */
  readonly exited: Promise<DaemonExit | null>;
  /** Asks it to end, and ends it after `graceMs`. Resolves when nothing of it is left; may be called twice. */
  end(graceMs: number): Promise<void>;
}

export interface DaemonsParts {
  readonly trees: ProcessTrees;
  readonly spawner: Spawner;
  readonly fifos: FifoSupply;
  readonly clock: Clock;
}

export class Daemons {
  readonly #parts: DaemonsParts;
  readonly #running = new Set<Daemon>();
  #isClosed = false;

  constructor(parts: DaemonsParts) {
    this.#parts = parts;
  }

  /** @throws the system's error (code ENOENT, EACCES, …), SpawnerLost; an error once they are closed */
  async start(spec: DaemonSpec): Promise<Daemon> {
    if (this.#isClosed) throw new Error("The program is shutting down.");
    const { trees, spawner, fifos, clock } = this.#parts;
    const [stdout = "", stderr = ""] = await fifos.take(2);
    const mark = trees.newMark();
    const pipes = [stdout, stderr].map((path) => ({ path, ...openPipe(path) }));
    const readers = pipes.map(({ readFd }) => new PipeReader(readFd, clock));
    for (const reader of readers) {
      const lines = new LineSplitter(LINE_BYTES_MAX, spec.onLine);
      reader.listen(
        (chunk) => lines.push(chunk),
        () => null,
      );
    }
    // Its own ends are open when its start is told.
    const closeOwnEnds = () => {
      for (const { writeFd } of pipes) closeSync(writeFd);
    };
    try {
      const { file, args, folder: cwd, environment: env } = spec;
      const worker = await spawner.start({
        ...{ file, args, cwd, env, mark, stdout, stderr },
        endsWithRuntime: true,
        stdin: null,
        files: [],
        memoryBytes: null,
      });
      closeOwnEnds();
      const tree = trees.started(mark, worker.pid, worker.start);
      let hasEnded = false;
      const exited = worker.exited.then(async (exit) => {
        hasEnded = true;
        await trees.kill(tree);
        await Promise.all(readers.map((reader) => reader.finish(() => trees.kill(tree))));
        for (const [n, { path }] of pipes.entries()) fifos.giveBack(path, readers[n]?.isAtEnd === true);
        trees.ended(mark, tree);
        this.#running.delete(daemon);
        return exit === null ? null : { code: exit.exitCode, signal: exit.signal };
      });
      const daemon: Daemon = {
        get hasEnded() {
          return hasEnded;
        },
        exited,
        end: async (graceMs) => {
          const cancel = clock.after(graceMs, () => void trees.signal(tree, "SIGKILL"));
          await trees.signal(tree, "SIGTERM");
          await exited;
          cancel();
        },
      };
      this.#running.add(daemon);
      if (this.#isClosed) await daemon.end(0);
      return daemon;
    } catch (error) {
      closeOwnEnds();
      for (const reader of readers) reader.close();
      for (const { path } of pipes) fifos.giveBack(path, false);
      trees.ended(mark, null);
      throw error;
    }
  }

  /** Ends all of them; none is started any more. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#running].map((daemon) => daemon.end(graceMs)));
  }
}
