// What the bundle of a job says. The job holds a snapshot of it, so nothing can be wrong with a request that reads it;
// but people and disks remove files.

import type { Bundles } from "../bundles/bundles.ts";
import type { Definition } from "../bundles/definition.ts";
import { BundleProblem } from "../bundles/problem.ts";
import { DomainError } from "../lib/domain-error.ts";

/** @throws DomainError `conflict` when the content has been removed or damaged from outside */
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
