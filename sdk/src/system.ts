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
  async health(options: CallOptions = {}): Promise<Health> {
    return (await this.#transport.json("getHealth", {}, options)).value;
  }

  /** Whether the runtime takes work; one that does not answers too. */
  async runtimeHealth(options: CallOptions = {}): Promise<RuntimeHealth> {
    return (await this.#transport.json("getRuntimeHealth", {}, options)).value;
  }

  async runtimeStatus(options: CallOptions = {}): Promise<RuntimeStatus> {
    return (await this.#transport.json("getRuntimeStatus", {}, options)).value;
  }

  /** Checks the machine, and tells how to fix what is wrong. */
  async doctor(options: CallOptions = {}): Promise<Doctor> {
    return (await this.#transport.json("getRuntimeDoctor", {}, options)).value;
  }

  async summary(options: CallOptions = {}): Promise<SystemSummary> {
    return (await this.#transport.json("getSystemSummary", {}, options)).value;
  }

  /**
   * Removes what is no longer kept, or with `dry_run` lists what would be removed. It answers when everything is removed,
   * and continues when the call is aborted.
   */
  async collectGarbage(body: CollectGarbage = {}, options: CallOptions = {}): Promise<CollectReport> {
    return (await this.#transport.json("collectGarbage", { body }, options)).value;
  }

  nodes(query: NodesQuery = {}, options: CallOptions = {}): Pages<Node> {
    return pagesOf(this.#transport, "listNodes", { query }, options);
  }

  async metrics(options: CallOptions = {}): Promise<Metrics> {
    return (await this.#transport.json("getMetrics", {}, options)).value;
  }
}
