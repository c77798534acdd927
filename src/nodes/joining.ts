// A running program whose home is empty becomes a node of a cluster: it is welcomed by one of the nodes, checks that it could
// work as the node that it is to be, and starts again as that.
//
// - What it was asked to join with is kept in memory alone: an operation that is found at a start has not come to its end.
// - From the moment that the home is a node's (Join.restart), the node's own program goes on with the operation (Joined).

import type { JoinToken } from "../cluster/join-token.ts";
import type { NodeOrders } from "../cluster/nodes.ts";
import type { Welcome } from "../cluster/welcome.ts";
import type { DomainErrorEntry } from "../lib/domain-error.ts";
import { OperationFailed, OperationInterrupted } from "../operations/failures.ts";
import type { OperationEnd, OperationHandler } from "../operations/operations.ts";
import type { OperationContext } from "../operations/progress.ts";
import type { Operation, OperationRecords } from "../operations/records.ts";
import type { ChangeWrites } from "./departures.ts";

const EVENTS_MAX = 1_000;
/** A node that does not answer takes some seconds. */
const ADDRESSES_MAX = 10;

/** An operation that goes on in another program, with its events so far as the lines that are kept. */
export interface JoiningOperation {
  readonly operation: Operation;
  readonly events: readonly string[];
}

export interface JoinRequest {
  readonly token: JoinToken;
  /** Where the cluster is found. */
  readonly place: { readonly databaseUrl: string } | { readonly nodeAddress: string };
  /** In place of the name that the node was added with. */
  readonly name: string | null;
  /** host:port at which other nodes are to reach it. */
  readonly address: string | null;
}

/** What the program is to be. */
export interface JoinedNode {
  readonly nodeId: string;
  readonly databaseUrl: string;
  readonly keys: readonly string[];
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly address: string | null;
}

/** The program, as it joins; src/app has it. All that fails is a JoinProblem. */
export interface Join {
  /** What the home holds; empty when it may join. */
  content(): readonly string[];
  /** What is wrong with the addresses of a request. */
  mistakes(request: Omit<JoinRequest, "token">): readonly DomainErrorEntry[];
  /** The addresses of the living nodes of a database. */
  nodesOf(databaseUrl: string): Promise<readonly string[]>;
  welcome(address: string, token: JoinToken): Promise<Welcome>;
  /** Whether the program could work as this node. */
  check(node: JoinedNode, token: JoinToken): Promise<void>;
  /** Has the program end, and begin again as this node, which goes on with the operation. */
  restart(node: JoinedNode, joining: JoiningOperation): void;
}

/** The program cannot join; the message says why, and what to do. */
export class JoinProblem extends Error {
  override readonly name = "JoinProblem";
  /** Whether another node may let it in. */
  readonly mayAskOther: boolean;

  constructor(message: string, mayAskOther = false) {
    super(message);
    this.mayAskOther = mayAskOther;
  }
}

export const joinSteps = [
  { name: "welcome", label: "Asking a node of the cluster" },
  { name: "check", label: "Checking what the node needs" },
  { name: "restart", label: "Starting again as a node" },
];

export class Joining implements OperationHandler<ChangeWrites> {
  readonly steps = joinSteps;
  readonly #join: Join;
  readonly #records: Pick<OperationRecords, "operationEvents">;
  #asked: { readonly operationId: string; readonly request: JoinRequest } | null = null;

  constructor(join: Join, records: Pick<OperationRecords, "operationEvents">) {
    this.#join = join;
    this.#records = records;
  }

  /** To be called before the operation is begun. */
  ask(operationId: string, request: JoinRequest): void {
    this.#asked = { operationId, request };
  }

  /** The node that the program was last asked to join as. */
  get nodeId(): string | null {
    return this.#asked?.request.token.nodeId ?? null;
  }

  async run(context: OperationContext): Promise<OperationEnd<ChangeWrites>> {
    const { operationId } = context.operation;
    if (this.#asked?.operationId !== operationId) {
      throw new OperationFailed(
        "join_interrupted",
        "The program ended, or was given work, before it had joined. Ask again, with the same token while it is good.",
      );
    }
    const { request } = this.#asked;
    try {
      await context.step("welcome");
      const welcome = await this.#welcomed(request, context.signal);
      await context.step("check");
      const { token, place, name, address } = request;
      const databaseUrl = "databaseUrl" in place ? place.databaseUrl : welcome.databaseUrl;
      const node = { ...welcome, nodeId: token.nodeId, databaseUrl, address, name: name ?? welcome.name };
      await this.#join.check(node, token);
      await context.step("restart");
      const { lines } = await this.#records.operationEvents(operationId, 0, EVENTS_MAX);
      this.#join.restart(node, { operation: context.operation, events: lines });
    } catch (error) {
      if (!(error instanceof JoinProblem)) throw error;
      throw new OperationFailed("join_failed", error.message);
    }
    const ended = Promise.withResolvers<void>();
    if (context.signal.aborted) ended.resolve();
    context.signal.addEventListener("abort", () => ended.resolve());
    await ended.promise;
    throw new OperationInterrupted("The program starts again.");
  }

  async fail(): Promise<() => void> {
    return () => {};
  }

  /** By the first node that answers. */
  async #welcomed({ token, place }: JoinRequest, signal: AbortSignal): Promise<Welcome> {
    const addresses =
      "nodeAddress" in place ? [place.nodeAddress] : await this.#join.nodesOf(place.databaseUrl);
    let problem = new JoinProblem("No node of the cluster runs. Start one, then ask again.");
    for (const address of addresses.slice(0, ADDRESSES_MAX)) {
      if (signal.aborted) throw new OperationInterrupted("The program stops.");
      try {
        return await this.#join.welcome(address, token);
      } catch (error) {
        if (!(error instanceof JoinProblem && error.mayAskOther)) throw error;
        problem = error;
      }
    }
    throw problem;
  }
}

/** The end of it: the node has registered before the operation is in the database of the cluster. */
export class Joined implements OperationHandler<ChangeWrites> {
  readonly steps = joinSteps;
  readonly #nodes: Pick<NodeOrders, "find">;
  readonly #done: (operationId: string) => void;

  /** @param done called once the operation has ended */
  constructor(nodes: Pick<NodeOrders, "find">, done: (operationId: string) => void) {
    this.#nodes = nodes;
    this.#done = done;
  }

  async run({ operation }: OperationContext): Promise<OperationEnd<ChangeWrites>> {
    const { target, operationId } = operation;
    const name = (await this.#nodes.find(target))?.name ?? null;
    return { result: { node_id: target, name }, commit: async () => () => this.#done(operationId) };
  }

  async fail(): Promise<() => void> {
    return () => {};
  }
}
