// Wrappers of the engine's ports that count what passes through them.

import type { Journal } from "../../engine/journal.ts";
import type { Slots } from "../../engine/ports.ts";
import type { TaskListener } from "../../engine/task-port.ts";
import type { RuntimeMeter } from "./runtime-meter.ts";

/** Monotonic milliseconds. */
export type Stopwatch = () => number;

/** Counts what is written, and how long it takes. */
export function meteredJournal(journal: Journal, meter: RuntimeMeter, watch: Stopwatch): Journal {
  return {
    async commit(batch) {
      const fromMs = watch();
      try {
        const answer = await journal.commit(batch);
        const unwritten = [...answer.lost, ...answer.unwritable.map(({ jobId }) => jobId)];
        meter.committed(batch, unwritten, (watch() - fromMs) / 1_000);
        return answer;
      } catch (error) {
        meter.commitFailures++;
        throw error;
      }
    },
    claim: (owner, limit) => journal.claim(owner, limit),
    load: (jobId) => journal.load(jobId),
    async failDamaged(jobId, owner, render) {
      const eventSeq = await journal.failDamaged(jobId, owner, render);
      if (eventSeq !== null) meter.runsEnded.failed++;
      return eventSeq;
    },
  };
}

/** Counts how long requests for slots wait: those that are granted immediately have waited 0. */
export function meteredSlots(slots: Slots, meter: RuntimeMeter, watch: Stopwatch): Slots {
  const waitingSinceMs = new Map<string, number>();
  const metered: Slots = {
    onGranted: () => {},
    request(key, pool, ...asked) {
      const grant = slots.request(key, pool, ...asked);
      if (grant.kind === "granted") meter.leaseGranted(pool, 0);
      else if (grant.kind === "queued") waitingSinceMs.set(key, watch());
      return grant;
    },
    release(key) {
      waitingSinceMs.delete(key);
      slots.release(key);
    },
    endOfFormer: (lease) => slots.endOfFormer(lease),
  };
  slots.onGranted = (key, lease) => {
    const sinceMs = waitingSinceMs.get(key);
    waitingSinceMs.delete(key);
    if (sinceMs !== undefined) meter.leaseGranted(lease.pool, watch() - sinceMs);
    metered.onGranted(key, lease);
  };
  return metered;
}

/** Counts how attempts end, as their runner reports it. */
export function meteredListener(listener: TaskListener, meter: RuntimeMeter): TaskListener {
  return {
    taskEvents: (ref, events) => listener.taskEvents(ref, events),
    taskActions: (ref, actions) => listener.taskActions(ref, actions),
    taskEnded(ref, outcome) {
      meter.attemptsEnded[outcome.kind]++;
      listener.taskEnded(ref, outcome);
    },
    backpressure: (ref) => listener.backpressure(ref),
  };
}
