// Server-sent events from a gapless history: any number of readers, each at its own pace.
//
// S1. An event's id is its sequence number; a reader that comes back with Last-Event-ID gets exactly what follows.
// S2. A reader is fed from the live feed while it keeps up, and from the store whenever it does not: a slow one
//     costs no memory and slows nobody.
// S3. The stream ends after the terminal event.

import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { terminalEventTypes } from "../../engine/event.ts";
import type { EventFeed } from "../../runs/feed.ts";
import type { EventPage } from "../../runs/job-records.ts";

const HEARTBEAT_MS = 15_000;
/** A reader that takes nothing for this long is cut off; it may come back with its id. */
const STALLED_MS = 60_000;
const LIVE_PAGES_MAX = 64;

export interface EventSource {
  readonly feed: EventFeed;
  readonly jobId: string;
  /** Committed events behind `afterSeq`; empty when there are none yet. */
  read(afterSeq: number): Promise<EventPage>;
  /** Whether the job is still there. */
  exists(): Promise<boolean>;
  /** How an event's line looks to this stream's readers. */
  render(seq: number, line: string): string;
}

/**
 * Sends events behind `afterSeq` until the terminal one, or until the reader is gone.
 *
 * @param stopping aborted when the server shuts down
 */
export async function streamEvents(
  response: ServerResponse,
  source: EventSource,
  afterSeq: number,
  stopping: AbortSignal,
): Promise<void> {
  const reader = new Reader(response, source, afterSeq, stopping);
  try {
    await reader.run();
  } finally {
    reader.close();
  }
}

/** The type of an event, read from its line without parsing it. */
export function eventType(line: string): string {
  const from = line.indexOf('"type":"') + 8;
  return line.slice(from, line.indexOf('"', from));
}

class Reader {
  readonly #response: ServerResponse;
  readonly #source: EventSource;
  readonly #unsubscribe: () => void;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #gone = new AbortController();
  #live: EventPage[] = [];
  #wake: (() => void) | null = null;
  #seq: number;

  constructor(response: ServerResponse, source: EventSource, afterSeq: number, stopping: AbortSignal) {
    this.#response = response;
    this.#source = source;
    this.#seq = afterSeq;
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      "x-content-type-options": "nosniff",
    });
    response.write("retry: 1000\n\n");
    this.#unsubscribe = source.feed.subscribe(source.jobId, (page) => this.#published(page));
    this.#heartbeat = setInterval(() => {
      if (!response.writableNeedDrain) response.write(": still here\n\n");
    }, HEARTBEAT_MS);
    const leave = () => {
      this.#gone.abort();
      this.#wakeUp();
    };
    response.once("close", leave);
    stopping.addEventListener("abort", leave, { once: true });
    // Who left before this reader was made does not leave again.
    if (response.closed || response.destroyed || stopping.aborted) leave();
    this.#gone.signal.addEventListener("abort", () => stopping.removeEventListener("abort", leave));
  }

  async run(): Promise<void> {
    while (!this.#gone.signal.aborted) {
      const page = this.#nextLive() ?? (await this.#source.read(this.#seq));
      if (page.lines.length === 0) {
        // A job that was cleaned up has no terminal event left to wait for.
        if (!(await this.#source.exists())) return;
        await this.#somethingNew();
      } else if (await this.#send(page)) return;
    }
  }

  close(): void {
    this.#unsubscribe();
    clearInterval(this.#heartbeat);
    this.#gone.abort();
    if (!this.#response.writableEnded) this.#response.end();
  }

  #published(page: EventPage): void {
    // Behind by this much, the reader catches up from the store instead.
    if (this.#live.length >= LIVE_PAGES_MAX) this.#live = [];
    this.#live.push(page);
    this.#wakeUp();
  }

  /** The live page that continues what was sent; older ones are dropped, a gap sends the reader to the store. */
  #nextLive(): EventPage | null {
    for (let page = this.#live.shift(); page !== undefined; page = this.#live.shift()) {
      if (page.firstSeq > this.#seq + 1) {
        this.#live = [];
        return null;
      }
      const lines = page.lines.slice(this.#seq + 1 - page.firstSeq);
      if (lines.length > 0) return { firstSeq: this.#seq + 1, lines };
    }
    return null;
  }

  /** @returns true when the terminal event was sent */
  async #send(page: EventPage): Promise<boolean> {
    let text = "";
    let isOver = false;
    for (const line of page.lines) {
      this.#seq++;
      const type = eventType(line);
      text += `id: ${this.#seq}\nevent: ${type}\ndata: ${this.#source.render(this.#seq, line)}\n\n`;
      isOver = terminalEventTypes.has(type);
    }
    if (!this.#response.write(text)) await this.#drained();
    return isOver;
  }

  async #drained(): Promise<void> {
    const signal = this.#gone.signal;
    const drained = new Promise<"drained">((resolve) =>
      this.#response.once("drain", () => resolve("drained")),
    );
    const leaving = new AbortController();
    const gone = new Promise<"gone">((resolve) => {
      if (signal.aborted) resolve("gone");
      signal.addEventListener("abort", () => resolve("gone"), { once: true, signal: leaving.signal });
    });
    const timer = new AbortController();
    const stalled = delay(STALLED_MS, "stalled" as const, { signal: timer.signal, ref: false }).catch(
      () => "drained" as const,
    );
    const outcome = await Promise.race([drained, gone, stalled]);
    timer.abort();
    leaving.abort();
    if (outcome === "stalled") this.#response.destroy();
  }

  /** Waits until something is published or the reader is gone. */
  async #somethingNew(): Promise<void> {
    if (this.#live.length > 0 || this.#gone.signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  #wakeUp(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
