// For tests of the gateway's routes for jobs, runs and bundles: the real routes on a socket over src/launch/test-core.

import type { JsonObject } from "../../src/engine/json.ts";
import { IdempotentRequests } from "../../src/http/core/idempotency.ts";
import { Paging } from "../../src/http/core/paging.ts";
import type { ResourceParts } from "../../src/http/gateway/resources.ts";
import * as bundles from "../../src/http/resources/bundles.ts";
import * as jobs from "../../src/http/resources/jobs.ts";
import * as runStarts from "../../src/http/resources/run-starts.ts";
import * as runs from "../../src/http/resources/runs.ts";
import { Waits } from "../../src/http/resources/waits.ts";
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
    bundleBytesMax: BUNDLE_BYTES_MAX,
    nowMs,
  } as unknown as ResourceParts;
  const app = await startApp({}, (api) => {
    for (const { gatewayRoutes } of [jobs, runs, runStarts]) gatewayRoutes(api, services);
    api.register(async (uploads) => bundles.gatewayRoutes(uploads, services));
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
