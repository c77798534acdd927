// The reconciliation of any node, asked for at any other: the node itself does it.

import { Code, ConnectError } from "@connectrpc/connect";
import { EngineUnavailable } from "../engine/batch.ts";
import { DomainError } from "../lib/domain-error.ts";
import { isLiving, type NodeReads } from "./nodes.ts";
import type { Difference, Reconciler, Reconciliation } from "./reconcile.ts";
import { type NodeClient, PeerUnreachable } from "./wire/peers.ts";

/** It looks at everything that a node has, twice. */
const CALL_MS = 120_000;

export interface RemoteReconcileParts {
  readonly nodeId: string;
  readonly own: Pick<Reconciler, "reconcile">;
  readonly nodes: Pick<NodeReads, "find">;
  readonly peers: { call<A>(address: string, call: (client: NodeClient) => Promise<A>): Promise<A> };
}

/**
 * @returns null when there is no such node
 * @throws EngineUnavailable, JournalUnavailable; DomainError when the node does not run, or is asked too often
 */
export type ReconcileNode = (nodeId: string, fix: boolean) => Promise<Reconciliation | null>;

export function remoteReconcile({ nodeId, own, nodes, peers }: RemoteReconcileParts): ReconcileNode {
  return async (asked, fix) => {
    if (asked === nodeId) return own.reconcile(fix);
    const node = await nodes.find(asked);
    if (node === null) return null;
    if (!isLiving(node) || node.address === null) {
      throw new DomainError(
        "conflict",
        `Node ${asked} does not run: when it starts, it ends what it had left.`,
      );
    }
    try {
      const request = { nodeId: asked, fix };
      const { differences, hasMore } = await peers.call(node.address, (client) =>
        client.reconcile(request, { timeoutMs: CALL_MS }),
      );
      const kept = differences.map(({ $typeName: _, $unknown: __, ...difference }) => difference);
      return { differences: kept as Difference[], hasMore };
    } catch (error) {
      if (!(error instanceof PeerUnreachable)) throw error;
      const { code, rawMessage } = ConnectError.from(error.cause);
      if (code === Code.Aborted) throw new DomainError("conflict", rawMessage);
      throw new EngineUnavailable(`${error.message}. Try again in a moment.`);
    }
  };
}
