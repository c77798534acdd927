// The refusal of an id that no blueprint has.

import { quoted } from "../engine/manifest/problems.ts";
import { DomainError } from "../lib/domain-error.ts";
import { nearestName } from "../lib/text.ts";
import type { FindsBlueprints } from "./parts.ts";

/** @returns DomainError `blueprint_not_found`, with the id of the catalog that was probably meant */
export async function blueprintNotFound(
  blueprintId: string,
  catalog: Pick<FindsBlueprints, "entries">,
): Promise<DomainError> {
  const ids = (await catalog.entries()).map((entry) => entry.blueprintId);
  const nearest = nearestName(blueprintId, ids);
  const hint = nearest === null ? "" : ` Did you mean ${quoted(nearest)}?`;
  return new DomainError(
    "blueprint_not_found",
    `Blueprint ${blueprintId} was not found.${hint} GET /api/v1/blueprints lists the blueprints there are; SVC_BLUEPRINT_CATALOG names their folders.`,
  );
}
