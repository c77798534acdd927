// File sensors: an attempt that succeeds once a file is there.

import { stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import type { SensorConfig } from "../../engine/graph.ts";
import type { Clock } from "../../engine/ports.ts";
import type { TaskOutcome, TaskStart } from "../../engine/task-port.ts";
import { noActions } from "../../engine/task-port.ts";
import { joinInside } from "../../lib/paths.ts";
import { logEvent } from "../output/event-stream.ts";
import { type AttemptControl, AttemptFailure, type AttemptReport, interrupted } from "./attempt.ts";
import { failureOfPayload } from "./command-failure.ts";
import type { PayloadOf } from "./paths.ts";

const POLL_MS = 500;

export interface FileSensorOptions {
  readonly clock: Clock;
  readonly payloadOf: PayloadOf;
}

/** Looks for the sensor's file twice a second, until it is there or the attempt is asked to end. */
export async function watchFile(
  task: TaskStart,
  config: SensorConfig,
  control: AttemptControl,
  report: AttemptReport,
  { clock, payloadOf }: FileSensorOptions,
): Promise<TaskOutcome> {
  const path = await placeOf(task, config, payloadOf);
  let warned = false;
  while (control.reason === null) {
    const found = await look(path);
    if (typeof found !== "string") {
      const observation = { path: config.file, size: found.size, modified_at: found.mtime.toISOString() };
      return { kind: "succeeded", actions: noActions, command: null, artifacts: [], observation };
    }
    if (found !== "" && !warned) {
      warned = true;
      const message = `The file "${config.file}" cannot be looked at (${found}); the sensor keeps trying.`;
      report.events([logEvent("warn", "worker", message, task.ref.attempt)]);
    }
    await nextLook(clock, control);
  }
  return interrupted(control.reason);
}

async function placeOf(task: TaskStart, { file }: SensorConfig, payloadOf: PayloadOf): Promise<string> {
  if (file === null) throw new AttemptFailure("sensor.file_invalid", "The sensor names no file.");
  if (isAbsolute(file)) return file;
  const payload = await payloadOf(task).catch((error: unknown) => {
    throw failureOfPayload(error);
  });
  if (payload === null) {
    const message = `The sensor's file "${file}" is relative to the payload, but the job has no bundle.`;
    throw new AttemptFailure("sensor.file_invalid", message);
  }
  const path = joinInside(payload, file);
  if (path !== null) return path;
  throw new AttemptFailure("sensor.file_invalid", `The sensor's file "${file}" leaves the payload folder.`);
}

/** What is at the path: its facts, or an error's code; empty when nothing is there yet. */
async function look(path: string) {
  try {
    return await stat(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? "" : (code ?? String(error));
  }
}

function nextLook(clock: Clock, control: AttemptControl): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(POLL_MS, resolve);
    control.onEnd(() => {
      cancel();
      resolve();
    });
  });
}
