// Loads a module and calls its handle(): in a thread, for one message after another, or in a process of its own in a sandbox,
// for one. Plain JavaScript, because it starts with every message of such a process.
//
// - What handle() returns leaves as JSON text, so that nothing but JSON can come out.
// - The module can change all that is here: what comes out may be anything, and counts for what the module has said.

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { isMainThread, MessageChannel, parentPort, workerData } from "node:worker_threads";

/** @import { HostReply } from "./module-reply.ts" */

const STACK_LINES_MAX = 6;

/** @param {unknown} error */
function describe(error) {
  if (!(error instanceof Error)) return String(error);
  return (error.stack ?? `${error.name}: ${error.message}`).split("\n").slice(0, STACK_LINES_MAX).join("\n");
}

/**
 * @param {string} path
 * @returns {Promise<((message: unknown, context: unknown) => unknown) | string>} a text says why there is none
 */
async function load(path) {
  try {
    const { handle } = await import(pathToFileURL(path).href);
    return typeof handle === "function" ? handle : "It exports no function handle.";
  } catch (error) {
    return describe(error);
  }
}

/**
 * @param {Awaited<ReturnType<typeof load>>} handle
 * @param {{ message: unknown, context: unknown }} task
 * @returns {Promise<HostReply>}
 */
async function answer(handle, { message, context }) {
  if (typeof handle === "string") return { kind: "load_failed", text: handle };
  let returned;
  try {
    returned = await handle(message, context);
  } catch (error) {
    return { kind: "threw", text: describe(error) };
  }
  try {
    return { kind: "returned", text: JSON.stringify(returned) ?? "null" };
  } catch (error) {
    return { kind: "unserialisable", text: describe(error) };
  }
}

/** Waits until the runtime has read what the module printed: it may come later than the reply otherwise. */
async function flushed() {
  const streams = [process.stdout, process.stderr].filter((stream) => stream.writableLength > 0);
  await Promise.all(streams.map((stream) => new Promise((resolve) => stream.write("", resolve))));
}

/** @param {string} path */
function serveThread(path) {
  const loaded = load(path);
  parentPort?.on("message", async (task) => {
    const reply = await answer(await loaded, task);
    await flushed();
    parentPort?.postMessage(reply);
  });
}

/** @param {readonly string[]} words */
async function runProcess([path = "", messageFile = "", contextFile = "", replyFile = ""]) {
  const { exit } = process;
  // A thread goes on while a promise is not settled, so this does, too.
  new MessageChannel().port1.on("message", () => {});
  /** @param {HostReply} reply */
  const end = ({ kind, text }) => {
    writeFileSync(replyFile, `${kind}\n${text}`);
    exit(0);
  };
  process.on("uncaughtException", (error) => {
    if (process.listenerCount("uncaughtException") > 1) return;
    end({
      kind: "crashed",
      text: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    });
  });
  /** @param {string} file */
  const read = (file) => JSON.parse(readFileSync(file, "utf8"));
  const task = { message: read(messageFile), context: read(contextFile) };
  end(await answer(await load(path), task));
}

if (isMainThread) await runProcess(process.argv.splice(2));
else serveThread(workerData.path);
