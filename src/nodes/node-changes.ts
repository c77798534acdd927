// Requests that change which nodes a cluster has. A node is expected in the transaction of the request; what takes time is an
// operation, whose target is the node's id.

import { makeToken, parseToken, tokenText, verifierOf } from "../cluster/join-token.ts";
import { isLiving, isReady, type NodeOrders, type NodeReads, type NodeRecord } from "../cluster/nodes.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import { DomainError } from "../lib/domain-error.ts";
import { isOpen } from "../operations/operation-change.ts";
import { Operations, type OperationsParts } from "../operations/operations.ts";
import type { Operation } from "../operations/records.ts";
import { type ChangeWrites, Departures } from "./departures.ts";
import { type Join, Joined, Joining, type JoiningOperation, type JoinRequest } from "./joining.ts";

/** How long a node is expected. */
const EXPECTED_MS = 60 * 60 * 1_000;
/** They wait for the most part, up to a day each. */
const AT_ONCE_MAX = 100;

/** A program as a node of a cluster. */
export interface ClusterParts {
  readonly nodeId: string;
  readonly orders: NodeOrders;
  readonly reads: Pick<NodeReads, "present" | "page">;
  /** Of the key that encrypts, as hexadecimal digits. */
  readonly sealingKeyId: string;
  /** The operation by which this program has joined; null once it has ended. */
  readonly joined: (JoiningOperation & { done(): void }) | null;
}

export interface NodeChangesParts extends Omit<OperationsParts<ChangeWrites>, "handlers" | "atOnceMax"> {
  /** A program that shares its database with nobody may join a cluster. */
  readonly place:
    | { readonly kind: "node"; readonly cluster: ClusterParts }
    | { readonly kind: "alone"; readonly join: Join };
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
  readonly #joining: Joining | null;

  constructor(parts: NodeChangesParts) {
    this.#parts = parts;
    const { place } = parts;
    this.#joining = place.kind === "node" ? null : new Joining(place.join, parts.records);
    const handlers =
      this.#joining === null ? this.#handlersOf(this.#cluster()) : { node_join: this.#joining };
    this.#operations = new Operations<ChangeWrites>({ ...parts, handlers, atOnceMax: AT_ONCE_MAX });
  }

  #handlersOf({ orders, joined }: ClusterParts) {
    const { clock } = this.#parts;
    return {
      node_removal: new Departures({ orders, clock }, "remove"),
      node_leave: new Departures({ orders, clock }, "end"),
      node_join: new Joined(orders, (operationId) => {
        if (operationId === joined?.operation.operationId) joined.done();
      }),
    };
  }

  /** Begins what is open and this program's. */
  recover(): Promise<void> {
    return this.#operations.recover();
  }

  /**
   * Brings the operation by which this program has joined into the database of the cluster, unless it is there. To be called
   * once the node is registered, and before anybody is answered.
   */
  async bringJoin(): Promise<void> {
    const { place, records, write, ownership } = this.#parts;
    if (place.kind !== "node" || place.cluster.joined === null) return;
    const { operation, events, done } = place.cluster.joined;
    const known = await records.operation(operation.operationId);
    if (known !== null && !isOpen(known)) done();
    if (known !== null) return;
    await write(async ({ operations }) => {
      const own = { ...operation, owner: ownership.owner() };
      const [first = "", ...others] = events;
      await operations.insert({ ...own, eventSeq: 1 }, first);
      for (const [n, line] of others.entries()) await operations.save({ ...own, eventSeq: n + 2 }, line);
    });
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
      if (await nodes.isNamed(name)) throw nameTaken(name);
      const nodeId = `node_${this.#parts.newId()}`;
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

  /**
   * @param token as it was shown
   * @throws DomainError `validation_failed`; `conflict` when the program cannot join; from what it returns `node_busy`
   */
  async prepareJoin(token: string, request: Omit<JoinRequest, "token">): Promise<WriteChange> {
    const known = parseToken(token);
    if (known === null) {
      const message = "is not a join token; `troupe node add NAME` makes one";
      throw new DomainError("validation_failed", `The token ${message}.`, [
        { path: "/token", code: "invalid_value", message },
      ]);
    }
    const { place, records } = this.#parts;
    if (place.kind === "node") {
      const { nodeId } = place.cluster;
      const { rows } = await records.operations({ target: nodeId, status: null, limit: 100, after: null });
      const before = rows.find(({ kind }) => kind === "node_join");
      if (known.nodeId === nodeId && before !== undefined) return async () => before;
      throw new DomainError("conflict", `This program is node ${nodeId} of a cluster already.`);
    }
    const mistakes = place.join.mistakes(request);
    if (mistakes.length > 0)
      throw new DomainError("validation_failed", "The program cannot join with these addresses.", mistakes);
    const content = place.join.content();
    if (content.length > 0) throw notEmpty(content);
    const joining = this.#joining!;
    return async (writes) => {
      const { nodeId } = joining;
      if (nodeId !== null && nodeId !== known.nodeId && (await writes.operations.open(nodeId)) !== null)
        throw new DomainError("conflict", `This program is about to join a cluster as node ${nodeId}.`);
      const operation = await this.#operations.request(writes, {
        kind: "node_join",
        target: known.nodeId,
        request: {},
      });
      joining.ask(operation.operationId, { ...request, token: known });
      return operation;
    };
  }

  async #departure(
    kind: "node_removal" | "node_leave",
    node: NodeRecord,
    request: JsonObject,
  ): Promise<WriteChange> {
    const { nodeId, name } = node;
    const others = (await this.#cluster().reads.present()).filter(
      (other) => isReady(other) && other.nodeId !== nodeId,
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
    const [node, other] = await this.#cluster().reads.page(2, null, name);
    if (node === undefined)
      throw new DomainError("node_not_found", `There is no node named ${name}; GET /nodes lists them.`);
    if (other === undefined) return node;
    throw new DomainError(
      "conflict",
      `Several nodes are named ${name}: give the node_id of one; GET /nodes?name=… lists them.`,
    );
  }

  #cluster(): ClusterParts {
    const { place } = this.#parts;
    if (place.kind === "node") return place.cluster;
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
  for (const { nodeId } of nodes) {
    const kind = (await operations.open(nodeId))?.kind;
    if (kind !== "node_removal" && kind !== "node_leave") return true;
  }
  return false;
}

const notEmpty = (content: readonly string[]) =>
  new DomainError(
    "conflict",
    `SVC_HOME of this program holds ${content.join(", ")}, which the cluster would not have. Join with a program whose SVC_HOME is empty; ` +
      "or, to begin a cluster with what is here, move it into an empty database with `troupe store copy`.",
  );

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
    `No other node is ready to take the jobs of node ${name}, and stays. ${instead}: open jobs wait for the next node.`,
  );
}
