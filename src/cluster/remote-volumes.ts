// The removal of a volume of any node, asked for at any other: the node itself does it.

import { Code, ConnectError } from "@connectrpc/connect";
import { EngineUnavailable } from "../engine/batch.ts";
import type { RemoveVolume } from "../execution/volume-removal.ts";
import { DomainError } from "../lib/domain-error.ts";
import { isLiving, type NodeReads } from "./nodes.ts";
import { type NodeClient, PeerUnreachable } from "./wire/peers.ts";

/** A volume may have very many files. */
const CALL_MS = 120_000;
/** Of which the volumes are known, the living first. */
const NODES_MAX = 1_000;

export interface RemoteVolumesParts {
  readonly nodeId: string;
  readonly own: RemoveVolume;
  readonly nodes: Pick<NodeReads, "livingFirst">;
  readonly peers: { call<A>(address: string, call: (client: NodeClient) => Promise<A>): Promise<A> };
}

/** Throws also EngineUnavailable and JournalUnavailable, and DomainError `conflict` when the node that has the volume cannot do it. */
export function remoteVolumeRemoval({ nodeId, own, nodes, peers }: RemoteVolumesParts): RemoveVolume {
  return async (name) => {
    const isElsewhere = await own(name).then(
      () => false,
      (error: unknown) => {
        if (error instanceof DomainError && error.code === "volume_not_found") return error;
        throw error;
      },
    );
    if (isElsewhere === false) return;
    const others = (await nodes.livingFirst(NODES_MAX)).filter((node) => node.nodeId !== nodeId);
    const having = others.find(({ resources }) => resources?.volumes?.includes(name));
    if (having === undefined) throw isElsewhere;
    const where = `Volume ${JSON.stringify(name)} is on the node ${JSON.stringify(having.name)}`;
    if (!isLiving(having) || having.address === null)
      throw new DomainError("conflict", `${where}, which does not run: start it, or remove the node.`);
    try {
      const request = { nodeId: having.nodeId, name };
      await peers.call(having.address, (client) => client.removeVolume(request, { timeoutMs: CALL_MS }));
    } catch (error) {
      if (!(error instanceof PeerUnreachable)) throw error;
      const { code, rawMessage } = ConnectError.from(error.cause);
      // It has been removed since the node was last heard of.
      if (code === Code.NotFound) throw isElsewhere;
      if (code === Code.Aborted) throw new DomainError("volume_in_use", rawMessage);
      if (code === Code.Unimplemented)
        throw new DomainError(
          "conflict",
          `${where}, whose version does not do this for others: send the request to it.`,
        );
      throw new EngineUnavailable(`${error.message}. Try again in a moment.`);
    }
  };
}
