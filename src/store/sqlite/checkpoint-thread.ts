// The thread of checkpoints.ts: what it waits for the disk keeps nobody else.

import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";

export type CheckpointStep = "copy" | "restart" | "end";

/** How a step ended; null when all went well. */
export type CheckpointAnswer = string | null;

/** Readers that end soon are waited for; while others last, the log grows. */
const BUSY_TIMEOUT_MS = 20;

const open = () => new DatabaseSync(workerData as string, { timeout: BUSY_TIMEOUT_MS });
const connection = open();
connection.exec("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0");
/** While it reads, nobody begins the log again, which syncs its header: all may be copied before this thread's turn. */
const reader = open();
const version = connection.prepare("PRAGMA user_version");

function copy(): void {
  reader.exec("BEGIN");
  reader.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get();
  connection.prepare("PRAGMA wal_checkpoint(PASSIVE)").get();
}

/** Copies what was written since, and begins the log again with a transaction that changes nothing. */
function restart(): void {
  if (reader.isTransaction) reader.exec("COMMIT");
  const row = connection.prepare("PRAGMA wal_checkpoint(RESTART)").get();
  if (row?.busy === 0) connection.exec(`PRAGMA user_version = ${version.get()?.user_version}`);
}

function answerOf(step: () => void): CheckpointAnswer {
  try {
    step();
    return null;
  } catch (error) {
    if (reader.isTransaction) reader.exec("ROLLBACK");
    return (error as Error).message;
  }
}

parentPort!.on("message", (step: CheckpointStep) => {
  switch (step) {
    case "copy":
      parentPort!.postMessage(answerOf(copy));
      return;
    case "restart":
      parentPort!.postMessage(answerOf(restart));
      return;
    case "end":
      reader.close();
      connection.close();
      parentPort!.close();
      return;
    default:
      step satisfies never;
  }
});
