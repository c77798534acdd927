// Bytes that other nodes have, asked of them.
//
// - The living nodes are asked one after the other: first the one that gave something last, then those to which a connection is
//   open. A node that does not have them answers NOT_FOUND, in one round trip.
// - Nothing is remembered of what nobody has: it may be there the next time.
// - A node that dies, or sends nothing for a while, is left, and another one begins from the beginning.

import { Code, ConnectError } from "@connectrpc/connect";
import type { Clock, EngineLog } from "../engine/ports.ts";
import { Semaphore } from "../lib/async.ts";
import {
  type BytesElsewhere,
  type BytesName,
  BytesUnavailable,
  type FetchOutcome,
  type FoundBytes,
  type ListedBytes,
  WrongBytes,
} from "./bytes.ts";
import { isLiving, type NodeReads, type NodeRecord, nodeOf } from "./nodes.ts";
import { bytesFromWire } from "./wire/bytes.ts";
import type { FetchBytesResponse } from "./wire/gen/svc/node/v1/node_pb.ts";
import { type Peers, PeerUnreachable } from "./wire/peers.ts";

/** Attempts and preparations wait for the others; a blob is for who reads an artifact, and may be of any size. */
const BLOBS_AT_ONCE = 4;
const OTHERS_AT_ONCE = 8;
/** Those that may have them. */
const NODES_MAX = 1_000;
/** A disk that reads a chunk for longer is not waited for. */
const SILENT_MS = 30_000;

export interface NodeBytesParts {
  readonly peers: Pick<Peers, "call" | "stream" | "connected">;
  readonly nodes: Pick<NodeReads, "livingFirst">;
  /** This node's, as it is now. */
  readonly owner: () => string;
  readonly clock: Pick<Clock, "after">;
  readonly log: EngineLog;
}

/** A node that can be asked. */
type Reachable = NodeRecord & { readonly address: string };

export class NodeBytes implements BytesElsewhere {
  readonly #parts: NodeBytesParts;
  readonly #blobs = new Semaphore(BLOBS_AT_ONCE);
  readonly #otherBytes = new Semaphore(OTHERS_AT_ONCE);
  /** The address of the node that gave something last. */
  #lastGiver: string | null = null;

  constructor(parts: NodeBytesParts) {
    this.#parts = parts;
  }

  fetch(name: BytesName, take: (found: FoundBytes) => Promise<void>): Promise<FetchOutcome> {
    const few = name.kind === "blobs" ? this.#blobs : this.#otherBytes;
    return few.run(async () => {
      const { living, lost } = await this.#others();
      const failed: string[] = [];
      for (const node of living) {
        try {
          if (!(await this.#fetchFrom(node.address, name, take))) continue;
          this.#lastGiver = node.address;
          return { kind: "fetched" };
        } catch (error) {
          if (!(error instanceof PeerUnreachable || error instanceof WrongBytes)) throw error;
          const fields = { node: node.name, ...name, error: error.message };
          this.#parts.log.warn(fields, "another node did not give the bytes that it has, or may have");
          failed.push(node.name);
        }
      }
      if (failed.length > 0) throw notGiven(name, failed);
      return { kind: "nowhere", lost };
    });
  }

  async list(kind: string, below: string): Promise<readonly ListedBytes[]> {
    const { living } = await this.#others();
    const silent: string[] = [];
    const lists = await Promise.all(
      living.map(async ({ name, address }) => {
        try {
          return (await this.#parts.peers.call(address, (client) => client.listBytes({ kind, below })))
            .listed;
        } catch (error) {
          if (!(error instanceof PeerUnreachable)) throw error;
          silent.push(name);
          return [];
        }
      }),
    );
    if (silent.length > 0) throw notGiven({ kind, key: below }, silent);
    return lists.flat();
  }

  /** The other nodes; those that can be asked in the order in which they are. */
  async #others(): Promise<{ readonly living: readonly Reachable[]; readonly lost: readonly string[] }> {
    const { nodes, owner, peers } = this.#parts;
    const own = nodeOf(owner());
    const others = (await nodes.livingFirst(NODES_MAX)).filter(({ nodeId }) => nodeId !== own);
    const connected = new Set(peers.connected);
    const place = ({ address }: Reachable) =>
      address === this.#lastGiver ? 0 : connected.has(address) ? 1 : 2;
    const isReachable = (node: NodeRecord): node is Reachable => isLiving(node) && node.address !== null;
    return {
      living: others.filter(isReachable).toSorted((a, b) => place(a) - place(b)),
      lost: others.filter((node) => !isReachable(node)).map(({ name }) => name),
    };
  }

  /** @returns false when the node does not have it */
  async #fetchFrom(
    address: string,
    name: BytesName,
    take: (found: FoundBytes) => Promise<void>,
  ): Promise<boolean> {
    const { peers, clock } = this.#parts;
    const ended = new AbortController();
    const parts = peers.stream(address, ended.signal, (client, options) => client.fetchBytes(name, options));
    const silent = new PeerUnreachable(`Node ${address} sends nothing.`, false);
    const heard: AsyncIterator<FetchBytesResponse> = {
      async next() {
        const cancel = clock.after(SILENT_MS, () => ended.abort(silent));
        return parts.next().finally(cancel);
      },
    };
    try {
      await take(await bytesFromWire(heard));
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    } finally {
      // Ends the stream wherever it is: nobody reads on.
      ended.abort();
      await parts.return(undefined).catch(() => {});
    }
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof PeerUnreachable && ConnectError.from(error.cause).code === Code.NotFound;
}

function notGiven({ kind, key }: BytesName, failed: readonly string[]): BytesUnavailable {
  return new BytesUnavailable(
    `${kind}/${key} is not on this node, and could not be fetched from ${failed.join(", ")}. Try again in a moment; the log says why.`,
  );
}
