// Makes the log of an ended run long, in the store of a program that does not run, as days of output would.

import { DatabaseSync } from "node:sqlite";
import { renderEvent } from "../src/engine/event.ts";
import { databaseFile } from "../src/store/home.ts";

/** One line in so many is an error. */
export const ERROR_EVERY = 10_000;
/** What a worker that prints fast makes of a batch, about (src/store/sqlite/journal.ts). */
const SEGMENT_CHARS = 256 * 1024;

/**
 * Puts `count` lines before the last event of the newest job.
 *
 * @param isSparse one line a batch, as of a worker that prints now and then; else as many as a batch holds
 * @returns when the last of them was logged
 */
export function seedLog(home: string, count: number, isSparse: boolean): number {
  const database = new DatabaseSync(databaseFile(home));
  const { job_id: jobId } = database.prepare("SELECT job_id FROM jobs ORDER BY submitted_at DESC").get() as {
    job_id: string;
  };
  const segments = database
    .prepare("SELECT lines FROM events WHERE job_id = ? ORDER BY first_seq")
    .all(jobId);
  const history = segments.flatMap(({ lines }) => String(lines).split("\n"));
  const insert = database.prepare(
    "INSERT INTO events (job_id, first_seq, event_count, lines) VALUES (?, ?, ?, ?)",
  );
  let seq = 1;
  const write = (lines: readonly string[]) => {
    insert.run(jobId, seq, lines.length, lines.join("\n"));
    seq += lines.length;
  };
  const startMs = Date.now() - 10 * count;
  let waiting: string[] = [];
  let chars = 0;
  database.exec("BEGIN");
  database.prepare("DELETE FROM events WHERE job_id = ?").run(jobId);
  write(history.slice(0, -1));
  for (let i = 1; i <= count; i++) {
    const line = logLine(startMs + 10 * i, i);
    waiting.push(line);
    chars += line.length;
    if (!isSparse && chars < SEGMENT_CHARS && i < count) continue;
    write(waiting);
    waiting = [];
    chars = 0;
  }
  write(history.slice(-1));
  database.prepare("UPDATE jobs SET event_seq = ? WHERE job_id = ?").run(seq - 1, jobId);
  database.exec("COMMIT");
  database.close();
  return startMs + 10 * count;
}

function logLine(nowMs: number, i: number): string {
  const isError = i % ERROR_EVERY === 0;
  const message = `${isError ? "no answer" : "request handled"} path=/api/v1/things/${i} status=${isError ? 503 : 200} bytes=18211`;
  const payload = { level: isError ? "error" : "info", stream: "stdout", message, attempt: 1 };
  return renderEvent({ nowMs, type: "log", agentId: "out" }, payload);
}
