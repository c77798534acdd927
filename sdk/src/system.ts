// The gateway itself, its runtime, its nodes.

import { operations } from "./generated.ts";
import { type Pages, pagesOf } from "./pages.ts";
import type {
  AddedNode,
  AddNode,
  CollectGarbage,
  CollectReport,
  Doctor,
  DrainNode,
  Health,
  JoinCluster,
  LeaveCluster,
  LimitsInput,
  ListEvent,
  ListTopic,
  Metrics,
  Node,
  NodeDrain,
  NodesQuery,
  Operation,
  ReconcileNode,
  Reconciliation,
  RemoveNode,
  Resource,
  RuntimeHealth,
  RuntimeStatus,
  SetMaintenance,
  Settings,
  SystemSummary,
} from "./records.ts";
import type { CallOptions, KeyedOptions, Transport } from "./transport.ts";

export class SystemResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Needs no token. A gateway that takes no writes answers too: its status is "degraded". */
  health(options: CallOptions = {}): Promise<Health> {
    return this.#transport.value("getHealth", {}, options);
  }

  /** Whether the runtime takes work; one that does not answers too. */
  runtimeHealth(options: CallOptions = {}): Promise<RuntimeHealth> {
    return this.#transport.value("getRuntimeHealth", {}, options);
  }

  runtimeStatus(options: CallOptions = {}): Promise<RuntimeStatus> {
    return this.#transport.value("getRuntimeStatus", {}, options);
  }

  /** Checks the machine, and tells how to fix what is wrong. */
  doctor(options: CallOptions = {}): Promise<Doctor> {
    return this.#transport.value("getRuntimeDoctor", {}, options);
  }

  /** Every setting of the program that answers, with secrets masked. */
  async settings(options: CallOptions = {}): Promise<Settings["settings"]> {
    return (await this.#transport.value("getSettings", {}, options)).settings;
  }

  /**
   * Yields what changes in the gateway's lists: a `change` has a record as it is now, a `reset` means that the lists have to be
   * read again, and comes first. It never ends by itself; a lost connection is reopened behind the last event.
   *
   * @param options.topics all of them when absent
   * @param options.after the id of the last event that you have processed, to continue from there within ten minutes
   * @throws TroupeProblem; TroupeUnreachable
   *
   * @example for await (const event of client.system.follow({ topics: ["runs"] })) console.log(event.type);
   */
  follow({
    topics,
    ...options
  }: CallOptions & {
    readonly topics?: readonly ListTopic[];
    readonly after?: string | undefined;
  } = {}): AsyncGenerator<ListEvent, undefined> {
    const request = { query: { topics: topics?.join(",") } };
    return this.#transport.follow(operations.streamLists, request, options, {
      isGapless: false,
      isEndless: true,
      read: (data, id, type) => ({ event_id: id, type, ...(data as object) }) as ListEvent,
    });
  }

  /** @param options.hours how many hours to count ended runs for, up to 24; none when absent */
  summary({ hours, ...options }: CallOptions & { readonly hours?: number } = {}): Promise<SystemSummary> {
    return this.#transport.value("getSystemSummary", { query: { hours } }, options);
  }

  /**
   * Removes what is no longer kept, or with `dry_run` lists what would be removed. It answers when everything is removed,
   * and continues when the call is aborted.
   */
  collectGarbage(body: CollectGarbage = {}, options: CallOptions = {}): Promise<CollectReport> {
    return this.#transport.value("collectGarbage", { body }, options);
  }

  /** What the machines have, what commands may have of it, what is reserved for them, and what is used. */
  resource(options: CallOptions = {}): Promise<Resource> {
    return this.#transport.value("getResource", {}, options);
  }

  /**
   * Limits what commands may have of each machine. Limits that are not given stay; null takes one back.
   *
   * @throws TroupeProblem `validation_failed`
   *
   * @example
   * await client.system.changeLimits({ cpu_percent: 80, memory_bytes: 8 * 1024 ** 3 });
   */
  changeLimits(limits: LimitsInput, options: KeyedOptions = {}): Promise<Resource> {
    return this.#transport.value("changeResourceLimits", { body: { limits } }, options);
  }

  /** The same; limits that are not given are taken back. */
  setLimits(limits: LimitsInput, options: CallOptions = {}): Promise<Resource> {
    return this.#transport.value("setResourceLimits", { body: { limits } }, options);
  }

  /**
   * Removes a volume of the node that answers, with all that is in it.
   *
   * @throws TroupeProblem `volume_not_found`, `volume_in_use`, `conflict` when another node has it
   */
  async removeVolume(name: string, options: CallOptions = {}): Promise<void> {
    await this.#transport.json("removeVolume", { path: { volume: name } }, options);
  }

  /** By name. */
  nodes(query: NodesQuery = {}, options: CallOptions = {}): Pages<Node> {
    return pagesOf(this.#transport, "listNodes", { query }, options);
  }

  node(nodeId: string, options: CallOptions = {}): Promise<Node> {
    return this.#transport.value("getNode", { path: { node_id: nodeId } }, options);
  }

  /** Has a node give its work to others. It returns at once; `nodeDrain` tells how far the node is. */
  drainNode(nodeId: string, body: DrainNode = {}, options: CallOptions = {}): Promise<NodeDrain> {
    return this.#transport.value("drainNode", { path: { node_id: nodeId }, body }, options);
  }

  undrainNode(nodeId: string, options: CallOptions = {}): Promise<NodeDrain> {
    return this.#transport.value("undrainNode", { path: { node_id: nodeId } }, options);
  }

  /** Keeps a node without work, also when its program starts again, or lets it work again. */
  setMaintenance(nodeId: string, body: SetMaintenance, options: CallOptions = {}): Promise<NodeDrain> {
    return this.#transport.value("setNodeMaintenance", { path: { node_id: nodeId }, body }, options);
  }

  nodeDrain(nodeId: string, options: CallOptions = {}): Promise<NodeDrain> {
    return this.#transport.value("getNodeDrain", { path: { node_id: nodeId } }, options);
  }

  /** Compares what a node has with what its jobs say, and with `fix` corrects it. Takes a second and more. */
  reconcileNode(
    nodeId: string,
    body: ReconcileNode = {},
    options: CallOptions = {},
  ): Promise<Reconciliation> {
    return this.#transport.value("reconcileNode", { path: { node_id: nodeId }, body }, options);
  }

  /**
   * Expects a node. Its token is shown once: with an idempotency key, a repeated call that finds the first one's answer gets no
   * join_token.
   */
  addNode(body: AddNode, options: KeyedOptions = {}): Promise<AddedNode> {
    return this.#transport.value("addNode", { body }, options);
  }

  /**
   * Has the program that is asked, whose SVC_HOME is empty, join a cluster as a node that was added. Follow the operation: it
   * goes on while the program starts again.
   */
  joinCluster(body: JoinCluster, options: KeyedOptions = {}): Promise<Operation> {
    return this.#transport.value("joinCluster", { body }, options);
  }

  /** Has a node give its work to others, ends its program and does not let it in again. Follow the operation. */
  removeNode(body: RemoveNode, options: KeyedOptions = {}): Promise<Operation> {
    return this.#transport.value("removeNode", { body }, options);
  }

  /** Has the node that is asked give its work to others, and ends its program. Follow the operation. */
  leaveCluster(body: LeaveCluster = {}, options: KeyedOptions = {}): Promise<Operation> {
    return this.#transport.value("leaveCluster", { body }, options);
  }

  metrics(options: CallOptions = {}): Promise<Metrics> {
    return this.#transport.value("getMetrics", {}, options);
  }
}
