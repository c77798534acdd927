// Schedules as their owners see them: made, changed, paused, dispatched by hand, and removed.
//
// - What a schedule's runs are given is checked when it is made or changed, as if a run began then.
// - A change names the revision it was made for; it lands on that revision or not at all.

import { mergePatch } from "../bundles/merge.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import { DomainError, type DomainErrorEntry } from "../lib/domain-error.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import { isOfEvents, timedEvents } from "./event-step.ts";
import type { Rule, Schedule, ScheduleRecords, ScheduleSettings } from "./records.ts";
import type { RunStarts, SchedulerWrites, StartedRun } from "./run-starts.ts";
import { changed, timed } from "./step.ts";
import { templateProblems } from "./templates.ts";

/** Schedules that react to events of one type: all of them are looked at for each event. */
const LISTENERS_MAX = 1_000;

/** What a run of the job is given; checked, its secrets are encrypted. */
export type Given = Pick<ScheduleSettings, "inputs" | "configOverrides">;

/** Whose runs are started. */
export interface ScheduleTarget<Writes> {
  readonly blueprintId: string | null;
  /** @throws DomainError when no run of the job could be given this */
  check(given: Given): Promise<Given>;
  /** In the schedule's transaction: makes the job if there is none. @returns its id; null when it is gone */
  settle(writes: Writes): Promise<string | null>;
  /** To be called after its commit. */
  settled(): void;
}

export interface SchedulesParts<Writes extends SchedulerWrites> {
  readonly records: ScheduleRecords & { write<T>(work: (writes: Writes) => Promise<T>): Promise<T> };
  readonly starts: Pick<RunStarts<Writes>, "prepare">;
  readonly secrets: ConfigurationSecrets;
  /** What a schedule's runs are checked against. */
  readonly targetOf: (jobId: string) => Promise<ScheduleTarget<Writes>>;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** What is still to be done of a checked request, in a transaction; `Scheduler.changed` is to be called after its commit. */
export type InsertSchedule<Writes> = (writes: Writes) => Promise<Schedule>;

export class Schedules<Writes extends SchedulerWrites> {
  readonly #parts: SchedulesParts<Writes>;

  constructor(parts: SchedulesParts<Writes>) {
    this.#parts = parts;
  }

  /**
   * Checks a request for a schedule; writes nothing.
   *
   * @throws DomainError `validation_failed`, and what the target's check throws
   */
  async prepareCreate(
    target: ScheduleTarget<Writes>,
    settings: ScheduleSettings,
  ): Promise<InsertSchedule<Writes>> {
    const { clock, newId } = this.#parts;
    const given = await checked(target, settings, settings.rule);
    const nowMs = clock.nowMs();
    const schedule = timedFrom(
      {
        ...settings,
        ...given,
        scheduleId: `schedule_${newId()}`,
        // Known in the transaction.
        jobId: "",
        blueprintId: target.blueprintId,
        status: "active",
        statusReason: null,
        dueAtMs: null,
        nextRunAtMs: null,
        queuedDueAtMs: null,
        waitingEvents: 0,
        waitingBytes: 0,
        throttledUntilMs: null,
        lastDispatch: null,
        failuresInARow: 0,
        dispatched: 0,
        skipped: 0,
        missed: 0,
        failed: 0,
        revision: 1,
        version: 1,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      },
      nowMs,
    );
    if (schedule.status === "completed") throw neverDue();
    return async (writes) => {
      const jobId = await target.settle(writes);
      if (jobId === null)
        throw new DomainError("job_not_found", "The job was deleted meanwhile. List the jobs.");
      await refuseTooMany(writes, settings.rule);
      const inserted = { ...schedule, jobId };
      await writes.schedules.insert(inserted);
      return inserted;
    };
  }

