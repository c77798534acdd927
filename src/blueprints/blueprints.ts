// Blueprints that are prepared on this machine: what jobs of them are made of, and the requests to add and remove them.
//
// - A blueprint is added or removed by one operation at a time; everything that it is, is in the records.
// - A request is checked before it is written down, and what matters is checked again in the transaction that
//   writes it.

import type { Definition } from "../bundles/definition.ts";
import { BundleProblem, type BundleProblemEntry, messagesOf } from "../bundles/problem.ts";
import { DomainError } from "../lib/domain-error.ts";
import { busy, Operations, type OperationsParts } from "../operations/operations.ts";
import type { Operation } from "../operations/records.ts";
import { Additions, unprepared } from "./additions.ts";
import { blueprintNotFound } from "./catalog.ts";
import { descriptionOf } from "./describe-package.ts";
import { type BringingProgress, LocalAssets } from "./local-assets.ts";
import type { PackageDescription } from "./package-description.ts";
import type { BlueprintsParts } from "./parts.ts";
import type { AdditionWrites, BlueprintWrites, PreparedBlueprint } from "./records.ts";
import { inUseText, type RemovalRequest, Removals } from "./removals.ts";

/** What jobs are made of. */
export interface BlueprintForJob {
  readonly blueprintId: string;
  /** The prepared package; null before there is one: jobs wait, as `preparing`, until the addition has ended. */
  readonly fingerprint: string | null;
  readonly description: PackageDescription;
  /** Of the prepared package; before there is one, of the catalog's folder. */
  readonly definition: Definition;
}

export interface AdditionRequest {
  /** Makes everything anew. */
  readonly force: boolean;
}

/** Writes a request down in a gateway transaction; `begin` is to be called after its commit. */
export type WriteOperation = (writes: AdditionWrites) => Promise<Operation>;

type OwnOperationsParts = Omit<OperationsParts<AdditionWrites>, "write" | "handlers" | "atOnceMax" | "clock">;

/** Additions and removals. */
const AT_ONCE_MAX = 4;

export class Blueprints {
  readonly #parts: BlueprintsParts;
  readonly #operations: Operations<AdditionWrites>;
  readonly #local: LocalAssets;
  readonly #listeners = new Set<(jobIds: readonly string[]) => void>();

