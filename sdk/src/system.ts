// The gateway itself, its runtime, its nodes.

import { type Pages, pagesOf } from "./pages.ts";
import type {
  CollectGarbage,
  CollectReport,
  Doctor,
  Health,
  Metrics,
  Node,
  NodesQuery,
  RuntimeHealth,
  RuntimeStatus,
  SystemSummary,
} from "./records.ts";
import type { CallOptions, Transport } from "./transport.ts";

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

  summary(options: CallOptions = {}): Promise<SystemSummary> {
    return this.#transport.value("getSystemSummary", {}, options);
  }

  /**
   * Removes what is no longer kept, or with `dry_run` lists what would be removed. It answers when everything is removed,
   * and continues when the call is aborted.
   */
  collectGarbage(body: CollectGarbage = {}, options: CallOptions = {}): Promise<CollectReport> {
    return this.#transport.value("collectGarbage", { body }, options);
  }

  /** By name. */
  nodes(query: NodesQuery = {}, options: CallOptions = {}): Pages<Node> {
    return pagesOf(this.#transport, "listNodes", { query }, options);
  }

  node(nodeId: string, options: CallOptions = {}): Promise<Node> {
    return this.#transport.value("getNode", { path: { node_id: nodeId } }, options);
  }

  metrics(options: CallOptions = {}): Promise<Metrics> {
    return this.#transport.value("getMetrics", {}, options);
  }
}
