// The inside of a worker thread: loads one module and calls its handle() for one task after another.
//
// What handle() returns leaves the thread as JSON text, so that nothing but JSON can come out.

import { pathToFileURL } from "node:url";
import { parentPort, workerData } from "node:worker_threads";

/** What a thread gets for one task, and what it answers. */
export interface ThreadTask {
  readonly message: unknown;
  readonly context: unknown;
}
export type ThreadReply =
  | { readonly kind: "returned"; readonly json: string }
  | { readonly kind: "unserialisable"; readonly reason: string }
  | { readonly kind: "threw"; readonly reason: string }
  | { readonly kind: "load_failed"; readonly reason: string };

type Handle = (message: unknown, context: unknown) => unknown;

const STACK_LINES_MAX = 6;

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return (error.stack ?? `${error.name}: ${error.message}`).split("\n").slice(0, STACK_LINES_MAX).join("\n");
}

async function load(path: string): Promise<Handle | string> {
  try {
    const { handle } = (await import(pathToFileURL(path).href)) as { handle?: unknown };
    return typeof handle === "function" ? (handle as Handle) : "It exports no function handle.";
  } catch (error) {
    return describe(error);
  }
}

const loaded = load((workerData as { path: string }).path);

/** Waits until the runtime has read what the module printed: it may come later than the reply otherwise. */
async function flushed(): Promise<void> {
  const streams = [process.stdout, process.stderr].filter((stream) => stream.writableLength > 0);
  await Promise.all(
    streams.map((stream) => new Promise<void>((resolve) => stream.write("", () => resolve()))),
  );
}

async function answer({ message, context }: ThreadTask): Promise<ThreadReply> {
  const handle = await loaded;
  if (typeof handle === "string") return { kind: "load_failed", reason: handle };
  let returned: unknown;
  try {
    returned = await handle(message, context);
  } catch (error) {
    return { kind: "threw", reason: describe(error) };
  }
  try {
    return { kind: "returned", json: JSON.stringify(returned) ?? "null" };
  } catch (error) {
    return { kind: "unserialisable", reason: describe(error) };
  }
}

parentPort?.on("message", async (task: ThreadTask) => {
  const reply = await answer(task);
  await flushed();
  parentPort?.postMessage(reply);
});
