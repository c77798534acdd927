// The refusal of an id that no blueprint has.

import { quoted } from "../engine/manifest/problems.ts";
import { nearestName } from "../lib/nearest-name.ts";
import { Refusal } from "../lib/refusal.ts";
import type { FindsBlueprints } from "./parts.ts";

/** @returns Refusal `blueprint_not_found`, with the id of the catalog that was probably meant */
export async function blueprintNotFound(
  blueprintId: string,
  catalog: Pick<FindsBlueprints, "entries">,
): Promise<Refusal> {
  const ids = (await catalog.entries()).map((entry) => entry.blueprintId);
  const nearest = nearestName(blueprintId, ids);
  const hint = nearest === null ? "" : ` Did you mean ${quoted(nearest)}?`;
  return new Refusal(
    "blueprint_not_found",
    `Blueprint ${blueprintId} was not found.${hint} GET /api/v1/blueprints lists the blueprints there are; SVC_BLUEPRINT_CATALOG names their folders.`,
  );
}
