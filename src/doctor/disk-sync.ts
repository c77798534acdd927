// How fast the disk of a folder makes writes durable, measured without holding the event loop.

import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Finding, SCRATCH } from "./machine.ts";

const WRITES = 9;
const SYNC_WARN_MS = 20;

/** Times synced writes into a file of its own, which is removed afterwards. */
export async function checkDiskSync(folder: string): Promise<Finding> {
  const path = join(folder, `${SCRATCH}sync-${process.pid}`);
  const file = await open(path, "w", 0o600);
  try {
    const times: number[] = [];
    for (let i = 0; i < WRITES; i++) {
      const fromMs = performance.now();
      await file.write("x".repeat(512));
      await file.datasync();
      times.push(performance.now() - fromMs);
    }
    times.sort((a, b) => a - b);
    return finding(times[Math.floor(WRITES / 2)] ?? 0);
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
}

function finding(medianMs: number): Finding {
  const text = `a synced write takes ${medianMs.toFixed(2)} ms`;
  if (medianMs < SYNC_WARN_MS) return { name: "disk sync", state: "ok", text };
  const mend = "The disk syncs slowly; a local SSD makes every job faster.";
  return { name: "disk sync", state: "warn", text, mend };
}
