// A real HTTP server whose answers each test decides, and clients of it whose pauses take no time.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { TroupeClient } from "../src/client.ts";
import { TroupeRuntime } from "../src/runtime.ts";
import type { Timing } from "../src/timing.ts";
import type { TroupeClientOptions } from "../src/transport.ts";

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
}

/** A server that gives its answers one after another, the last one for ever. */
export async function serving(context: TestContext, ...answers: readonly Answer[]) {
  const requests: Seen[] = [];
  const server = createServer((request, response) => {
    const answer = answers[Math.min(requests.length, answers.length - 1)];
    requests.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers });
    answer?.(request, response);
  });
  // Not after some seconds: a test that is held up between two requests would take it for a connection that is lost.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, requests, ...clientOf(url) };
}

/** What the client waits this long for is silence, not an attempt. */
const SILENCE_MS = 45_000;

/** Clients of both APIs whose pauses are noted and over at once; silence lasts until the test calls `beSilent`. */
export function clientOf(baseUrl: string, options: Partial<TroupeClientOptions> = {}) {
  const pauses: number[] = [];
  let beSilent = () => {};
  const timing: Timing = {
    nowMs: () => Date.parse("2026-11-21T09:30:00Z"),
    random: () => 1,
    async pause(ms, signal) {
      if (ms < SILENCE_MS) pauses.push(ms);
      else {
        await new Promise<void>((resolve) => {
          beSilent = resolve;
          signal?.addEventListener("abort", () => resolve(), { once: true });
        });
      }
    },
  };
  const client = new TroupeClient({ baseUrl, timing, ...options });
  const runtime = new TroupeRuntime({ baseUrl, timing, ...options });
  return { client, runtime, pauses, timing, beSilent: () => beSilent() };
}

export const json =
  (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer =>
  (request, response) => {
    request.resume();
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  };

export const problem =
  (status: number, code: string, headers: Readonly<Record<string, string>> = {}): Answer =>
  (request, response) =>
    json(
      status,
      { type: "about:blank", title: "T", status, code, detail: `about ${code}`, request_id: "req_1" },
      { "content-type": "application/problem+json", ...headers },
    )(request, response);

/** Ends the connection without an answer. */
export const hangUp: Answer = (request) => void request.socket.destroy();

export const stream =
  (text: string, ending: "end" | "cut" | "open" = "end"): Answer =>
  (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text, () => {
      if (ending === "end") response.end();
      if (ending === "cut") response.destroy();
    });
  };

export const event = (id: number, type = "log") => ({
  id,
  run_id: "r",
  timestamp: "2026-11-21T09:30:00.000Z",
  type,
  agent_id: null,
  payload: { text: `é${id}\u2028` },
});

export const frame = (id: number, type = "log") =>
  `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(event(id, type))}\n\n`;