  constructor(parts: BlueprintsParts, operations: OwnOperationsParts) {
    this.#parts = parts;
    this.#local = new LocalAssets(parts);
    const settled = (jobIds: readonly string[]) => {
      if (jobIds.length > 0) for (const listener of this.#listeners) listener(jobIds);
    };
    this.#operations = new Operations({
      ...operations,
      write: parts.write,
      clock: parts.clock,
      atOnceMax: AT_ONCE_MAX,
      handlers: { blueprint_addition: new Additions(parts, settled), blueprint_removal: new Removals(parts) },
    });
  }

  /** Resumes what a predecessor has left. */
  recover(): Promise<void> {
    return this.#operations.recover();
  }

  /** Interrupts what is under way, which continues with the next start. */
  stop(): Promise<void> {
    return this.#operations.stop();
  }

  /** LocalAssets.bring */
  bringAssets(blueprintId: string, progress: BringingProgress): Promise<void> {
    return this.#local.bring(blueprintId, progress);
  }

  /** LocalAssets.sweep */
  sweepAssets(): Promise<void> {
    return this.#local.sweep();
  }

  /** Calls `listener` with the jobs that waited for an addition, once what has become of them is on disk. */
  onSettled(listener: (jobIds: readonly string[]) => void): void {
    this.#listeners.add(listener);
  }

  /** To be called after the commit of what wrote the operation; begins its work, once. */
  begin(operation: Operation): void {
    this.#operations.begin(operation);
  }

  /**
   * @param reads what is committed, when it is absent
   * @throws DomainError `blueprint_busy` while the blueprint is being removed
   */
  async refuseRemoving(
    blueprintId: string,
    reads: Pick<BlueprintWrites, "prepared"> = this.#parts.records,
  ): Promise<void> {
    refuseRemoving(await reads.prepared(blueprintId));
  }

  /** @throws DomainError `blueprint_not_found`; `validation_failed` with its mistakes when it is broken; `blueprint_busy` while it is being removed */
  async forJob(blueprintId: string): Promise<BlueprintForJob> {
    const { records, catalog } = this.#parts;
    const prepared = await records.prepared(blueprintId);
    refuseRemoving(prepared);
    if (prepared?.state === "added" && prepared.fingerprint !== null) {
      return this.#added(blueprintId, prepared.fingerprint);
    }
    const found = await catalog.find(blueprintId);
    if (found === null) throw await blueprintNotFound(blueprintId, this.#parts.catalog);
    if (found.kind === "broken") throw brokenLaunch(blueprintId, found.problems);
    const { definition, description } = found;
    return { blueprintId, fingerprint: null, definition, description };
  }

  async #added(blueprintId: string, fingerprint: string): Promise<BlueprintForJob> {
    let definition: Definition;
    try {
      definition = await this.#parts.bundles.definition(fingerprint);
    } catch (error) {
      if (!(error instanceof BundleProblem)) throw error;
      const message = "what was prepared of it is gone or damaged; add it again with force";
      throw brokenLaunch(blueprintId, [{ path: "", code: "content_missing", message }]);
    }
    const { description, problems } = await descriptionOf(definition, blueprintId);
    if (description === null) throw brokenLaunch(blueprintId, problems);
    return { blueprintId, fingerprint, definition, description };
  }

  /** That the folder in the catalog is not what a launch is made of; empty while it is. */
  async folderWarnings({
    blueprintId,
    fingerprint,
  }: BlueprintForJob): Promise<readonly BundleProblemEntry[]> {
    if (fingerprint === null) return [];
    const difference = await this.#parts.catalog.difference(blueprintId, fingerprint);
    return difference === null ? [] : [difference];
  }

  /**
   * Asks for the blueprint's addition, in the transaction that makes a job which waits for it; an addition that is
   * open already is that one.
   */
  async requestAddition(writes: AdditionWrites, blueprintId: string): Promise<Operation> {
    const open = await writes.operations.open(blueprintId);
    if (open === null) return this.#writeAddition(writes, blueprintId, { force: false });
    if (open.kind !== "blueprint_addition") throw busy(open);
    return open;
  }

  /** @throws DomainError `blueprint_not_found`, `blueprint_broken`; from what it returns `blueprint_busy` */
  async prepareAddition(blueprintId: string, request: AdditionRequest): Promise<WriteOperation> {
    const found = await this.#parts.catalog.find(blueprintId);
    if (found === null) throw await blueprintNotFound(blueprintId, this.#parts.catalog);
    if (found.kind === "broken") throw broken("blueprint_broken", blueprintId, found.problems);
    return (writes) => this.#writeAddition(writes, blueprintId, request);
  }

  async #writeAddition(
    writes: AdditionWrites,
    blueprintId: string,
    { force }: AdditionRequest,
  ): Promise<Operation> {
    const operation = await this.#operations.request(writes, {
      kind: "blueprint_addition",
      target: blueprintId,
      request: { force },
    });
    const before = (await writes.blueprints.prepared(blueprintId)) ?? unprepared(blueprintId);
    const { operationId, createdAtMs: updatedAtMs } = operation;
    // What is added stays so while it is added again.
    const state = before.state === "added" ? "added" : "adding";
    await writes.blueprints.save({ ...before, state, operationId, updatedAtMs, error: null });
    return operation;
  }

  /** @throws DomainError `blueprint_not_found`; from what it returns `blueprint_busy`, `blueprint_in_use` */
  async prepareRemoval(blueprintId: string, request: RemovalRequest): Promise<WriteOperation> {
    const { catalog, records } = this.#parts;
    const isKnown =
      (await catalog.find(blueprintId)) !== null ||
      (await records.prepared(blueprintId)) !== null ||
      (await records.assets(blueprintId)).length > 0;
    if (!isKnown) throw await blueprintNotFound(blueprintId, this.#parts.catalog);
    return async (writes) => {
      const openRuns = await writes.blueprints.openRunsOf(blueprintId);
      if (openRuns > 0) throw new DomainError("blueprint_in_use", inUseText(blueprintId, openRuns));
      const operation = await this.#operations.request(writes, {
        kind: "blueprint_removal",
        target: blueprintId,
        request: { ...request },
      });
      const before = request.dry_run ? null : await writes.blueprints.prepared(blueprintId);
      if (before !== null) {
        const { operationId, createdAtMs: updatedAtMs } = operation;
        await writes.blueprints.save({ ...before, operationId, updatedAtMs, error: null });
      }
      return operation;
    };
  }
}

function broken(
  code: "blueprint_broken" | "validation_failed",
  blueprintId: string,
  problems: readonly BundleProblemEntry[],
): DomainError {
  const detail = `Blueprint ${blueprintId} cannot be used as it is: ${messagesOf(problems)}. Its detail lists its mistakes.`;
  return new DomainError(code, detail, problems);
}

/** A launch is told the mistakes of its package as it is told those of its configuration. */
const brokenLaunch = (blueprintId: string, problems: readonly BundleProblemEntry[]) =>
  broken("validation_failed", blueprintId, problems);

function refuseRemoving(prepared: PreparedBlueprint | null): void {
  if (prepared?.state !== "removing") return;
  const { blueprintId, operationId } = prepared;
  throw new DomainError(
    "blueprint_busy",
    `Blueprint ${blueprintId} is being removed by operation ${operationId}. Wait until it has ended, then try again.`,
  );
}
