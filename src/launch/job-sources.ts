// What a job is made of: an uploaded bundle, or a blueprint of the catalog. Looked at before the job's transaction,
// and once more inside it, because both may go meanwhile.

import type { BlueprintForJob, Blueprints } from "../blueprints/blueprints.ts";
import { descriptionOf } from "../blueprints/describe-package.ts";
import type { Bundles } from "../bundles/bundles.ts";
import type { Definition } from "../bundles/definition.ts";
import { BundleProblem } from "../bundles/problem.ts";
import { DomainError, type DomainErrorEntry } from "../lib/domain-error.ts";
import type { Operation } from "../operations/records.ts";
import type { GatewayWrites, JobDefinition, JobSource } from "./records.ts";

/** What the transaction finds: what the job is made of then. */
export interface SettledSource extends Pick<JobDefinition, "status" | "bundleFingerprint"> {
  /** The blueprint's addition, when the job has to wait for it; to be begun after the commit. */
  readonly addition: Operation | null;
}

export interface FoundSource {
  readonly source: JobSource;
  /** For people. */
  readonly name: string;
  readonly definition: Definition;
  /** The snapshot; null for a blueprint that is not added yet. */
  readonly fingerprint: string | null;
  /** To be called in the job's transaction. @throws DomainError when the source has gone */
  settle(writes: GatewayWrites): Promise<SettledSource>;
}

export interface JobSourcesParts {
  readonly bundles: Bundles;
  readonly blueprints: Blueprints;
}

/**
 * Looks at what a job is to be made of.
 *
 * @returns what is wrong with the request when there is no such source, or it cannot be used
 * @throws DomainError `conflict` when a bundle's content is gone; `blueprint_busy`
 */
export async function findSource(
  { bundles, blueprints }: JobSourcesParts,
  source: JobSource,
): Promise<FoundSource | readonly DomainErrorEntry[]> {
  if (source.kind === "bundle") return bundleSource(bundles, source);
  try {
    return blueprintSource(blueprints, await blueprints.forJob(source.blueprintId));
  } catch (error) {
    if (!(error instanceof DomainError && error.code === "blueprint_not_found")) throw error;
    return [unknownBlueprint(source.blueprintId)];
  }
}

async function bundleSource(
  bundles: Bundles,
  source: Extract<JobSource, { kind: "bundle" }>,
): Promise<FoundSource | readonly DomainErrorEntry[]> {
  const { bundleId } = source;
  const bundle = await bundles.get(bundleId);
  if (bundle === null) return [unknownBundle(bundleId)];
  const definition = await storedBundle(bundles, bundle.fingerprint);
  const { problems } = await descriptionOf(definition);
  if (problems.length > 0) return problems.map(inBundle);
  return {
    source,
    name: bundle.name,
    definition,
    fingerprint: bundle.fingerprint,
    async settle(writes) {
      const now = await writes.bundle(bundleId);
      if (now === null) throw invalidJob([unknownBundle(bundleId)]);
      // What was read may have lost its last name by now, and be gone.
      if (now.fingerprint !== bundle.fingerprint) throw replacedBundle(bundleId);
      return { status: "ready", bundleFingerprint: bundle.fingerprint, addition: null };
    },
  };
}

/**
 * What the snapshot of a job says; people and disks remove files.
 *
 * @throws DomainError `conflict` when the content has been removed or damaged from outside
 */
export async function storedBundle(bundles: Bundles, fingerprint: string): Promise<Definition> {
  try {
    return await bundles.definition(fingerprint);
  } catch (error) {
    if (!(error instanceof BundleProblem)) throw error;
    throw new DomainError(
      "conflict",
      `The stored content of this job's bundle has been removed or damaged from outside. Restore bundles/${fingerprint} in SVC_HOME from a backup; or remove what is left of it, and upload the same bundle again.`,
    );
  }
}

/** @param found what Blueprints.forJob returned */
export function blueprintSource(blueprints: Blueprints, found: BlueprintForJob): FoundSource {
  const { blueprintId } = found;
  return {
    source: { kind: "blueprint", blueprintId },
    name: found.description.identity.name,
    definition: found.definition,
    fingerprint: found.fingerprint,
    async settle(writes) {
      if (await isStillAdded(writes, found)) {
        return { status: "ready", bundleFingerprint: found.fingerprint, addition: null };
      }
      const addition = await blueprints.requestAddition(writes, blueprintId);
      return { status: "preparing", bundleFingerprint: null, addition };
    },
  };
}

/** Whether there is a package, and it is still the blueprint's own, so that its snapshot stays. */
export async function isStillAdded(
  writes: GatewayWrites,
  { blueprintId, fingerprint }: Pick<BlueprintForJob, "blueprintId" | "fingerprint">,
): Promise<boolean> {
  if (fingerprint === null) return false;
  const now = await writes.blueprints.prepared(blueprintId);
  return now !== null && now.state !== "removing" && now.fingerprint === fingerprint;
}

function replacedBundle(bundleId: string): DomainError {
  return new DomainError(
    "conflict",
    `Bundle ${bundleId} was replaced while the job was being made; try again.`,
  );
}

export function invalidJob(errors: readonly DomainErrorEntry[]): DomainError {
  const messages = errors.map((error) => error.message).join("; ");
  return new DomainError("validation_failed", `Invalid job: ${messages}.`, errors);
}

function unknownBundle(bundleId: string): DomainErrorEntry {
  return {
    path: "/bundle_id",
    code: "unknown_bundle",
    message: `there is no bundle ${JSON.stringify(bundleId)}; upload it with POST /api/v1/bundles`,
  };
}

function inBundle({ code, message }: DomainErrorEntry): DomainErrorEntry {
  return { path: "/bundle_id", code, message: `in the bundle, ${message}` };
}

function unknownBlueprint(blueprintId: string): DomainErrorEntry {
  return {
    path: "/blueprint_id",
    code: "unknown_blueprint",
    message: `there is no blueprint ${JSON.stringify(blueprintId)} in the catalog; list the blueprints to find its id`,
  };
}
