// Removes volumes of this node, with all that is in them. No command has one meanwhile: those that ask for it wait.

import type { Claim } from "../engine/resources.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { PoolSlots } from "./pools.ts";
import type { Volumes } from "./volumes.ts";

export interface VolumeRemovalParts {
  readonly volumes: Pick<Volumes, "has" | "remove">;
  readonly slots: Pick<PoolSlots, "holdBack">;
}

/** @throws DomainError `volume_not_found` or `volume_in_use`; the system's error */
export type RemoveVolume = (name: string) => Promise<void>;

export function volumeRemoval({ volumes, slots }: VolumeRemovalParts): RemoveVolume {
  return async (name) => {
    const shown = JSON.stringify(name);
    if (!volumes.has(name))
      throw new DomainError("volume_not_found", `There is no volume ${shown}; list them with GET /resource.`);
    const claim: Claim = { kind: "volume", name, isShared: false };
    const giveBack = slots.holdBack(claim);
    if (giveBack === null)
      throw new DomainError("volume_in_use", `A command has volume ${shown}: wait, or cancel its run.`);
    try {
      await volumes.remove(name);
    } finally {
      giveBack();
    }
  };
}
