// Removals: what was prepared of a blueprint goes. The catalog's folder stays: it may be added again.
//
// - A preview and the removal work with one function, so that what the preview shows is what goes.
// - What goes is decided once and on disk before anything goes: a removal that was cut off ends with what it has
//   removed in all.
// - Nothing goes that another one needs: a package while a job, a run or a bundle has it, a model while another
//   blueprint has it. While runs of the blueprint are open, nothing goes at all.

import { isObject, type JsonObject } from "../engine/json.ts";
import { OperationFailed } from "../operations/failures.ts";
import type { OperationEnd, OperationHandler } from "../operations/operations.ts";
import type { OperationContext } from "../operations/progress.ts";
import type { Operation } from "../operations/records.ts";
import { letGoOf } from "./addition-assets.ts";
import { unprepared } from "./additions.ts";
import type { BlueprintsParts } from "./parts.ts";
import type { AdditionWrites, BlueprintAsset, PreparedBlueprint } from "./records.ts";

/** As the operation's request has them. */
export interface RemovalRequest {
  readonly dry_run: boolean;
  readonly keep_resources: boolean;
  readonly keep_models: boolean;
}

interface PlannedItem {
  readonly kind: "package" | "resource" | "model";
  readonly id: string;
  readonly bytes: number;
  readonly action: "delete" | "keep";
}

/** What goes, and what stays though the blueprint has it (CONTRACTS §6). */
interface RemovalPlan {
  readonly resources: readonly PlannedItem[];
  readonly jobs_affected: number;
  readonly bytes_freed: number;
}

export class Removals implements OperationHandler<AdditionWrites> {
  readonly steps = [
    { name: "check", label: "Looking at what there is" },
    { name: "resources", label: "Removing its resources" },
    { name: "models", label: "Removing its models" },
    { name: "package", label: "Removing the package" },
    { name: "finish", label: "Finishing" },
  ] as const;
  readonly #parts: BlueprintsParts;

  constructor(parts: BlueprintsParts) {
    this.#parts = parts;
  }

