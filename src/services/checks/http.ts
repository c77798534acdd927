// A check by HTTP: one request, judged by the response's status and, if asked for, a text in its body. Redirects are not
// followed. Nothing of the body is shown.

import type { IncomingMessage } from "node:http";
import type { ServiceCheck } from "../../engine/service.ts";
import { request } from "../../lib/node-http.ts";
import type { CheckResult } from "../instance.ts";
import type { Target } from "./tcp.ts";

/** The user agent of all checks: this program itself accepts no changes from it. */
export const CHECK_AGENT = "troupe-check";
const BODY_BYTES_MAX = 64 * 1024;
const HEAD_BYTES_MAX = 16 * 1024;

type HttpCheck = Extract<ServiceCheck, { kind: "http" }>;

/** @throws when there is no answer */
export async function checkHttp(
  { method, path, expectedStatus, contains }: HttpCheck,
  { host, port }: Target,
  signal: AbortSignal,
): Promise<CheckResult> {
  const response = await answer({ host, port, method, path, signal });
  try {
    const status = response.statusCode ?? 0;
    const isExpected = expectedStatus === null ? status >= 200 && status <= 299 : status === expectedStatus;
    if (!isExpected) {
      return { passed: false, output: `HTTP ${status}, expected ${expectedStatus ?? "200 to 299"}` };
    }
    if (contains === null) return { passed: true, output: `HTTP ${status}` };
    const passed = await bodyHas(response, contains);
    return { passed, output: `HTTP ${status}, the text is ${passed ? "there" : "not in the body"}` };
  } finally {
    response.destroy();
  }
}

interface Asked {
  readonly host: string;
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly signal: AbortSignal;
}

/** On a new connection, so that a service that accepts none fails the check. */
function answer(asked: Asked): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { "user-agent": CHECK_AGENT, accept: "*/*", connection: "close" };
    const sent = request({ ...asked, headers, agent: false, maxHeaderSize: HEAD_BYTES_MAX });
    sent.once("response", resolve);
    // Stays for as long as the request: destroying the response may report an error as well.
    sent.on("error", reject);
    // Such as behind "101 Switching Protocols", which is neither an answer nor an error.
    sent.once("close", () => reject(new Error("the connection was closed without an answer")));
    sent.end();
  });
}

async function bodyHas(response: IncomingMessage, text: string): Promise<boolean> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= BODY_BYTES_MAX) break;
  }
  return Buffer.concat(chunks).subarray(0, BODY_BYTES_MAX).includes(text);
}
