// Starts runs for events that wait: for the end of a batch or of a burst, for the run before, or for a node that starts runs.
//
// - A run is prepared for certain events and started for exactly them: they are still the oldest that wait, and the schedule's
//   definition is the same. Events that come meanwhile wait for the next run.

import type { EventRecords, TriggerEvent } from "./event-records.ts";
import {
  bytesOf,
  dueStep,
  type EventSchedule,
  isOfEvents,
  portionOf,
  skippedFor,
  startedFor,
} from "./event-step.ts";
import type { Schedule, ScheduleRecords } from "./records.ts";
import {
  preparedOrRefused,
  type RunStarts,
  type SchedulerWrites,
  type Taken,
  type Written,
  writeStart,
} from "./run-starts.ts";
import { HAS_NOT_ENDED } from "./step.ts";

export interface EventQueueParts<Writes> {
  readonly records: Pick<ScheduleRecords, "openRuns"> & {
    readonly events: Pick<EventRecords, "waitingEvents">;
    write<T>(work: (writes: Writes) => Promise<T>): Promise<T>;
  };
  readonly starts: RunStarts<Writes>;
}

export class EventQueue<Writes extends SchedulerWrites> {
  readonly #parts: EventQueueParts<Writes>;

  constructor(parts: EventQueueParts<Writes>) {
    this.#parts = parts;
  }

  /** Does what is due for the waiting events of a schedule. */
  async take(schedule: EventSchedule, nowMs: number): Promise<Taken> {
    const { records, starts } = this.#parts;
    const { scheduleId } = schedule;
    const hasOpen = (await records.openRuns(scheduleId, 1)).length > 0;
    const likely = dueStep(schedule, nowMs, hasOpen);
    if (likely === null) return "nothing";
    const events =
      likely.kind === "changes" ? [] : await records.events.waitingEvents(scheduleId, portionOf(schedule));
    const insert =
      likely.kind === "starts" && events.length > 0
        ? await preparedOrRefused(starts, schedule, { kind: "events", events })
        : null;
    return records.write(async (writes) => {
      const now = await writes.schedules.schedule(scheduleId);
      if (now === null || now.revision !== schedule.revision || !isOfEvents(now)) return "changed";
      const stillOpen = (await writes.schedules.openRuns(scheduleId, 1)).length > 0;
      const step = dueStep(now, nowMs, stillOpen);
      if (step?.kind !== likely.kind) return "changed";
      if (step.kind === "changes") {
        await writes.schedules.save(step.next);
        return withoutRun(step.next, null);
      }
      const oldest = await writes.events.waitingSeqs(scheduleId, Math.max(1, events.length));
      if (oldest.length === 0) throw new Error(`Schedule ${scheduleId} counts events that do not wait.`);
      if (events.length === 0 || events.some(({ seq }, i) => seq !== oldest[i])) return "changed";
      const { throughSeq, ...taken } = takenOf(events);
      if (insert === null || step.kind === "skips") {
        const skipped = skippedFor(now, taken, nowMs);
        await writes.schedules.save(skipped);
        await writes.events.settleWaiting(scheduleId, throughSeq, { runId: null, reason: HAS_NOT_ENDED });
        return withoutRun(skipped, "skipped");
      }
      return writeStart(writes, starts, { ...step, insert, next: startedFor(now, taken, nowMs), throughSeq });
    });
  }
}

const withoutRun = (schedule: Schedule, outcome: "skipped" | null): Written => ({
  schedule,
  run: null,
  outcome,
  hasCancelled: false,
});

function takenOf(events: readonly TriggerEvent[]) {
  const last = events.at(-1);
  return {
    count: events.length,
    bytes: events.reduce((bytes, { payloadJson }) => bytes + bytesOf(payloadJson), 0),
    receivedAtMs: last?.receivedAtMs ?? 0,
    throughSeq: last?.seq ?? 0,
  };
}
