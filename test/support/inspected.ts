// A program that can be asked what it holds on to, once it has collected its garbage: through its own inspector, since
// what the system shows of a process's memory says little about leaks.

import { readdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { memoryOf } from "./processes.ts";
import type { Program } from "./program.ts";
import { until } from "./until.ts";

/** For `ProgramOptions.env`. */
export const inspectable = { NODE_OPTIONS: "--inspect=127.0.0.1:0" } as const;

export interface Holdings {
  /** Objects and buffers that are in use. */
  readonly heapBytes: number;
  readonly residentBytes: number;
  /** Open files and connections. */
  readonly handles: number;
}

const LOOKS_MIN = 5;
const LOOKS_MAX = 300;
const LOOK_EVERY_MS = 100;

/**
 * What a program holds after a collection, at least: it works in the background, and what it has begun to use since the
 * collection counts too, which under load are megabytes. Looked at again and again, until it is no more than `most`.
 */
export async function holdingsOf(program: Program, most: Partial<Holdings> = {}): Promise<Holdings> {
  const inspector = await openInspector(program);
  const look = async (): Promise<Holdings> => {
    // The second one collects what the first one has only finalized.
    for (let i = 0; i < 2; i++) await inspector.ask("HeapProfiler.collectGarbage");
    const usage = await inspector.ask("Runtime.getHeapUsage");
    const { usedSize = 0, backingStorageSize = 0 } = usage as Readonly<Record<string, number>>;
    return {
      heapBytes: usedSize + backingStorageSize,
      residentBytes: memoryOf(program.pid).nowBytes,
      handles: handlesOf(program),
    };
  };
  try {
    let least = await look();
    for (let looks = 1; looks < LOOKS_MIN || (looks < LOOKS_MAX && isMore(least, most)); looks++) {
      await delay(LOOK_EVERY_MS);
      least = leastOf(least, await look());
    }
    return least;
  } finally {
    inspector.close();
  }
}

const keys = ["heapBytes", "residentBytes", "handles"] as const;

function isMore(held: Holdings, most: Partial<Holdings>): boolean {
  return keys.some((key) => held[key] > (most[key] ?? Number.POSITIVE_INFINITY));
}

function leastOf(one: Holdings, other: Holdings): Holdings {
  const least = (key: keyof Holdings) => Math.min(one[key], other[key]);
  return {
    heapBytes: least("heapBytes"),
    residentBytes: least("residentBytes"),
    handles: least("handles"),
  };
}

/** Open files and connections of a program. */
export function handlesOf({ pid }: Program): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

async function openInspector(program: Program) {
  // The launcher has one too, and announces it first.
  const url = await until("the program has an inspector: start it with `inspectable`", () => {
    const urls = program.output().match(/ws:\/\/\S+(?=\n)/g) ?? [];
    return urls.at(-1) ?? null;
  });
  const socket = new WebSocket(url);
  const opened = Promise.withResolvers<void>();
  socket.onopen = () => opened.resolve();
  socket.onerror = () => opened.reject(new Error(`The inspector at ${url} does not answer.`));
  await opened.promise;
  let seq = 0;
  return {
    ask(method: string): Promise<object> {
      const id = ++seq;
      const { promise, resolve, reject } = Promise.withResolvers<object>();
      socket.onmessage = ({ data }) => {
        const answer = JSON.parse(String(data)) as { id?: number; result?: object; error?: object };
        if (answer.id !== id) return;
        if (answer.result === undefined) reject(new Error(`${method}: ${JSON.stringify(answer.error)}`));
        else resolve(answer.result);
      };
      socket.send(JSON.stringify({ id, method }));
      return promise;
    },
    close: () => socket.close(),
  };
}
