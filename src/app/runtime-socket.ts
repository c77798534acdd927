// The runtime API's socket: a file in the home that only its user may open, instead of a port that every user reaches.

import { join } from "node:path";
import { Readable } from "node:stream";
import { request } from "../lib/node-http.ts";

/** What fits into a socket's address on all systems, without the NUL at its end. */
export const SOCKET_PATH_BYTES_MAX = 103;

export const runtimeSocket = (home: string): string => join(home, "runtime.sock");

/** Statuses whose answers have no body; a Response takes none with them. */
const bodiless: ReadonlySet<number> = new Set([204, 304]);

/** A `fetch` that connects to a socket, whatever host the URL names. Bodies are texts. */
export function fetchThrough(socketPath: string): typeof fetch {
  return (input, { method = "GET", headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const { pathname, search } = new URL(String(input));
      const sent = request({
        socketPath,
        path: pathname + search,
        method,
        headers: Object.fromEntries(new Headers(headers)),
        ...(signal != null && { signal }),
      });
      sent.once("response", (answer) => {
        const status = answer.statusCode ?? 0;
        const given = Object.entries(answer.headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        );
        if (bodiless.has(status)) answer.resume();
        const content = bodiless.has(status) ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
        resolve(new Response(content, { status, headers: given }));
      });
      // As the global fetch does: the reason is the cause.
      sent.once("error", (cause) => reject(new TypeError("fetch failed", { cause })));
      sent.end(typeof body === "string" ? body : undefined);
    });
}
