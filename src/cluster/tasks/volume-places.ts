// Which node has which volume: what the nodes' rows tell, and what this node has asked for since.

import type { NodeNeeds } from "../../engine/ports.ts";

export interface VolumePlacesParts {
  readonly nodeId: string;
  /** Whether it is in this node's home. */
  readonly hasVolume: (name: string) => boolean;
}

export class VolumePlaces {
  readonly #parts: VolumePlacesParts;
  #nodes = new Map<string, string>();

  constructor(parts: VolumePlacesParts) {
    this.#parts = parts;
  }

  /** What the rows of the other nodes tell. */
  rowsAre(nodes: readonly { readonly nodeId: string; readonly volumes?: readonly string[] }[]): void {
    const places = nodes.flatMap(({ nodeId, volumes = [] }) =>
      volumes.map((name) => [name, nodeId] as const),
    );
    this.#nodes = new Map(places);
  }

  /** From now on, and until the rows are read again, the node is taken to have what is asked for: it makes what is new. */
  note(needs: NodeNeeds, nodeId: string): void {
    for (const name of volumesOf(needs)) this.#nodes.set(name, nodeId);
  }

  /** The node that has one of the volumes that are asked for; null: the first command that has them makes them. */
  nodeOf(needs: NodeNeeds): string | null {
    for (const name of volumesOf(needs)) {
      const nodeId = this.#place(name);
      if (nodeId !== null) return nodeId;
    }
    return null;
  }

  /**
   * @param isHere whether it must run on this node
   * @returns why a command cannot have its volumes; null when it can, somewhere and some time
   */
  refusal(needs: NodeNeeds, isHere: boolean): string | null {
    const at = this.nodeOf(needs);
    if (at === null) return null;
    for (const name of volumesOf(needs)) {
      const other: string = this.#place(name) ?? at;
      if (other !== at)
        return `Its volumes are on different nodes: "${name}" on ${other}, and another one on ${at}.`;
    }
    if (!isHere || at === this.#parts.nodeId) return null;
    return `Its volume is on the node ${at}, and a command that offers services runs on its job's node: submit the job there.`;
  }

  #place(name: string): string | null {
    const { nodeId, hasVolume } = this.#parts;
    return hasVolume(name) ? nodeId : (this.#nodes.get(name) ?? null);
  }
}

const none: readonly string[] = [];

function volumesOf({ demand }: NodeNeeds): readonly string[] {
  if (demand?.named === undefined) return none;
  return demand.named.claims.flatMap(({ kind, name }) => (kind === "volume" ? [name] : []));
}