  async run(context: OperationContext): Promise<OperationEnd<AdditionWrites>> {
    const { target: blueprintId, request } = context.operation;
    const removal = request as unknown as RemovalRequest;
    await context.step("check");
    if (removal.dry_run) return { result: { preview: asJson(await this.#plan(blueprintId, removal)) } };
    await this.#begin(context.operation);
    const plan = remembered(context.operation) ?? (await this.#plan(blueprintId, removal));
    await context.remember({ removed: asJson(plan) });
    const gone = new Map<PlannedItem, PlannedItem>();
    for (const kind of ["resource", "model", "package"] as const) {
      const step = kind === "package" ? kind : (`${kind}s` as const);
      const items = plan.resources.filter((item) => item.kind === kind && isConcerned(item, removal));
      if (items.length > 0) await context.step(step);
      else await context.skip(step);
      for (const [i, item] of items.entries()) {
        context.progress(i / items.length, `Removing the ${kind}${kind === "package" ? "" : ` ${item.id}`}`);
        gone.set(item, await this.#remove(blueprintId, item));
      }
    }
    await context.step("finish");
    const items = plan.resources.map((item) => gone.get(item) ?? item);
    return {
      result: { removed: asJson(planOf(items, plan.jobs_affected)) },
      commit: async ({ blueprints }) => {
        await blueprints.delete(blueprintId);
        return () => {};
      },
    };
  }

  async fail(writes: AdditionWrites, operation: Operation, nowMs: number): Promise<() => void> {
    const { target: blueprintId, error, request } = operation;
    const before = request.dry_run === true ? null : await writes.blueprints.prepared(blueprintId);
    if (before === null) return () => {};
    // What has begun to go is not whole any more; adding it again makes it so.
    const state = before.state === "removing" ? "failed" : before.state;
    await writes.blueprints.save({ ...before, state, updatedAtMs: nowMs, error });
    return () => {};
  }

  /** From here on the blueprint cannot be used, and no run of it is open nor accepted. */
  #begin({ operationId, target: blueprintId }: Operation): Promise<void> {
    const { write, clock } = this.#parts;
    return write(async ({ blueprints }) => {
      // An earlier removal may have left assets alone.
      const before = (await blueprints.prepared(blueprintId)) ?? unprepared(blueprintId);
      if (before.state === "removing") return;
      const openRuns = await blueprints.openRunsOf(blueprintId);
      if (openRuns > 0) throw new OperationFailed("blueprint_in_use", inUseText(blueprintId, openRuns));
      const updatedAtMs = clock.nowMs();
      await blueprints.save({ ...before, state: "removing", operationId, updatedAtMs, error: null });
    });
  }

  async #plan(blueprintId: string, removal: RemovalRequest): Promise<RemovalPlan> {
    const { records } = this.#parts;
    const prepared = await records.prepared(blueprintId);
    const items: PlannedItem[] = [];
    if (prepared?.fingerprint != null) items.push(await this.#planPackage(prepared, prepared.fingerprint));
    for (const asset of await records.assets(blueprintId)) items.push(await this.#planAsset(asset, removal));
    return planOf(items, await records.jobsOf(blueprintId));
  }

  async #planPackage(prepared: PreparedBlueprint, fingerprint: string): Promise<PlannedItem> {
    const bytes = await this.#removePackage(prepared, fingerprint, true);
    const action = bytes === null ? "keep" : "delete";
    return { kind: "package", id: fingerprint, bytes: bytes ?? prepared.sizeBytes, action };
  }

  async #planAsset(asset: BlueprintAsset, removal: RemovalRequest): Promise<PlannedItem> {
    const { records, resources, models } = this.#parts;
    const { blueprintId, kind, assetId, recipe } = asset;
    const item = { kind, id: assetId };
    if (kind === "resource") {
      const bytes = await resources.bytes(blueprintId, assetId);
      return { ...item, bytes, action: removal.keep_resources ? "keep" : "delete" };
    }
    const bytes = (await models.bytes(assetId, recipe)) ?? 0;
    const isShared = await records.hasModelFile(assetId, recipe, blueprintId);
    return { ...item, bytes, action: removal.keep_models || isShared ? "keep" : "delete" };
  }

  /** @returns the item as it went, or why it stays after all */
  async #remove(blueprintId: string, item: PlannedItem): Promise<PlannedItem> {
    const { records, resources, models } = this.#parts;
    const { kind, id: assetId } = item;
    switch (kind) {
      case "resource":
        await resources.remove(blueprintId, assetId);
        await this.#letGo({ blueprintId, kind, assetId });
        return item;
      case "model": {
        const own = (await records.assets(blueprintId)).find(
          (one) => one.kind === kind && one.assetId === assetId,
        );
        // An earlier run of this operation has released it.
        if (own === undefined) return item;
        let stays = false;
        await models.removeUnowned(
          assetId,
          async (sha256) => {
            // What has no owner any more may still be read by a run of another blueprint that has had it.
            if (sha256 !== own.recipe) return isOthers(await records.modelOwners(assetId), blueprintId);
            // Another blueprint may have come to share it since the plan was made.
            stays = await records.hasModelFile(assetId, sha256, blueprintId);
            return stays;
          },
          () => this.#letGo({ blueprintId, kind, assetId }),
        );
        return { ...item, action: stays ? "keep" : "delete" };
      }
      case "package": {
        const prepared = await records.prepared(blueprintId);
        const bytes = prepared === null ? 0 : await this.#removePackage(prepared, assetId, false);
        return bytes === null ? { ...item, action: "keep" } : item;
      }
      default:
        return kind satisfies never;
    }
  }

  #letGo(asset: Pick<BlueprintAsset, "blueprintId" | "kind" | "assetId">): Promise<void> {
    return this.#parts.write((writes) => letGoOf(writes, asset));
  }

  /**
   * A snapshot that was handed out since the blueprint was added stays, though nothing names it yet: the caller
   * that got it may be about to write its name down (bundles/snapshots.ts). Retention removes it a day later.
   *
   * @returns its bytes; null when it stays
   */
  #removePackage(
    prepared: PreparedBlueprint,
    fingerprint: string,
    isPreview: boolean,
  ): Promise<number | null> {
    const { bundles, records } = this.#parts;
    const isNamed = () => records.isPackageUsed(fingerprint, prepared.blueprintId);
    const beforeMs = (prepared.addedAtMs ?? 0) + 1;
    return bundles.snapshots.removeOne(fingerprint, { isNamed, beforeMs, isPreview });
  }
}

const isOthers = (owners: readonly string[], blueprintId: string) =>
  owners.some((owner) => owner !== blueprintId);

/** A model that stays because it is shared is released all the same: from then on only the others use it. */
function isConcerned({ kind, action }: PlannedItem, removal: RemovalRequest): boolean {
  return kind === "model" ? !removal.keep_models : action === "delete";
}

export function inUseText(blueprintId: string, openRuns: number): string {
  const runs = `${openRuns} ${openRuns === 1 ? "run" : "runs"} of blueprint ${blueprintId}`;
  const [have, them] = openRuns === 1 ? ["has", "it"] : ["have", "them"];
  return `${runs} ${have} not ended. Wait for ${them} or cancel ${them}, then remove the blueprint again.`;
}

function planOf(resources: readonly PlannedItem[], jobs_affected: number): RemovalPlan {
  const going = resources.filter(({ action }) => action === "delete");
  return { resources, jobs_affected, bytes_freed: going.reduce((sum, { bytes }) => sum + bytes, 0) };
}

/** What an earlier run of this operation has decided. */
function remembered({ result }: Operation): RemovalPlan | null {
  return result !== null && isObject(result.removed) ? (result.removed as unknown as RemovalPlan) : null;
}

const asJson = (plan: RemovalPlan) => plan as unknown as JsonObject;