  /** @throws DomainError `schedule_not_found` */
  async find(scheduleId: string): Promise<Schedule> {
    return found(await this.#parts.records.schedule(scheduleId), scheduleId);
  }

  /**
   * Changes what a schedule says. inputs and configOverrides are JSON merge patches (RFC 7396) on what is shown, in which
   * `"********"` keeps a secret that is stored.
   *
   * @param before as the caller saw it
   * @throws DomainError `validation_failed`, `precondition_failed`, `schedule_not_found`
   */
  async update(before: Schedule, patch: Partial<ScheduleSettings>): Promise<Schedule> {
    const settings = { ...patch, ...(await this.#patched(before, patch)) };
    const { rule } = patch;
    return this.#parts.records.write(async (writes) => {
      if (rule !== undefined && typeOf(rule) !== typeOf(before.rule)) await refuseTooMany(writes, rule);
      return this.#changeIn(writes, before.scheduleId, (now) => {
        if (now.revision !== before.revision) throw changedMeanwhile(now);
        return this.#updated(now, settings);
      });
    });
  }

  #updated(now: Schedule, settings: Partial<ScheduleSettings>): Schedule {
    const { rule, untilMs, maxRuns } = settings;
    const next: Schedule = { ...now, ...settings, revision: now.revision + 1 };
    const isTimed = rule !== undefined || untilMs !== undefined || maxRuns !== undefined;
    if (!isTimed || next.status === "failed") return next;
    const isOver = next.maxRuns !== null && next.dispatched >= next.maxRuns;
    const revived: Schedule = { ...next, status: next.status === "paused" ? "paused" : "active" };
    const again = isOver ? revived : timedFrom(revived, this.#parts.clock.nowMs());
    if (isOver || again.status === "completed") throw neverDue();
    return again;
  }

  async #patched(before: Schedule, patch: Partial<ScheduleSettings>): Promise<Partial<Given>> {
    if (patch.inputs === undefined && patch.configOverrides === undefined) return {};
    const target = await this.#parts.targetOf(before.jobId);
    const given = {
      inputs: await this.#merged(before.inputs, patch.inputs, "/inputs"),
      configOverrides:
        patch.configOverrides === null ||
        (patch.configOverrides === undefined && before.configOverrides === null)
          ? null
          : await this.#merged(before.configOverrides ?? {}, patch.configOverrides, "/config_overrides"),
    };
    return checked(target, given, before.rule);
  }

  /** @returns the plain values */
  async #merged(stored: JsonObject, patch: JsonObject | null | undefined, at: string): Promise<JsonObject> {
    const { secrets } = this.#parts;
    if (patch === undefined || patch === null) return secrets.decrypt(stored);
    const encrypted = await secrets.encryptGiven(mergePatch(secrets.mask(stored), patch), stored, { at });
    if (encrypted.kind === "encrypted") return secrets.decrypt(encrypted.value);
    const messages = encrypted.errors.map(({ message }) => message).join("; ");
    throw new DomainError("validation_failed", `Invalid schedule: ${messages}.`, encrypted.errors);
  }

  /** Doing it twice changes nothing. @throws DomainError `invalid_transition`, `schedule_not_found` */
  pause(writes: Writes, scheduleId: string): Promise<Schedule> {
    return this.#changeIn(writes, scheduleId, (now) => {
      if (now.status === "paused") return now;
      if (now.status !== "active") throw isOver(now, "paused");
      return { ...now, status: "paused", statusReason: null, revision: now.revision + 1 };
    });
  }

  /** From now on: what was due meanwhile is not made up for. Doing it twice changes nothing. @throws as `pause` */
  resume(writes: Writes, scheduleId: string): Promise<Schedule> {
    return this.#changeIn(writes, scheduleId, (now) => {
      if (now.status === "active") return now;
      if (now.status !== "paused") throw isOver(now, "resumed");
      const revived = { ...now, status: "active", statusReason: null, failuresInARow: 0 } as const;
      return { ...timedFrom(revived, this.#parts.clock.nowMs()), revision: now.revision + 1 };
    });
  }

  /**
   * Starts a run now, whatever the schedule's status and its other runs.
   *
   * @returns what is still to be done, in a transaction; `Scheduler.started` is to be called after its commit
   * @throws DomainError `schedule_not_found`, and what a run is refused with
   */
  async prepareDispatch(scheduleId: string): Promise<(writes: Writes) => Promise<StartedRun>> {
    const { clock, starts } = this.#parts;
    const schedule = await this.find(scheduleId);
    const insert = await starts.prepare(schedule, { kind: "hand" });
    return async (writes) => {
      const now = found(await writes.schedules.schedule(scheduleId), scheduleId);
      const run = await insert(writes);
      const nowMs = clock.nowMs();
      await writes.schedules.noteRun({ ...run, scheduleId });
      const lastDispatch = {
        dueAtMs: nowMs,
        dispatchedAtMs: nowMs,
        runId: run.runId,
        outcome: "dispatched",
        reason: null,
      } as const;
      await writes.schedules.save(changed({ ...now, dispatched: now.dispatched + 1, lastDispatch }, nowMs));
      return run;
    };
  }

  /** Its runs stay. @param before as the caller saw it @throws DomainError `precondition_failed`, `schedule_not_found` */
  async remove(before: Schedule): Promise<void> {
    await this.#parts.records.write(async (writes) => {
      const now = found(await writes.schedules.schedule(before.scheduleId), before.scheduleId);
      if (now.revision !== before.revision) throw changedMeanwhile(now);
      await writes.schedules.remove(before.scheduleId);
      const end = { runId: null, reason: "the schedule was deleted" };
      if (now.waitingEvents > 0)
        await writes.events.settleWaiting(now.scheduleId, Number.MAX_SAFE_INTEGER, end);
    });
  }

  async #changeIn(
    writes: Writes,
    scheduleId: string,
    change: (now: Schedule) => Schedule,
  ): Promise<Schedule> {
    const now = found(await writes.schedules.schedule(scheduleId), scheduleId);
    const next = change(now);
    if (next === now) return now;
    const saved = changed(next, this.#parts.clock.nowMs());
    await writes.schedules.save(saved);
    return saved;
  }
}

