// The thread of model-work.ts: models are read, hashed and looked at here, so that it takes nothing of the runtime's.

import { parentPort, workerData } from "node:worker_threads";
import { type ModelWork, type WorkError, type WorkMessage, worked } from "./work.ts";

const TELL_EVERY_MS = 100;

const port = parentPort!;
const tell = (message: WorkMessage) => port.postMessage(message);
let toldAtMs = 0;

function done(bytes: number): void {
  const now = performance.now();
  if (now - toldAtMs < TELL_EVERY_MS) return;
  toldAtMs = now;
  tell({ kind: "done", bytes });
}

const begins = (totalBytes: number | null, bytesThere: number) =>
  tell({ kind: "begins", totalBytes, bytesThere });

try {
  const result = await worked(workerData as ModelWork, { begins, done });
  if (!("details" in result)) tell({ kind: "done", bytes: result.bytes });
  tell({ kind: "ended", result });
} catch (error) {
  const { name, message, code, isPassing = false, waitMs = null } = error as Partial<WorkError> & Error;
  tell({ kind: "failed", error: { name, message, code, isPassing, waitMs } });
}
