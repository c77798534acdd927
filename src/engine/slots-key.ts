// The name under which an attempt asks for slots; also the only thing `Slots` knows about it.

import type { TaskRef } from "./task-port.ts";

export function slotsKey(ref: TaskRef): string {
  return `${ref.jobId}/${ref.taskSeq}/${ref.attempt}`;
}

export function parseSlotsKey(key: string): TaskRef {
  const [jobId = "", taskSeq, attempt] = key.split("/");
  return { jobId, taskSeq: Number(taskSeq), attempt: Number(attempt) };
}
