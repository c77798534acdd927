// Additions: a blueprint of the catalog becomes one that runs can be made of. Its package is taken in as a snapshot, its
// resources are made and its models installed; then, in one transaction, it is added and the jobs that waited are ready.
//
// - Each step finds by itself what is done already, so that an addition which was cut off at any point continues.
// - What was added before stays usable until the new one is whole; of an addition that fails nothing half-done stays.
// - Before anything of what was added before is replaced, what replaces it is whole and written down: an addition that
//   was cut off behind that finishes with it, whatever the catalog says by then.

import { extensionsOf } from "../bundles/definition.ts";
import { BundleProblem, BundlesFull, messagesOf } from "../bundles/problem.ts";
import type { Snapshot } from "../bundles/snapshots.ts";
import { JournalUnavailable } from "../engine/journal.ts";
import { OperationFailed, OperationInterrupted } from "../operations/failures.ts";
import type { OperationEnd, OperationHandler } from "../operations/operations.ts";
import type { OperationContext } from "../operations/progress.ts";
import type { Operation } from "../operations/records.ts";
import { AdditionAssets, type Package, type WantedResource } from "./addition-assets.ts";
import type { CatalogEntry } from "./catalog-entry.ts";
import { descriptionOf } from "./describe-package.ts";
import type { PackageDescription } from "./package-description.ts";
import type { BlueprintsParts } from "./parts.ts";
import type { AdditionWrites, BlueprintAsset, PreparedBlueprint } from "./records.ts";

type WholeEntry = Extract<CatalogEntry, { kind: "whole" }>;

export class Additions implements OperationHandler<AdditionWrites> {
  readonly steps = [
    { name: "check", label: "Looking at the blueprint" },
    { name: "package", label: "Copying the package" },
    { name: "resources", label: "Making its resources" },
    { name: "models", label: "Installing its models" },
    { name: "finish", label: "Finishing" },
  ] as const;
  readonly #parts: BlueprintsParts;
  readonly #assets: AdditionAssets;
  readonly #onSettled: (jobIds: readonly string[]) => void;

  /** @param onSettled told of jobs that waited for an addition, once what has become of them is on disk */
  constructor(parts: BlueprintsParts, onSettled: (jobIds: readonly string[]) => void) {
    this.#parts = parts;
    this.#assets = new AdditionAssets(parts);
    this.#onSettled = onSettled;
  }

  async run(context: OperationContext): Promise<OperationEnd<AdditionWrites>> {
    const { target: blueprintId } = context.operation;
    await context.step("check");
    await this.#assets.sweep();
    const whole = await this.#whole(context.operation);
    const taken = whole ?? (await this.#taken(context));
    try {
      const wanted = await this.#assets.makeResources(context, taken);
      if (whole === null) await this.#assets.installModels(context, taken);
      await context.step("finish");
      if (whole === null) await context.remember({ taken: taken.fingerprint, size: taken.sizeBytes });
      return await this.#finish(taken, wanted);
    } catch (error) {
      await this.#parts.bundles.snapshots.release(taken.fingerprint);
      const isOver = !(context.signal.aborted || error instanceof JournalUnavailable);
      if (isOver) await this.#forget(taken).catch(() => {});
      throw isDiskFull(error) ? diskFull(blueprintId) : error;
    }
  }

  async fail(writes: AdditionWrites, operation: Operation, nowMs: number): Promise<() => void> {
    const { target: blueprintId, error } = operation;
    const before = await writes.blueprints.prepared(blueprintId);
    if (before === null) return () => {};
    const state = before.state === "added" ? "added" : "failed";
    await writes.blueprints.save({ ...before, state, updatedAtMs: nowMs, error });
    // Also of one that stays added a job may wait: the package it was to have was replaced before it was written.
    const jobIds = await writes.blueprints.settleJobs(blueprintId, { kind: "failed" }, nowMs);
    return () => this.#onSettled(jobIds);
  }

  async #taken(context: OperationContext): Promise<Package> {
    const found = await this.#checked(context.operation);
    await context.step("package");
    return this.#take(found);
  }

