// Requests that change which nodes a cluster has. A node is expected in the transaction of the request; what takes time is an
// operation, whose target is the node's id.

import { makeToken, tokenText, verifierOf } from "../cluster/join-token.ts";
import { isLiving, type NodeOrders, type NodeReads, type NodeRecord } from "../cluster/nodes.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import { DomainError } from "../lib/domain-error.ts";
import { Operations, type OperationsParts } from "../operations/operations.ts";
import type { Operation } from "../operations/records.ts";
import { type ChangeWrites, Departures } from "./departures.ts";

/** How long a node is expected. */
const EXPECTED_MS = 60 * 60 * 1_000;

/** A program as a node of a cluster. */
export interface ClusterParts {
  readonly nodeId: string;
  readonly orders: NodeOrders;
  readonly reads: Pick<NodeReads, "present" | "named">;
  /** Of the key that encrypts, as hexadecimal digits. */
  readonly sealingKeyId: string;
}

export interface NodeChangesParts extends Omit<OperationsParts<ChangeWrites>, "handlers"> {
  /** Null for a program that shares its database with nobody. */
  readonly cluster: ClusterParts | null;
  readonly clock: Clock;
}

export interface AddedNode {
  readonly nodeId: string;
  /** Shown once. */
  readonly token: string;
  readonly expiresAtMs: number;
}

/** Writes a request down in a gateway transaction; `begin` is to be called after its commit. */
export type WriteChange = (writes: ChangeWrites) => Promise<Operation>;

export class NodeChanges {
  readonly #parts: NodeChangesParts;
  readonly #operations: Operations<ChangeWrites>;

  constructor(parts: NodeChangesParts) {
    this.#parts = parts;
    const { cluster, clock } = parts;
    this.#operations = new Operations<ChangeWrites>({
      ...parts,
      handlers:
        cluster === null
          ? {}
          : {
              node_removal: new Departures({ orders: cluster.orders, clock }, "remove"),
              node_leave: new Departures({ orders: cluster.orders, clock }, "end"),
            },
    });
  }

  recover(): Promise<void> {
    return this.#operations.recover();
  }

  stop(): Promise<void> {
    return this.#operations.stop();
  }

  begin(operation: Operation): void {
    this.#operations.begin(operation);
  }

  /** @throws DomainError `not_clustered`; from what it returns `conflict` when there is such a node */
  prepareAddition(
    name: string,
    labels: Readonly<Record<string, string>>,
  ): (writes: ChangeWrites) => Promise<AddedNode> {
    const { sealingKeyId } = this.#cluster();
    return async ({ nodes }) => {
      const nodeId = await nodes.idFor(name, this.#parts.newId);
      if (nodeId === null) throw nameTaken(name);
      const token = makeToken(nodeId, sealingKeyId);
      const verifier = verifierOf(token).toString("hex");
      const expiresAtMs = await nodes.expect(nodeId, { name, labels, verifier }, EXPECTED_MS);
      return { nodeId, token: tokenText(token), expiresAtMs };
    };
  }

  /**
   * @param asked its id, or its name
   * @throws DomainError `not_clustered`, `node_not_found`, `conflict` when several have the name; from what it returns
   *   `last_node`, `node_busy`
   */
  async prepareRemoval(
    asked: { readonly nodeId: string } | { readonly name: string },
    request: { readonly force: boolean; readonly deadline_seconds: number },
  ): Promise<WriteChange> {
    const node = "nodeId" in asked ? await this.#find(asked.nodeId) : await this.#named(asked.name);
    return this.#departure("node_removal", node, request);
  }

  /** @throws DomainError `not_clustered`; from what it returns `last_node`, `node_busy` */
  async prepareLeave(request: { readonly deadline_seconds: number }): Promise<WriteChange> {
    return this.#departure("node_leave", await this.#find(this.#cluster().nodeId), request);
  }

  async #departure(
    kind: "node_removal" | "node_leave",
    node: NodeRecord,
    request: JsonObject,
  ): Promise<WriteChange> {
    const { nodeId, name } = node;
    const others = (await this.#cluster().reads.present()).filter(
      (other) => isLiving(other) && other.nodeId !== nodeId,
    );
    return async (writes) => {
      const needsOther = isLiving(node) && request.force !== true;
      if (needsOther && !(await someStays(writes, others))) throw lastNode(kind, name);
      return this.#operations.request(writes, { kind, target: nodeId, request: { ...request, name } });
    };
  }

  async #find(nodeId: string): Promise<NodeRecord> {
    const node = await this.#cluster().orders.find(nodeId);
    if (node === null)
      throw new DomainError("node_not_found", `There is no node ${nodeId}; GET /nodes lists them.`);
    return node;
  }

  async #named(name: string): Promise<NodeRecord> {
    const [node, ...others] = await this.#cluster().reads.named(name);
    if (node === undefined)
      throw new DomainError("node_not_found", `There is no node named ${name}; GET /nodes lists them.`);
    if (others.length === 0) return node;
    throw new DomainError(
      "conflict",
      `${others.length + 1} nodes are named ${name}: give the node_id of one; GET /nodes lists them.`,
    );
  }

  #cluster(): ClusterParts {
    const { cluster } = this.#parts;
    if (cluster !== null) return cluster;
    throw notClustered();
  }
}

export function notClustered(): DomainError {
  return new DomainError(
    "not_clustered",
    "This program keeps its records in SVC_HOME, so it is the only node. Set SVC_DATABASE_URL=postgres://… for every program that is to be a node of one cluster.",
  );
}

/** Whether one of these nodes is not to go. */
async function someStays({ operations }: ChangeWrites, nodes: readonly NodeRecord[]): Promise<boolean> {
  for (const { nodeId } of nodes) if ((await operations.open(nodeId)) === null) return true;
  return false;
}

const nameTaken = (name: string) =>
  new DomainError(
    "conflict",
    `There is a node named ${name}. Choose another name; or, if that node is gone, remove it first (\`troupe node remove ${name}\`).`,
  );

function lastNode(kind: Operation["kind"], name: string): DomainError {
  const instead =
    kind === "node_leave"
      ? "To end its program all the same, send it SIGTERM"
      : "To remove it all the same, use force";
  return new DomainError(
    "last_node",
    `No other node lives that stays and could take the jobs of node ${name}. ${instead}: open jobs wait for the next node.`,
  );
}
