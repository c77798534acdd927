// The services of other nodes, as those nodes tell. A node that does not answer soon has no answer.

import { isLoopback } from "../services/service-view.ts";
import type { ServiceNode } from "../services/services.ts";
import { hostOf, type NodeRecord } from "./nodes.ts";
import { WireProblem } from "./wire/control.ts";
import { type Peers, PeerUnreachable } from "./wire/peers.ts";
import { foundFromWire, pageToWire, serviceFromWire } from "./wire/services.ts";

/** Of one answer, once there is a connection. */
const ANSWER_MS = 3_000;

export interface OtherServicesParts {
  /** Those that are alive, this one included. @throws JournalUnavailable */
  readonly living: () => Promise<readonly NodeRecord[]>;
  /** This node's owner, as it is now. */
  readonly owner: () => string;
  readonly peers: Pick<Peers, "call" | "stream">;
}

/** The other nodes that are alive and can be asked. @throws JournalUnavailable */
export async function nodesWithServices(parts: OtherServicesParts): Promise<readonly ServiceNode[]> {
  const owner = parts.owner();
  const others = (await parts.living()).filter((node) => node.owner !== owner);
  return others.flatMap((node) => {
    const { nodeId, name, address } = node;
    return address === null ? [] : [remoteNode({ nodeId, name, address }, parts.peers)];
  });
}

function remoteNode(
  { nodeId, name, address }: { readonly nodeId: string; readonly name: string; readonly address: string },
  peers: OtherServicesParts["peers"],
): ServiceNode {
  return {
    nodeId,
    name,
    isSameMachine: isLoopback(hostOf(address)),

    find: (wanted) =>
      answered(async () => {
        const request = { ...wanted, tags: [...wanted.tags] };
        const timeout = { timeoutMs: ANSWER_MS };
        return foundFromWire(await peers.call(address, (client) => client.findService(request, timeout)));
      }),

    list: (page) =>
      answered(async () => {
        const over = new AbortController();
        const messages = peers.stream(address, over.signal, (client, options) =>
          client.listServices(pageToWire(page), { ...options, timeoutMs: ANSWER_MS }),
        );
        const services = [];
        for await (const { service } of messages)
          if (service !== undefined) services.push(serviceFromWire(service));
        return services;
      }),
  };
}

/** @returns null when the node does not answer, or not by the protocol */
async function answered<Answer>(ask: () => Promise<Answer>): Promise<Answer | null> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof PeerUnreachable || error instanceof WireProblem) return null;
    throw error;
  }
}
