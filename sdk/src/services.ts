// Services: long-lived processes that open runs offer, found by their names.

import { type Pages, pagesOf } from "./pages.ts";
import type { ResolveQuery, Service, ServicePage, ServicesQuery } from "./records.ts";
import type { CallOptions, Transport } from "./transport.ts";

export class ServicesResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Those that open runs offer right now, by name, whether their checks pass or not. A page names the nodes that do not
   * answer, whose services it lacks.
   */
  list(query: ServicesQuery = {}, options: CallOptions = {}): Pages<Service, ServicePage> {
    return pagesOf(this.#transport, "listServices", { query }, options);
  }

  /** The same, once each of their checks has been made again. */
  check(query: ServicesQuery = {}, options: CallOptions = {}): Promise<ServicePage> {
    return this.#transport.value("checkServices", { query }, options);
  }

  /**
   * The newest of this name whose checks pass.
   *
   * @throws TroupeProblem `service_not_found`; `service_not_passing` after the client's usual retries
   *
   * @example const { public_url } = await client.services.resolve("blueprint-web-ui", { tag: "blueprint,digest" });
   */
  resolve(name: string, query: ResolveQuery = {}, options: CallOptions = {}): Promise<Service> {
    return this.#transport.value("resolveService", { path: { name }, query }, options);
  }
}
