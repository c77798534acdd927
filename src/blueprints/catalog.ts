// The catalog: the blueprints in the folders of SVC_BLUEPRINT_CATALOG.
//
// - One that is broken is shown as broken, and hides no other: of two with one id the first whole one is taken, in the
//   order of the folders, and says where the other one lies.
// - A folder is read again when one of its JSON files has changed, and looked at again no more than once a second, so
//   that asking is cheap. What was read never changes: later calls get the same objects.
// - A few files at a time are open, whatever the size of the catalog.

import type { FolderChanges } from "../bundles/folder-changes.ts";
import type { BundleProblemEntry } from "../bundles/problem.ts";
import { quoted } from "../engine/manifest/problems.ts";
import { forEachConcurrent } from "../lib/async.ts";
import { DomainError } from "../lib/domain-error.ts";
import { nearestName } from "../lib/text.ts";
import { type Candidate, type CatalogEntry, readEntry, versionOf } from "./catalog-entry.ts";
import { type CatalogProblem, lookInto } from "./catalog-folder.ts";
import { folderDifference } from "./folder-differences.ts";

const LOOK_AGAIN_MS = 1_000;
const READERS = 8;

interface Seen {
  readonly checkedAtMs: number;
  /** In the order of their ids. */
  readonly entries: readonly CatalogEntry[];
  readonly byId: ReadonlyMap<string, CatalogEntry>;
  readonly problems: readonly CatalogProblem[];
}

interface Kept {
  readonly version: string | null;
  readonly entry: CatalogEntry;
}

export class Catalog {
  readonly #folders: readonly string[];
  readonly #nowMs: () => number;
  readonly #changes: Pick<FolderChanges, "of">;
  /** By folder. */
  #kept = new Map<string, Kept>();
  #seen: Seen | null = null;
  #looking: Promise<Seen> | null = null;

  /**
   * @param parts.folders absolute
   * @param parts.nowMs wall time in ms since 1970
   * @param parts.changes compares the content of folders with that of packages
   */
  constructor(parts: {
    readonly folders: readonly string[];
    readonly nowMs: () => number;
    readonly changes: Pick<FolderChanges, "of">;
  }) {
    this.#folders = parts.folders;
    this.#nowMs = parts.nowMs;
    this.#changes = parts.changes;
  }

  /** All blueprints, in the order of their ids; what has changed within the last second may be missing. */
  async entries(): Promise<readonly CatalogEntry[]> {
    return (await this.#look()).entries;
  }

  /** @returns null when no folder of the catalog has this id */
  async find(blueprintId: string): Promise<CatalogEntry | null> {
    return (await this.#look()).byId.get(blueprintId) ?? null;
  }

  /** As a warning, how the blueprint's folder differs from the package that was added of it; null: it does not. */
  async difference(blueprintId: string, fingerprint: string): Promise<BundleProblemEntry | null> {
    return folderDifference(await this.find(blueprintId), fingerprint, this.#changes);
  }

  /** What is wrong with the catalog's folders themselves, not with a blueprint. */
  async problems(): Promise<readonly CatalogProblem[]> {
    return (await this.#look()).problems;
  }

  #look(): Promise<Seen> {
    const age = this.#seen === null ? LOOK_AGAIN_MS : this.#nowMs() - this.#seen.checkedAtMs;
    // A clock that steps back makes nothing good for longer.
    if (this.#seen !== null && age >= 0 && age < LOOK_AGAIN_MS) return Promise.resolve(this.#seen);
    this.#looking ??= this.#lookAgain().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #lookAgain(): Promise<Seen> {
    const checkedAtMs = this.#nowMs();
    const looks = await Promise.all(this.#folders.map(lookInto));
    const candidates = new Map(looks.flatMap((look) => look.candidates).map((one) => [one.folder, one]));
    const kept = new Map<string, Kept>();
    await forEachConcurrent([...candidates.values()], READERS, async (candidate) => {
      const read = await this.#read(candidate);
      if (read !== null) kept.set(candidate.folder, read);
    });
    this.#kept = kept;
    // In the order of the folders, which decides between those of one id.
    const found = [...candidates.keys()].flatMap((folder) => kept.get(folder)?.entry ?? []);
    const byId = new Map(chosen(found).map((entry) => [entry.blueprintId, entry]));
    const entries = [...byId.values()].sort((a, b) => (a.blueprintId < b.blueprintId ? -1 : 1));
    this.#seen = { checkedAtMs, entries, byId, problems: looks.flatMap((look) => look.problems) };
    return this.#seen;
  }

  /** The version is taken before the files are read: what changes meanwhile is read again. */
  async #read(candidate: Candidate): Promise<Kept | null> {
    const version = await versionOf(candidate.folder);
    if (version === null && !candidate.isNamed) return null;
    const kept = this.#kept.get(candidate.folder);
    if (kept !== undefined && kept.version === version && kept.entry.place === candidate.place) return kept;
    return { version, entry: await readEntry(candidate) };
  }
}

/** One entry for each id. */
function chosen(entries: readonly CatalogEntry[]): readonly CatalogEntry[] {
  const byId = Map.groupBy(entries, ({ blueprintId }) => blueprintId);
  return [...byId.values()].map((same) => {
    const winner = same.find(({ kind }) => kind === "whole") ?? same[0]!;
    const others = same.filter((entry) => entry !== winner);
    if (others.length === 0) return winner;
    return { ...winner, warnings: [...winner.warnings, ...others.map(duplicate)] };
  });
}

function duplicate({ blueprintId, place, problems }: CatalogEntry) {
  const [first] = problems;
  const isBroken = first === undefined ? "" : ` (it is broken: ${first.message})`;
  const message = `${quoted(place)} has the id ${quoted(blueprintId)} too, and is left out${isBroken}: give it another identity.blueprint_id`;
  return { path: "", code: "duplicate_id", message };
}

/** The error for an id that no blueprint has: `blueprint_not_found`, with the id of the catalog that was probably meant */
export async function blueprintNotFound(blueprintId: string, catalog: Catalog): Promise<DomainError> {
  const ids = (await catalog.entries()).map((entry) => entry.blueprintId);
  const nearest = nearestName(blueprintId, ids);
  const hint = nearest === null ? "" : ` Did you mean ${quoted(nearest)}?`;
  return new DomainError(
    "blueprint_not_found",
    `Blueprint ${blueprintId} was not found.${hint} List the blueprints to find its id; SVC_BLUEPRINT_CATALOG names their folders.`,
  );
}
