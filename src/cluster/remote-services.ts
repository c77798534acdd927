// The services of other nodes, as those nodes tell. A node that does not answer soon has no answer, and for a while after that
// it is not asked: many may wait for what it may have.

import type { Clock } from "../engine/ports.ts";

import { isLoopback } from "../lib/addresses.ts";
import type { ServiceNode } from "../services/services.ts";
import { hostOf, type NodeRecord } from "./nodes.ts";
import { WireProblem } from "./wire/control.ts";
import { type Peers, PeerUnreachable } from "./wire/peers.ts";
import { foundFromWire, pageToWire, serviceFromWire } from "./wire/services.ts";

/** Of one answer, once there is a connection. */
const ANSWER_MS = 3_000;
const SILENT_FOR_MS = 2_000;

export interface OtherServicesParts {
  /** Those that are alive, this one included. @throws JournalUnavailable */
  readonly living: () => Promise<readonly NodeRecord[]>;
  /** This node's owner, as it is now. */
  readonly owner: () => string;
  readonly peers: Pick<Peers, "call" | "stream">;
  readonly clock: Pick<Clock, "steadyMs">;
}

/** @returns the other nodes that are alive and can be asked; it throws JournalUnavailable */
export function nodesWithServices(parts: OtherServicesParts): () => Promise<readonly ServiceNode[]> {
  /** By address: when a node did not answer. */
  const silentSinceMs = new Map<string, number>();
  return async () => {
    const owner = parts.owner();
    const others = (await parts.living()).filter((node) => node.owner !== owner);
    return others.flatMap((node) => {
      const { nodeId, name, address } = node;
      return address === null ? [] : [remoteNode({ nodeId, name, address }, parts, silentSinceMs)];
    });
  };
}

function remoteNode(
  { nodeId, name, address }: { readonly nodeId: string; readonly name: string; readonly address: string },
  { peers, clock }: OtherServicesParts,
  silentSinceMs: Map<string, number>,
): ServiceNode {
  /** @returns null when the node does not answer, or not by the protocol */
  const answered = async <Answer>(ask: () => Promise<Answer>): Promise<Answer | null> => {
    const sinceMs = silentSinceMs.get(address);
    if (sinceMs !== undefined && clock.steadyMs() - sinceMs < SILENT_FOR_MS) return null;
    silentSinceMs.delete(address);
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof PeerUnreachable || error instanceof WireProblem)) throw error;
      silentSinceMs.set(address, clock.steadyMs());
      return null;
    }
  };
  return {
    nodeId,
    name,
    isSameMachine: isLoopback(hostOf(address)),

    find: (wanted) =>
      answered(async () => {
        const request = { ...wanted, tags: [...wanted.tags], leftOut: [...wanted.leftOut] };
        const timeout = { timeoutMs: ANSWER_MS };
        return foundFromWire(await peers.call(address, (client) => client.findService(request, timeout)));
      }),

    list: (page, isChecked) =>
      answered(async () => {
        const messages = peers.stream(address, new AbortController().signal, (client, options) =>
          client.listServices(pageToWire(page, isChecked), { ...options, timeoutMs: ANSWER_MS }),
        );
        const services = [];
        for await (const { service } of messages)
          if (service !== undefined) services.push(serviceFromWire(service));
        return services;
      }),
  };
}
