// The folders in which launches are prepared, runs/<run>/prepared: when they come and when they go.
//
// - `prepared` is whole, also after a power cut: it is made as `prepared.tmp`, put on disk and renamed. What a killed
//   program has left of either is removed by the next preparation of the run, or once the run is known to have ended.
// - It is there for as long as a command of the run may read it, and gone soon after the run has ended.

import { mkdir, opendir, readlink, rename } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { eventType } from "../../engine/event.ts";
import { terminalEventTypes } from "../../engine/event-types.ts";
import type { EngineLog } from "../../engine/ports.ts";
import { preparedFolders } from "../../execution/runner/paths.ts";
import { namesIn, syncFolder, syncTree } from "../../lib/files.ts";
import { OpenFolder, SymlinkInPath } from "../../lib/open-folder.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import type { OpenRun } from "../records.ts";
import type { SharedRuns } from "./shared-runs.ts";

export interface RunFoldersParts {
  /** SVC_HOME. */
  readonly home: string;
  readonly feed: {
    subscribe(jobId: string, listener: (page: { readonly lines: readonly string[] }) => void): () => void;
  };
  /** Null when it has ended, or is gone; the feed knows it by `runtimeJobId`. */
  readonly openRun: (runId: string) => Promise<Pick<OpenRun, "runtimeJobId"> | null>;
  /** Resolves when no command of the run is under way. */
  readonly commandsEnded: (runId: string) => Promise<void>;
  /** Where other machines find it. */
  readonly sharedRuns: SharedRuns;
  readonly log: EngineLog;
}

export class RunFolders {
  readonly #parts: RunFoldersParts;
  /** How to stop listening, by run. */
  readonly #kept = new Map<string, () => void>();

  constructor(parts: RunFoldersParts) {
    this.#parts = parts;
  }

  /** @returns an empty folder to prepare the run in; what an earlier preparation has left is gone */
  async begin(runId: string): Promise<string> {
    await this.discard(runId);
    const { temporary } = this.#places(runId);
    await mkdir(temporary, { recursive: true, mode: 0o700 });
    return temporary;
  }

  /** What was prepared is whole; it stays until the run has ended. @throws the signal's reason when it is aborted */
  async finish(runId: string, signal: AbortSignal): Promise<void> {
    const { root, temporary } = this.#places(runId);
    await syncTree(temporary, signal);
    await rename(temporary, root);
    await syncFolder(dirname(root));
    await syncFolder(dirname(dirname(root)));
    await this.#parts.sharedRuns.share(runId);
    await this.keepUntilEnded(runId);
  }

  async keepUntilEnded(runId: string): Promise<void> {
    const { feed, openRun } = this.#parts;
    const run = await openRun(runId);
    if (run === null) return this.#runEnded(runId);
    this.#kept.get(runId)?.();
    const stop = feed.subscribe(run.runtimeJobId, ({ lines }) => {
      const last = lines.at(-1);
      if (last !== undefined && terminalEventTypes.has(eventType(last))) void this.#runEnded(runId);
    });
    this.#kept.set(runId, stop);
    // It may have ended between the look and the subscription.
    if ((await openRun(runId)) === null) await this.#runEnded(runId);
  }

  async #runEnded(runId: string): Promise<void> {
    try {
      await this.#parts.commandsEnded(runId);
      await this.discard(runId);
      await this.#parts.sharedRuns.remove(runId);
    } catch (error) {
      const fields = { run_id: runId, error: String(error) };
      this.#parts.log.warn(
        fields,
        "what was prepared for a run could not be removed; the next start tries again",
      );
    }
  }

  /** The models' content that runs read: by its place one of the runs. */
  async modelsRead(): Promise<ReadonlyMap<string, string>> {
    const read = new Map<string, string>();
    for (const runId of this.#kept.keys()) {
      const { models } = preparedFolders(this.#parts.home, runId);
      for (const name of await namesIn(models)) {
        const place = await readlink(join(models, name)).catch(() => null);
        if (place !== null) read.set(place, runId);
      }
    }
    return read;
  }

  /** Removes what was prepared for a run; nothing happens when there is nothing. */
  async discard(runId: string): Promise<void> {
    this.#kept.get(runId)?.();
    this.#kept.delete(runId);
    const { root, temporary } = this.#places(runId);
    const { home } = this.#parts;
    let run: OpenFolder;
    try {
      run = OpenFolder.below(home, relative(home, dirname(root)));
    } catch (error) {
      // A symlink that a worker has put in the place of its run's folder leads to nothing of ours.
      if (error instanceof SymlinkInPath || (error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    using folder = run;
    await Promise.all([temporary, root].map((path) => removeTree(folder.path(basename(path)))));
  }

  /**
   * Removes what was prepared for runs that have ended, and listens for the end of the others. To be called once after
   * a start; it may run beside launches.
   */
  async sweep(): Promise<void> {
    const runs = dirname(dirname(this.#places("any").root));
    for await (const { name } of await opendir(runs)) {
      const { root } = preparedFolders(this.#parts.home, name);
      if (dirname(root) !== join(runs, name) || !(await holdsPrepared(dirname(root)))) continue;
      await this.keepUntilEnded(name);
    }
  }

  #places(runId: string) {
    const { root } = preparedFolders(this.#parts.home, runId);
    return { root, temporary: `${root}.tmp` };
  }
}

async function holdsPrepared(folder: string): Promise<boolean> {
  try {
    for await (const { name } of await opendir(folder)) {
      if (name === "prepared" || name === "prepared.tmp") return true;
    }
  } catch {
    // A file, or gone meanwhile.
  }
  return false;
}
