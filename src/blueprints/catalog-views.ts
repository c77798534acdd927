// Blueprints as clients see them: what the catalog's folder says, with what was prepared of it.
//
// - Everything that is in the catalog or prepared is shown, also when its folder is broken or has gone.
// - What is described is what a run would get: the package that was added, else the folder. Where the two differ, there
//   is a warning.
// - A search reads each added package once: its identity is kept as long as it is the blueprint's.

import type { Definition } from "../bundles/definition.ts";
import { BundleProblem, type BundleProblemEntry } from "../bundles/problem.ts";
import { blueprintNotFound, type Catalog } from "./catalog.ts";
import type { CatalogEntry } from "./catalog-entry.ts";
import { descriptionOf } from "./describe-package.ts";
import type { PackageDescription, PackageIdentity } from "./package-description.ts";
import type { BlueprintAsset, BlueprintRecords, PreparedBlueprint } from "./records.ts";

export const blueprintStates = ["available", "adding", "added", "removing", "failed", "broken"] as const;
export type BlueprintState = (typeof blueprintStates)[number];

export interface BlueprintView {
  readonly blueprintId: string;
  readonly identity: PackageIdentity;
  readonly state: BlueprintState;
  /** Null for one that is broken. */
  readonly definition: Definition | null;
  readonly description: PackageDescription | null;
  /** Where the catalog has it; null when its folder has gone. */
  readonly place: string | null;
  readonly prepared: PreparedBlueprint | null;
  /** Why it is broken, or why its latest operation failed. */
  readonly errors: readonly BundleProblemEntry[];
  readonly warnings: readonly BundleProblemEntry[];
  /** Whether its folder is not what was added any more. */
  readonly isModified: boolean;
}

export interface BlueprintDetail extends BlueprintView {
  readonly assets: readonly BlueprintAsset[];
  /** Jobs that are made of it. */
  readonly jobs: number;
}

export interface BlueprintFilter {
  readonly category: string | null;
  /** Part of the id, name, description or a tag, whatever its case. */
  readonly text: string | null;
  readonly state: BlueprintState | null;
}

export interface BlueprintViewsParts {
  readonly catalog: Catalog;
  readonly records: BlueprintRecords;
  /** Reads a prepared package by its fingerprint. */
  readonly packages: { definition(fingerprint: string): Promise<Definition> };
}

export class BlueprintViews {
  readonly #parts: BlueprintViewsParts;
  /** By blueprint: what the added package says that it is. */
  readonly #identities = new Map<
    string,
    { readonly fingerprint: string; readonly identity: PackageIdentity }
  >();

  constructor(parts: BlueprintViewsParts) {
    this.#parts = parts;
  }

