// The client of one gateway.
//
// C1. It runs wherever fetch does, in Node and in browsers, and depends on nothing else.
// C2. Every method takes a `signal`; what it throws is TroupeProblem, TroupeUnreachable or the signal's reason.

import { BlueprintsResource } from "./blueprints.ts";
import { BundlesResource } from "./bundles.ts";
import { JobsResource } from "./jobs.ts";
import { OperationsResource } from "./operations.ts";
import { RunsResource } from "./runs.ts";
import { ServicesResource } from "./services.ts";
import { SystemResource } from "./system.ts";
import { realTiming, type Timing } from "./timing.ts";
import { Transport } from "./transport.ts";

const RETRIES = 4;

export interface TroupeClientOptions {
  /** Where the gateway is, with or without /api/v1; in a page of the gateway itself `location.origin`. */
  readonly baseUrl: string | URL;
  /** The gateway's SVC_API_TOKEN, if it has one. */
  readonly token?: string | undefined;
  /** In place of the global fetch. */
  readonly fetch?: typeof fetch | undefined;
  /** Ends every call of this client. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How many further attempts a call makes while the gateway is away or busy; 4 when absent, which takes up to 4 s. 0:
   * none. Only what can do no harm is tried again.
   */
  readonly retries?: number | undefined;
  /** Time and chance, for tests. */
  readonly timing?: Timing | undefined;
}

/**
 * @example
 * const client = new TroupeClient({ baseUrl: "http://127.0.0.1:54001" });
 * const run = await client.runs.startAndWait(jobId, { inputs: { topic: "bees" } });
 */
export class TroupeClient {
  /** Where the gateway is, ending with /api/v1. */
  readonly baseUrl: string;
  readonly blueprints: BlueprintsResource;
  readonly bundles: BundlesResource;
  readonly jobs: JobsResource;
  readonly operations: OperationsResource;
  readonly runs: RunsResource;
  readonly services: ServicesResource;
  readonly system: SystemResource;

  constructor(options: TroupeClientOptions) {
    this.baseUrl = withPrefix(options.baseUrl);
    const retries = options.retries ?? RETRIES;
    if (!Number.isInteger(retries) || retries < 0)
      throw new TypeError("retries must be 0 or more, a whole number.");
    const transport = new Transport({
      baseUrl: this.baseUrl,
      token: options.token ?? null,
      // The global one must be called as a function of its own, and may be replaced later.
      fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
      signal: options.signal,
      retries,
      timing: options.timing ?? realTiming,
    });
    this.bundles = new BundlesResource(transport);
    this.jobs = new JobsResource(transport);
    this.operations = new OperationsResource(transport);
    this.runs = new RunsResource(transport);
    this.blueprints = new BlueprintsResource(transport, this.runs);
    this.services = new ServicesResource(transport);
    this.system = new SystemResource(transport);
  }
}

/** @throws TypeError when it is no absolute http URL */
function withPrefix(given: string | URL): string {
  const url = new URL(given);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new TypeError(`baseUrl must be an http or https URL, not ${url.href}`);
  }
  const path = url.pathname.replace(/\/+$/, "");
  return `${url.origin}${path}${path.endsWith("/api/v1") ? "" : "/api/v1"}`;
}
