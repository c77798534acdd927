// A program that can be asked what it holds on to, once it has collected its garbage: through its own inspector, since
// what the system shows of a process's memory says little about leaks.

import { readdirSync } from "node:fs";
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

/** What a program holds after a collection. Its handles are given time to be closed: `handlesMax` must come true. */
export async function holdingsOf(program: Program, handlesMax = Number.POSITIVE_INFINITY): Promise<Holdings> {
  const handles = await until(`no more than ${handlesMax} handles are open`, () => {
    const open = handlesOf(program);
    return open <= handlesMax ? open : null;
  });
  const inspector = await openInspector(program);
  try {
    // The second one collects what the first one has only finalized.
    for (let i = 0; i < 2; i++) await inspector.ask("HeapProfiler.collectGarbage");
    const usage = await inspector.ask("Runtime.getHeapUsage");
    const { usedSize = 0, backingStorageSize = 0 } = usage as Readonly<Record<string, number>>;
    return {
      heapBytes: usedSize + backingStorageSize,
      residentBytes: memoryOf(program.pid).nowBytes,
      handles,
    };
  } finally {
    inspector.close();
  }
}

/** Open files and connections of a program. */
export function handlesOf({ pid }: Program): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

async function openInspector(program: Program) {
  // The launcher has one too, and announces it first.
  const url = program
    .output()
    .match(/ws:\/\/\S+/g)
    ?.at(-1);
  if (url === undefined) throw new Error("The program has no inspector: start it with `inspectable`.");
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