  /** The package that an earlier run of this operation has made whole; null when there is none, or it is gone. */
  async #whole({ target: blueprintId, result }: Operation): Promise<Package | null> {
    if (typeof result?.taken !== "string") return null;
    const { bundles } = this.#parts;
    const fingerprint = result.taken;
    const takenAtMs = await bundles.snapshots.touch(fingerprint);
    if (takenAtMs === null) return null;
    try {
      const definition = await bundles.definition(fingerprint);
      const { description } = await descriptionOf(definition, blueprintId);
      if (description === null) return null;
      const sizeBytes = Number(result.size);
      bundles.snapshots.hold(fingerprint);
      return { blueprintId, fingerprint, sizeBytes, definition, description, takenAtMs };
    } catch (error) {
      if (error instanceof BundleProblem) return null;
      throw error;
    }
  }

  async #checked({ target: blueprintId, request }: Operation): Promise<WholeEntry> {
    const { catalog, records } = this.#parts;
    const found = await catalog.find(blueprintId);
    if (found === null) {
      throw new OperationFailed(
        "blueprint_not_found",
        `The catalog has no blueprint ${blueprintId} any more. Put its folder back, or see SVC_BLUEPRINT_CATALOG.`,
      );
    }
    if (found.kind === "broken") throw broken(blueprintId, messagesOf(found.problems));
    const isAdded = (await records.prepared(blueprintId))?.state === "added";
    if (!isAdded || request.force === true) await this.#checkDisk(found.description);
    return found;
  }

  async #checkDisk({ identity, requirements: { diskBytes } }: PackageDescription): Promise<void> {
    if (diskBytes === null) return;
    const free = await this.#parts.freeBytes();
    if (free >= diskBytes) return;
    throw new OperationFailed(
      "requirements_not_met",
      `The blueprint ${identity.blueprintId} requires ${diskBytes} bytes of free disk, and SVC_HOME has ${free}. Free some space, then add it again.`,
    );
  }

  async #take({ blueprintId, folder }: WholeEntry): Promise<Package> {
    const { bundles } = this.#parts;
    let taken: Snapshot | null = null;
    try {
      taken = await bundles.takeFolder(folder);
      const { fingerprint, sizeBytes, definition } = taken;
      const { description, problems } = await descriptionOf(definition, blueprintId);
      // The folder may have changed since the catalog has looked at it.
      if (description === null) throw broken(blueprintId, messagesOf(problems));
      if (description.identity.blueprintId !== blueprintId) {
        throw broken(blueprintId, `its folder now has the id ${description.identity.blueprintId}`);
      }
      const takenAtMs = await bundles.snapshots.touch(fingerprint);
      if (takenAtMs === null) throw new OperationInterrupted("the snapshot was removed meanwhile");
      return { blueprintId, fingerprint, sizeBytes, definition, description, takenAtMs };
    } catch (error) {
      if (taken !== null) await bundles.snapshots.release(taken.fingerprint);
      if (error instanceof BundlesFull) throw new OperationFailed("disk_full", error.message);
      if (error instanceof BundleProblem)
        throw broken(blueprintId, messagesOf(error.problems).replaceAll(folder, "its folder"));
      throw isDiskFull(error) ? diskFull(blueprintId) : error;
    }
  }

  async #finish(taken: Package, wanted: readonly WantedResource[]): Promise<OperationEnd<AdditionWrites>> {
    const { bundles, records, resources } = this.#parts;
    const { blueprintId, fingerprint, sizeBytes, description } = taken;
    const before = await records.prepared(blueprintId);
    const replaced = before?.fingerprint !== fingerprint ? (before?.fingerprint ?? null) : null;
    if (replaced !== null) await bundles.holdForDetach(replaced);
    const made: BlueprintAsset[] = [];
    for (const { resource, recipe, version } of wanted) {
      const bytes = await resources.show(blueprintId, resource.name, version);
      const asset = { blueprintId, kind: "resource", assetId: resource.name, recipe } as const;
      made.push({ ...asset, ready: true, bytes, createdAtMs: this.#parts.clock.nowMs() });
    }
    await this.#assets.tidy(blueprintId, description);
    const addedAtMs = await bundles.snapshots.touch(fingerprint);
    if (addedAtMs === null) throw new OperationInterrupted("the snapshot was removed meanwhile");
    const { version } = description.identity;
    return {
      result: { blueprint_id: blueprintId, version, fingerprint, size: sizeBytes },
      commit: async (writes, nowMs) => {
        const told = await this.#add(writes, { taken, made, addedAtMs }, nowMs);
        return () => {
          told();
          // A commit that fails leaves them held: the next start finds out whose they are.
          for (const one of [fingerprint, ...(replaced === null ? [] : [replaced])])
            void bundles.snapshots.release(one);
        };
      },
    };
  }

  /** From here on runs are made of it, and the jobs that have waited are ready. */
  async #add(
    { blueprints }: AdditionWrites,
    added: { readonly taken: Package; readonly made: readonly BlueprintAsset[]; readonly addedAtMs: number },
    nowMs: number,
  ): Promise<() => void> {
    const { blueprintId, fingerprint, sizeBytes, definition } = added.taken;
    const before = (await blueprints.prepared(blueprintId)) ?? unprepared(blueprintId);
    const { addedAtMs } = added;
    const now = {
      state: "added",
      fingerprint,
      sizeBytes,
      addedAtMs,
      updatedAtMs: nowMs,
      error: null,
    } as const;
    await blueprints.save({ ...before, ...now });
    for (const asset of added.made) await blueprints.saveAsset(asset);
    const { graphId } = definition.graph;
    const outcome = { kind: "ready", fingerprint, graphId, extensions: extensionsOf(definition) } as const;
    const jobIds = await blueprints.settleJobs(blueprintId, outcome, nowMs);
    return () => this.#onSettled(jobIds);
  }

  /** Takes back what an addition that fails has taken in; its assets stay claimed, and the next one continues with them. */
  async #forget({ blueprintId, fingerprint, takenAtMs }: Package): Promise<void> {
    const { bundles, records } = this.#parts;
    const isNamed = async () =>
      (await records.prepared(blueprintId))?.fingerprint === fingerprint ||
      (await records.isPackageUsed(fingerprint, blueprintId));
    const beforeMs = takenAtMs + 1;
    await bundles.snapshots.removeOne(fingerprint, { isNamed, beforeMs, isPreview: false });
  }
}

/** A blueprint of which nothing is prepared yet. */
export function unprepared(blueprintId: string): PreparedBlueprint {
  return {
    blueprintId,
    state: "adding",
    fingerprint: null,
    sizeBytes: 0,
    operationId: null,
    addedAtMs: null,
    updatedAtMs: 0,
    error: null,
  };
}

function broken(blueprintId: string, message: string): OperationFailed {
  return new OperationFailed(
    "blueprint_broken",
    `The blueprint ${blueprintId} cannot be added: ${message}. Fix its folder, then add it again.`,
  );
}

function isDiskFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOSPC" || code === "EDQUOT";
}

function diskFull(blueprintId: string): OperationFailed {
  return new OperationFailed(
    "disk_full",
    `The disk of SVC_HOME has no room for the blueprint ${blueprintId}. Free some space, then add it again.`,
  );
}
