// For tests of the gateway's routes for jobs, runs and bundles: the real routes on a socket over src/launch/test-core.

import type { JsonObject } from "../../src/engine/json.ts";
import { IdempotentRequests } from "../../src/http/core/idempotency.ts";
import { Paging } from "../../src/http/core/paging.ts";
import { Waits } from "../../src/http/core/waits.ts";
import { bundleRoutes } from "../../src/http/gateway/bundles.ts";
import { jobControlRoutes } from "../../src/http/gateway/job-control.ts";
import { jobRoutes } from "../../src/http/gateway/jobs.ts";
import { runBatchRoutes } from "../../src/http/gateway/run-batches.ts";
import { runRoutes } from "../../src/http/gateway/runs.ts";
import type { GatewayServices } from "../../src/http/gateway/services.ts";
import { startApp } from "./api.ts";
import { startCore, type TestCore } from "./core.ts";

export type TestRoutes = Awaited<ReturnType<typeof startRoutes>>;

export interface Sent {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: JsonObject;
}

/** As the core's own bundles have it. */
export const BUNDLE_BYTES_MAX = 1_000_000;

/** @param given a core that was started before, such as one on the files of another */
export async function startRoutes(given?: TestCore) {
  const core = given ?? (await startCore());
  const { clock, feed, records } = core;
  const nowMs = () => clock.nowMs();
  const services = {
    ...core,
    idempotency: new IdempotentRequests({ records, nowMs }),
    paging: new Paging({ key: Buffer.alloc(32, 7), nowMs }),
    waits: new Waits({ feed, clock, stopping: new AbortController().signal }),
    nowMs,
  } as unknown as GatewayServices;
  const app = await startApp({}, (api) => {
    jobRoutes(api, services);
    jobControlRoutes(api, services);
    runRoutes(api, services);
    runBatchRoutes(api, services);
    api.register(async (uploads) => bundleRoutes(uploads, services, BUNDLE_BYTES_MAX));
  });
  return {
    app,
    core,

    /** Sends a request; a body that is no text is sent as JSON. */
    async ask(
      method: string,
      path: string,
      { body, headers = {} }: { readonly body?: unknown; readonly headers?: Record<string, string> } = {},
    ): Promise<Sent> {
      const answer = await fetch(`${app.url}${path}`, {
        method,
        headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await answer.text();
      return {
        status: answer.status,
        headers: answer.headers,
        text,
        body: text === "" ? {} : (JSON.parse(text) as JsonObject),
      };
    },

    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await core[Symbol.asyncDispose]();
    },
  };
}
