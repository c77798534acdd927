// A check by grpc.health.v1.Health/Check, over cleartext HTTP/2. One call of two tiny messages does not need a gRPC
// library; this is all of the protocol that it takes:
//
//   frame                  = 1 byte "compressed" (0), 4 bytes length (big endian), message
//   HealthCheckRequest     = field 1, text: the service's name; left out for the server as a whole
//   HealthCheckResponse    = field 1, number: 0 unknown, 1 serving, 2 not serving, 3 no such service
//   the trailer grpc-status = 0 when the call itself went well

import { type ClientHttp2Session, connect, constants, type IncomingHttpHeaders } from "node:http2";
import type { CheckResult } from "../instance.ts";
import { authority, type Target } from "./tcp.ts";

const ANSWER_BYTES_MAX = 4 * 1024;
const FRAME_HEAD_BYTES = 5;
const statuses = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"] as const;
const SERVING = 1;

/**
 * @param service the name that the server knows it by; "" for the server as a whole
 * @throws when there is no answer, or the answer is not gRPC
 */
export async function checkGrpc(service: string, target: Target, signal: AbortSignal): Promise<CheckResult> {
  const { body, headers } = await call(service, target, signal);
  const grpcStatus = headers["grpc-status"];
  if (grpcStatus !== "0") {
    return { passed: false, output: `gRPC status ${shownStatus(grpcStatus)}` };
  }
  const status = readStatus(body);
  return { passed: status === SERVING, output: statuses[status] ?? `health status ${status}` };
}

/** A server may send anything here; only digits are worth showing. */
const shownStatus = (status: unknown) =>
  typeof status === "string" && /^\d{1,3}$/.test(status) ? status : "missing";

interface Answer {
  readonly body: Buffer;
  /** Headers and trailers together: an answer without a body has everything in one. */
  readonly headers: IncomingHttpHeaders;
}

function call(service: string, target: Target, signal: AbortSignal): Promise<Answer> {
  return new Promise<Answer>((resolve, reject) => {
    const session = connect(`http://${authority(target)}`, { settings: { enablePush: false } });
    const end = (error: Error) => {
      reject(error);
      session.destroy();
    };
    const onAbort = () => end(new Error("aborted"));
    signal.addEventListener("abort", onAbort, { once: true });
    session.on("error", end);
    session.once("close", () => {
      signal.removeEventListener("abort", onAbort);
      reject(new Error("the server closed the connection"));
    });
    // Only then, so that what is wrong with the connection is told as such.
    session.once("connect", () => {
      ask(session, service)
        .then(resolve, reject)
        .finally(() => session.destroy());
    });
  });
}

function ask(session: ClientHttp2Session, service: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      [constants.HTTP2_HEADER_METHOD]: "POST",
      [constants.HTTP2_HEADER_PATH]: "/grpc.health.v1.Health/Check",
      "content-type": "application/grpc",
      te: "trailers",
    });
    let headers: IncomingHttpHeaders = {};
    const chunks: Buffer[] = [];
    let bytes = 0;
    stream.on("response", (given) => {
      headers = { ...headers, ...given };
      if (given[":status"] !== 200) reject(new Error(`HTTP ${given[":status"]} in place of a gRPC answer`));
    });
    stream.on("trailers", (given) => {
      headers = { ...headers, ...given };
    });
    stream.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > ANSWER_BYTES_MAX) reject(new Error("the answer is too long for a health check"));
    });
    stream.on("error", reject);
    stream.once("end", () => resolve({ body: Buffer.concat(chunks), headers }));
    stream.end(requestFrame(service));
  });
}

export function requestFrame(service: string): Buffer {
  const name = Buffer.from(service);
  // 0x0a: field 1, of a length that follows.
  const message = name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a]), varint(name.length), name]);
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** @throws when it is no HealthCheckResponse in one frame */
export function readStatus(frame: Buffer): number {
  const message = frame.subarray(FRAME_HEAD_BYTES);
  if (frame.length < FRAME_HEAD_BYTES || frame[0] !== 0 || frame.readUInt32BE(1) !== message.length) {
    throw new Error("the answer is no health check response");
  }
  let status = 0;
  let at = 0;
  const next = (): number => {
    let value = 0;
    // Seven bits a byte, the lowest first; five bytes hold every number that may stand here.
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = message[at++];
      if (byte === undefined) break;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new Error("the answer is no health check response");
  };
  while (at < message.length) {
    const tag = next();
    const value = next();
    if (tag === 8)
      status = value; // Field 1, a number.
    else if (tag % 8 === 2)
      at += value; // Of another field: as many bytes as it says.
    else if (tag % 8 !== 0) throw new Error("the answer is no health check response");
  }
  return status;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}
