// A connection that takes whatever bytes it is given, and reads what comes back as answers of HTTP.

import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** How long a broken program can hold up the fuzzer; nothing it answers takes long. */
const ANSWER_LIMIT_MS = 90_000;
const PAUSE_MS = 2;

export interface WireAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

export interface Exchange {
  readonly answers: readonly WireAnswer[];
  /** `late`: neither the answers nor the end of the connection came. */
  readonly end: "answered" | "closed" | "left" | "late";
}

export interface Sending {
  readonly pieces: readonly Buffer[];
  /** Null: everything until the server closes. */
  readonly answers: number | null;
  /** Whether the client goes away without waiting. */
  readonly leaves: boolean;
  /** Whether the request was a HEAD: its answer has no body. */
  readonly isHead: boolean;
}

/** One client: its connection is kept as long as it can be. */
export class Wire {
  readonly #url: URL;
  #socket: Socket | null = null;

  constructor(url: string) {
    this.#url = new URL(url);
  }

  async send(sending: Sending): Promise<Exchange> {
    const { pieces, answers, leaves } = sending;
    const isOneWhole = answers !== null && !leaves;
    // Who cannot be sure where a request ends uses a connection for it alone.
    if (!isOneWhole) this.close();
    const socket = this.#socket ?? (await this.#connect());
    this.#socket = socket;
    const reading = leaves ? null : readAnswers(socket, sending);
    for (const [i, piece] of pieces.entries()) {
      if (i > 0) await delay(PAUSE_MS);
      if (!socket.writable) break;
      socket.write(piece);
    }
    if (reading === null) {
      await new Promise((resolve) => socket.write("", resolve));
      this.close();
      return { answers: [], end: "left" };
    }
    if (!isOneWhole) socket.end();
    const exchange = await reading;
    if (!isOneWhole || exchange.end !== "answered" || !isKept(exchange)) this.close();
    return exchange;
  }

  close(): void {
    const socket = this.#socket;
    this.#socket = null;
    // With a reset where that can be done (a socket that is being ended cannot be reset, and would hold up the end of
    // the process): each other closing keeps a port busy for a minute.
    if (socket?.writableEnded === true) socket.destroy();
    else socket?.resetAndDestroy();
  }

  async #connect(): Promise<Socket> {
    const { hostname, port } = this.#url;
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    socket.on("error", () => {});
    return socket;
  }
}

/** Whether the connection can take another request. */
function isKept({ answers }: Exchange): boolean {
  return answers.every(
    ({ headers }) => headers.get("connection") !== "close" && !isStream(headers.get("content-type")),
  );
}

const isStream = (type: string | undefined) => type?.startsWith("text/event-stream") === true;

function readAnswers(socket: Socket, { answers: wanted, isHead }: Sending): Promise<Exchange> {
  const answers: WireAnswer[] = [];
  let received: Buffer = Buffer.alloc(0);
  const { promise, resolve } = Promise.withResolvers<Exchange["end"]>();
  const timer = setTimeout(() => resolve("late"), ANSWER_LIMIT_MS);
  // Only the first: what is pipelined behind a HEAD are no HEADs.
  const next = () => takeAnswer(received, isHead && answers.length === 0);
  const onData = (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    for (let found = next(); found !== null; found = next()) {
      received = received.subarray(found.sizeBytes);
      if (found.answer.status >= 200) answers.push(found.answer);
      // A live stream need not end: its head is all that is wanted of it.
      if (answers.length === wanted || isStream(found.answer.headers.get("content-type")))
        resolve("answered");
    }
  };
  const onEnd = () => resolve("closed");
  socket.on("data", onData).once("end", onEnd).once("close", onEnd);
  if (socket.destroyed || socket.readableEnded) onEnd();
  return promise
    .then((end) => ({ answers, end }))
    .finally(() => {
      clearTimeout(timer);
      socket.off("data", onData).off("end", onEnd).off("close", onEnd);
    });
}

/** Takes the first answer off the bytes; null when it is not whole yet. */
function takeAnswer(bytes: Buffer, isHead: boolean): { answer: WireAnswer; sizeBytes: number } | null {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) return null;
  const [start = "", ...lines] = bytes.toString("latin1", 0, headEnd).split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(start)?.[1]);
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const from = headEnd + 4;
  const isEmpty =
    isHead || status < 200 || status === 204 || status === 304 || isStream(headers.get("content-type"));
  if (isEmpty) return { answer: { status, headers, body: Buffer.alloc(0) }, sizeBytes: from };
  if (headers.get("transfer-encoding") === "chunked") return takeChunked(bytes, from, { status, headers });
  const length = Number(headers.get("content-length") ?? 0);
  if (bytes.length < from + length) return null;
  return { answer: { status, headers, body: bytes.subarray(from, from + length) }, sizeBytes: from + length };
}

function takeChunked(bytes: Buffer, from: number, head: Omit<WireAnswer, "body">) {
  const parts: Buffer[] = [];
  for (let at = from; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return null;
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    if (Number.isNaN(size)) throw new Error(`No chunk: ${bytes.toString("latin1", at, lineEnd)}`);
    const end = lineEnd + 2 + size;
    if (bytes.length < end + 2) return null;
    if (size === 0) return { answer: { ...head, body: Buffer.concat(parts) }, sizeBytes: end + 2 };
    parts.push(bytes.subarray(lineEnd + 2, end));
    at = end + 2;
  }
}
