// One program of the simulated world of schedules: the real scheduler, as the program wires it. What is made up: the checks of a
// run, which may refuse it, and that runs are launched.

import type { GatewayRecords, GatewayWrites } from "../../src/launch/records.ts";
import { DomainError } from "../../src/lib/domain-error.ts";
import { ScheduleCounts } from "../../src/observability/metrics/schedule-counts.ts";
import type { Schedule } from "../../src/schedules/records.ts";
import { runIdOf, runIdOfEvent } from "../../src/schedules/rule.ts";
import type { Cause, StartedRun } from "../../src/schedules/run-starts.ts";
import { Scheduler } from "../../src/schedules/scheduler.ts";
import { Schedules, type ScheduleTarget } from "../../src/schedules/schedules.ts";
import { TriggerEvents } from "../../src/schedules/trigger-events.ts";
import { ConfigurationSecrets } from "../../src/security/configuration.ts";
import { SecretKey } from "../../src/security/secret-key.ts";
import { sqlGatewayRecords } from "../../src/store/sql/gateway.ts";
import { job, run } from "../support/gateway-samples.ts";
import type { WorldProgram } from "./programs-world.ts";
import type { ScheduleWorld } from "./schedules.ts";

export const JOB = job(1);
const secrets = new ConfigurationSecrets(new SecretKey(Buffer.alloc(32, 7)));

/** Anything may be given to the runs of the job. */
export const target: ScheduleTarget<GatewayWrites> = {
  blueprintId: null,
  check: async (given) => given,
  settle: async () => JOB.jobId,
  settled: () => {},
};

function runIdFor({ scheduleId }: Schedule, cause: Cause): string | null {
  if (cause.kind === "time") return runIdOf(scheduleId, cause.dueAtMs);
  const last = cause.kind === "events" ? cause.events.at(-1) : undefined;
  return last === undefined ? null : runIdOfEvent(scheduleId, last);
}

const eventIdsOf = (cause: Cause) =>
  cause.kind === "events" ? cause.events.map(({ eventId }) => eventId) : [];

export class SchedulerProgram implements WorldProgram {
  isAlive = true;
  readonly name: string;
  readonly records: GatewayRecords;
  readonly scheduler: Scheduler<GatewayWrites>;
  readonly schedules: Schedules<GatewayWrites>;
  readonly triggerEvents: TriggerEvents<GatewayWrites>;
  ended: (runtimeJobId: string) => void = () => {};

  constructor(world: ScheduleWorld, name: string) {
    this.name = name;
    const clock = world.clockOf(this);
    const stored = sqlGatewayRecords(world.database, clock.soon);
    this.records = {
      ...stored,
      schedule: async (id) => this.#read(world, stored.schedule(id)),
      due: async (nowMs, limit) => this.#read(world, stored.due(nowMs, limit)),
      dueAfter: async (nowMs) => {
        world.mayJump(name);
        return this.#read(world, stored.dueAfter(nowMs));
      },
      openRuns: async (id, limit) => this.#read(world, stored.openRuns(id, limit)),
      events: {
        ...stored.events,
        event: async (id) => this.#read(world, stored.events.event(id)),
        listeners: async (type) => this.#read(world, stored.events.listeners(type)),
        waitingEvents: async (id, limit) => this.#read(world, stored.events.waitingEvents(id, limit)),
      },
      write: async (work) => {
        await world.pause(this, world.random.below(20));
        world.mayFail();
        const written = await stored.write(work);
        world.hasWritten = true;
        await world.mayCrash(this);
        return written;
      },
    };
    const starts = {
      prepare: async (schedule: Schedule, cause: Cause) => {
        const dueAtMs = cause.kind === "time" ? cause.dueAtMs : null;
        world.mayChange(schedule.scheduleId);
        await world.pause(this, world.random.below(50));
        if (world.isFaulty && world.random.chance(0.05)) {
          world.counts.add("start that was refused");
          throw new DomainError("requirements_not_met", "Not now.");
        }
        const id = world.newId();
        const made = run(1, JOB.jobId, {
          runId: runIdFor(schedule, cause) ?? `run_${id}`,
          runtimeJobId: `g-${id}`,
          inputsJson: JSON.stringify(eventIdsOf(cause)),
          trigger: { kind: cause.kind === "events" ? "event" : "schedule", id: schedule.scheduleId },
          traceId: cause.kind === "hand" ? "by hand" : "by rule",
          createdAtMs: world.nowMs,
          parentSpanId: String(world.steadyMs),
        });
        return async (writes: GatewayWrites): Promise<StartedRun> => {
          if (dueAtMs !== null && dueAtMs > world.latestMs)
            world.unexpected(`a run of ${dueAtMs} began before`);
          const { inputs } = (await writes.schedules.schedule(schedule.scheduleId)) ?? schedule;
          if (cause.kind !== "hand" && JSON.stringify(inputs) !== JSON.stringify(schedule.inputs))
            world.unexpected(`a run of ${schedule.scheduleId} has what was given before a change`);
          await writes.insertRun(made);
          return made;
        };
      },
      isStarted: async (writes: GatewayWrites, { scheduleId }: Schedule, dueAtMs: number) =>
        (await writes.run(runIdOf(scheduleId, dueAtMs))) !== null,
      accepted: () => {},
      cancel: (writes: GatewayWrites, runId: string) => {
        world.counts.add("run cancelled by the next one");
        return writes.setDesiredState(runId, "cancelled", world.nowMs);
      },
      cancelled: () => {},
    };
    this.scheduler = new Scheduler<GatewayWrites>({
      records: this.records,
      starts,
      closed: () => null,
      meter: new ScheduleCounts(),
      takeDuty: async (forMs) => world.takeDuty(name, forMs),
      onEnd: (ended) => {
        this.ended = ended;
        return () => {};
      },
      clock,
      log: {
        warn: ({ error }) => world.unexpected(String(error ?? "JournalUnavailable")),
        error: ({ error }) => world.unexpected(String(error)),
      },
    });
    this.triggerEvents = new TriggerEvents({
      records: this.records,
      starts,
      clock,
      newId: () => world.newId(),
    });
    this.schedules = new Schedules({
      records: this.records,
      starts,
      secrets,
      targetOf: async () => target,
      clock,
      newId: () => world.newId(),
    });
  }

  start(): void {
    this.scheduler.start();
  }

  /** Nothing settles for a program that has died. */
  async #read<T>(world: ScheduleWorld, reading: Promise<T>): Promise<T> {
    await world.pause(this, world.random.below(5));
    world.mayFail();
    return reading;
  }
}
