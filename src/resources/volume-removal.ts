// Removes volumes of this node, with all that is in them. No command has one meanwhile: those that ask for it wait.

import type { ClusterNodes } from "../cluster/cluster-nodes.ts";
import type { Claim } from "../engine/resources.ts";
import type { PoolSlots } from "../execution/pools.ts";
import type { Volumes } from "../execution/volumes.ts";
import { DomainError } from "../lib/domain-error.ts";

export interface VolumeRemovalParts {
  readonly volumes: Pick<Volumes, "has" | "remove">;
  readonly slots: Pick<PoolSlots, "holdBack">;
  readonly nodes: Pick<ClusterNodes, "overview">;
}

/** @throws DomainError `volume_not_found`, `volume_in_use`, or `conflict` when another node has it; the system's error */
export async function removeVolume(
  { volumes, slots, nodes }: VolumeRemovalParts,
  name: string,
): Promise<void> {
  const shown = JSON.stringify(name);
  if (!volumes.has(name)) {
    const having = (await nodes.overview()).find(({ resources }) => resources?.volumes?.includes(name));
    if (having === undefined)
      throw new DomainError("volume_not_found", `There is no volume ${shown}; list them with GET /resource.`);
    const where = `Volume ${shown} is on the node ${JSON.stringify(having.name)}`;
    throw new DomainError("conflict", `${where}: send the request to that node.`);
  }
  const claim: Claim = { kind: "volume", name, isShared: false };
  const giveBack = slots.holdBack(claim);
  if (giveBack === null)
    throw new DomainError("volume_in_use", `A command has volume ${shown}: wait, or cancel its run.`);
  try {
    await volumes.remove(name);
  } finally {
    giveBack();
  }
}
