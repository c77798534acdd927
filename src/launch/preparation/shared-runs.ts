// What was prepared for a run, for other machines: in the shared store from before its job is submitted until the run has
// ended, and fetched, once and whole, by a machine that takes the job over.
//
// Without a shared store nothing of this happens.

import { readlink, rename } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type { SharedFolders, Unused } from "../../bundles/shared-folders.ts";
import { preparedFolders } from "../../execution/runner/paths.ts";
import { KeyedMutex } from "../../lib/async.ts";
import { exists, namesIn, syncFolder } from "../../lib/files.ts";
import { folderName, isInside } from "../../lib/paths.ts";
import { removeTree } from "../../lib/remove-tree.ts";

const RUNS = "runs";
const nameOf = (runId: string) => `${RUNS}/${folderName(runId)}`;

export class SharedRuns {
  readonly #home: string;
  readonly #shared: SharedFolders | null;
  readonly #fetches = new KeyedMutex();
  /** Called with the run of what was fetched. */
  onFetched: (runId: string) => void = () => {};

  /** @param home SVC_HOME @param shared null: this machine is the only one */
  constructor(home: string, shared: SharedFolders | null) {
    this.#home = home;
    this.#shared = shared;
  }

  /** Stores what is prepared for a run, in place of what an earlier preparation has stored. */
  async share(runId: string): Promise<void> {
    const { root } = preparedFolders(this.#home, runId);
    await this.#shared?.store(nameOf(runId), root, { isFixed: false });
  }

  /** Fetches what was prepared for a run elsewhere; nothing happens when it is here, or nowhere. */
  async ensure(runId: string): Promise<void> {
    const { root } = preparedFolders(this.#home, runId);
    const shared = this.#shared;
    if (shared === null || (await exists(root))) return;
    await this.#fetches.run(runId, async () => {
      if (await exists(root)) return;
      const fetched = `${root}.tmp`;
      await removeTree(fetched);
      if (!(await shared.fetch(nameOf(runId), fetched))) return;
      for (const name of ["resources", "models"]) await this.#ensureTargets(shared, join(fetched, name));
      await rename(fetched, root);
      await syncFolder(dirname(root));
      this.onFetched(runId);
    });
  }

  /** Fetches what the links of a folder lead to, which has its path in SVC_HOME as its name in the store. */
  async #ensureTargets(shared: SharedFolders, folder: string): Promise<void> {
    for (const name of await namesIn(folder)) {
      const target = await readlink(join(folder, name));
      if (isInside(this.#home, target)) await shared.fetch(relative(this.#home, target), target);
    }
  }

  async remove(runId: string): Promise<void> {
    await this.#shared?.remove(nameOf(runId));
  }

  /** Removes what killed programs have left of runs that have ended. @param request.isNamed of the id of a run */
  async removeUnused(request: Unused): Promise<void> {
    await this.#shared?.removeUnused(RUNS, request);
  }
}