  /**
   * In the order of their ids.
   *
   * @param page.after the id of the last one shown; null for the first page
   */
  async list(
    filter: BlueprintFilter,
    page: { readonly limit: number; readonly after: string | null },
  ): Promise<readonly BlueprintView[]> {
    const { catalog, records } = this.#parts;
    const [entries, prepared] = await Promise.all([catalog.entries(), records.allPrepared()]);
    const entryOf = new Map(entries.map((entry) => [entry.blueprintId, entry]));
    const preparedOf = new Map(prepared.map((one) => [one.blueprintId, one]));
    const ids = [...new Set([...entryOf.keys(), ...preparedOf.keys()])].sort();
    const found: BlueprintView[] = [];
    for (const id of ids) {
      if (page.after !== null && id <= page.after) continue;
      if (found.length === page.limit) break;
      const both = [entryOf.get(id) ?? null, preparedOf.get(id) ?? null] as const;
      if (filter.state !== null && filter.state !== stateOf(...both)) continue;
      const isSearch = filter.category !== null || filter.text !== null;
      if (isSearch && !matches(id, await this.#identity(id, ...both), filter)) continue;
      found.push(await this.#view(id, ...both));
    }
    return found;
  }

  async #identity(
    blueprintId: string,
    entry: CatalogEntry | null,
    prepared: PreparedBlueprint | null,
  ): Promise<PackageIdentity> {
    const fingerprint = prepared?.fingerprint ?? null;
    const known = this.#identities.get(blueprintId);
    if (known !== undefined && known.fingerprint === fingerprint) return known.identity;
    const { identity, definition } = await this.#view(blueprintId, entry, prepared);
    const isOfPackage = definition !== null && definition !== entry?.definition;
    if (fingerprint !== null && isOfPackage) this.#identities.set(blueprintId, { fingerprint, identity });
    else this.#identities.delete(blueprintId);
    return identity;
  }

  /** @throws DomainError `blueprint_not_found` when neither the catalog nor what was prepared, and may have been kept by a removal, has this id */
  async get(blueprintId: string): Promise<BlueprintDetail> {
    const { catalog, records } = this.#parts;
    const [entry, prepared, assets, jobs] = await Promise.all([
      catalog.find(blueprintId),
      records.prepared(blueprintId),
      records.assets(blueprintId),
      records.jobsOf(blueprintId),
    ]);
    if (entry === null && prepared === null && assets.length === 0) {
      throw await blueprintNotFound(blueprintId, catalog);
    }
    return { ...(await this.#view(blueprintId, entry, prepared)), assets, jobs };
  }

  async #view(
    blueprintId: string,
    entry: CatalogEntry | null,
    prepared: PreparedBlueprint | null,
  ): Promise<BlueprintView> {
    const state = stateOf(entry, prepared);
    const added = prepared === null ? null : await this.#addedPackage(prepared);
    const described = added === null ? entry : await descriptionOf(added, blueprintId);
    const difference = await this.#difference(blueprintId, entry, added === null ? null : prepared);
    return {
      blueprintId,
      identity: { ...(described?.identity ?? withoutIdentity(blueprintId)), blueprintId },
      state,
      definition: added ?? entry?.definition ?? null,
      description: described?.description ?? null,
      place: entry?.place ?? null,
      prepared,
      errors: [...(state === "broken" ? (entry?.problems ?? []) : []), ...failureOf(prepared)],
      warnings: [...((entry ?? described)?.warnings ?? []), ...(difference === null ? [] : [difference])],
      isModified: difference?.code === "folder_changed" || difference?.code === "folder_broken",
    };
  }

  /** How the folder has moved away from what was added. */
  async #difference(
    blueprintId: string,
    entry: CatalogEntry | null,
    added: PreparedBlueprint | null,
  ): Promise<BundleProblemEntry | null> {
    if (entry !== null && (added === null || added.fingerprint === null)) return null;
    return this.#parts.catalog.difference(blueprintId, added?.fingerprint ?? "");
  }

  /** Null without one, or when it was removed from the disk. */
  async #addedPackage({ fingerprint }: PreparedBlueprint): Promise<Definition | null> {
    if (fingerprint === null) return null;
    try {
      return await this.#parts.packages.definition(fingerprint);
    } catch (error) {
      if (error instanceof BundleProblem) return null;
      throw error;
    }
  }
}

/** One that was added stays so when its folder breaks: runs have the package that was added. */
export function stateOf(entry: CatalogEntry | null, prepared: PreparedBlueprint | null): BlueprintState {
  const isBroken = entry?.kind === "broken";
  if (prepared === null) return isBroken ? "broken" : "available";
  return prepared.state === "failed" && isBroken ? "broken" : prepared.state;
}

function withoutIdentity(blueprintId: string): PackageIdentity {
  return { blueprintId, name: blueprintId, description: "", version: null, category: null, tags: [] };
}

function failureOf(prepared: PreparedBlueprint | null): readonly BundleProblemEntry[] {
  if (prepared === null || prepared.error === null) return [];
  const { code, detail } = prepared.error;
  return [{ path: "", code, message: detail }];
}

function matches(blueprintId: string, identity: PackageIdentity, filter: BlueprintFilter): boolean {
  const { name, description, tags, category } = identity;
  if (filter.category !== null && filter.category !== category) return false;
  if (filter.text === null) return true;
  const wanted = filter.text.toLowerCase();
  return [blueprintId, name, description, ...tags].some((text) => text.toLowerCase().includes(wanted));
}