/** With the first time that something is to be done, from now on. */
const timedFrom = (schedule: Schedule, nowMs: number) =>
  isOfEvents(schedule) ? timedEvents(schedule, nowMs) : timed(schedule, nowMs);

/** @throws DomainError `validation_failed` for templates that cannot be filled, and what the target's check throws */
function checked<Writes>(target: ScheduleTarget<Writes>, given: Given, rule: Rule): Promise<Given> {
  const { inputs, configOverrides } = given;
  const problems = templateProblems(inputs, "/inputs", rule.kind === "event");
  if (problems.length > 0) throw invalid(problems);
  return target.check({ inputs, configOverrides });
}

const typeOf = (rule: Rule) => (rule.kind === "event" ? rule.type : null);

/** @throws DomainError `validation_failed` when as many schedules as are allowed react to events of the rule's type */
async function refuseTooMany({ events }: SchedulerWrites, rule: Rule): Promise<void> {
  if (rule.kind !== "event" || (await events.countListeners(rule.type)) < LISTENERS_MAX) return;
  const message = `${LISTENERS_MAX} schedules react to events of type ${rule.type}, which is the most; delete some, or use another type`;
  throw invalid([{ path: "/event/type", code: "too_many", message }]);
}

function invalid(entries: readonly DomainErrorEntry[]): DomainError {
  const messages = entries.map(({ message }) => message).join("; ");
  return new DomainError("validation_failed", `Invalid schedule: ${messages}.`, entries);
}

function found(schedule: Schedule | null, scheduleId: string): Schedule {
  if (schedule !== null) return schedule;
  throw new DomainError(
    "schedule_not_found",
    `Schedule ${scheduleId} was not found. List the schedules to find its id.`,
  );
}

function changedMeanwhile({ scheduleId }: Schedule): DomainError {
  return new DomainError(
    "precondition_failed",
    `Schedule ${scheduleId} has changed since this ETag was given. Get it again, look at what changed, and repeat the request with the new ETag.`,
  );
}

function isOver({ scheduleId, status }: Schedule, wanted: string): DomainError {
  return new DomainError(
    "invalid_transition",
    `Schedule ${scheduleId} is ${status}, so it cannot be ${wanted}. Give it another rule with PATCH, or make a new one.`,
  );
}

function neverDue(): DomainError {
  const message =
    "no run would ever be started by this rule: its times are over, or behind until or max_runs";
  return invalid([{ path: "", code: "never_due", message }]);
}
