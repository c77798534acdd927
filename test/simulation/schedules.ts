// The simulated world of schedules: the real scheduler of two programs over one real database, in simulated time. Programs
// are killed at any moment, the store fails before a write or behind it, clocks jump by hours in both directions, ends of
// runs are not seen, starts are refused. Everything that happens comes from one seed.

import assert from "node:assert/strict";
import {
  type CronRule,
  missedPolicies,
  overlapPolicies,
  type Rule,
  type Schedule,
  type ScheduleSettings,
} from "../../src/schedules/records.ts";
import { startOf } from "../../src/schedules/rule.ts";
import type { Counts } from "./kinds.ts";
import { type Faults, ProgramsWorld } from "./programs-world.ts";
import { EventTraffic } from "./schedule-events.ts";
import { JOB, SchedulerProgram, target } from "./scheduler-program.ts";

const HOUR_MS = 3_600_000;
/** How long there are faults. Most seeds are short: more of them meet more. */
const FAULTY_MS = [10 * 60_000, 10 * 60_000, 10 * 60_000, HOUR_MS];
const QUIET_MS = 5 * 60_000;
const TEN_MINUTES_MS = 10 * 60_000;
/** Longer than it takes until the ends of all runs are looked at. */
const ROUNDS_MS = 2 * 60_000;
/** Behind it a due time was not come to as it should have been. */
const LATE_MS = 5_000;
/** Expressions, and whether a time is due by them; all of them come at half minutes only. */
const EXPRESSIONS: Readonly<Record<string, (minute: number, second: number) => boolean>> = {
  "*/20 * * * *": (minute, second) => minute % 20 === 0 && second === 0,
  "0 */10 * * * *": (minute, second) => minute % 10 === 0 && second === 0,
  "30 0 * * * *": (minute, second) => minute === 0 && second === 30,
  "0 15,45 * * * *": (minute, second) => (minute === 15 || minute === 45) && second === 0,
};

const faults: Faults = {
  who: "scheduler",
  fails: 0.03,
  crashes: 0.02,
  awayMs: [100, 5_000, 90_000, 20 * 60_000],
  explained: /JournalUnavailable|The disk is full|it waits for/,
};

export class ScheduleWorld extends ProgramsWorld<SchedulerProgram> {
  /** Schedules that people have changed: what is due of them is not known from their rule. */
  readonly #touched = new Set<string>();
  readonly #events = new EventTraffic(this);
  /** Before the clock was put back it may have been later than now. */
  latestMs = 0;
  /** From now on every due time is come to in time. */
  #punctualFromMs = Number.POSITIVE_INFINITY;
  #runsEnd = true;
  /** In whose next look the clock is put back. */
  readonly #putsBackFor = new Set<string>();

  constructor(seed: number) {
    super(seed, faults);
  }

  protected make(name: string): SchedulerProgram {
    return new SchedulerProgram(this, name);
  }

  get steadyMs(): number {
    return this.timeline.nowMs;
  }

  /** Something that happens outside of all programs. */
  plan(delayMs: number, run: () => void): void {
    this.timeline.plan(delayMs, null, run);
  }

  /** While a program looks what is due, and plans its next look. */
  mayJump(name: string): void {
    const isLast = this.#putsBackFor.delete(name);
    if (!isLast && !(this.isFaulty && this.random.chance(0.01))) return;
    this.counts.add("jump of the wall clock");
    this.jumpedMs += (isLast ? -1 : this.random.pick([-1, 1])) * HOUR_MS;
  }

  /** A person changes a schedule while a run of it is about to be started. */
  mayChange(scheduleId: string): void {
    if (this.isFaulty && this.random.chance(0.1)) void this.#change(scheduleId);
  }

  async #change(scheduleId: string): Promise<void> {
    await this.ask(async ({ schedules, scheduler }) => {
      const before = await schedules.find(scheduleId);
      scheduler.changed(await schedules.update(before, { inputs: { revision: before.revision } }));
      this.counts.add("change of a schedule");
    });
  }

  // ---------------------------------------------------------------------------------------- the course of a seed

  async play(): Promise<void> {
    await this.records.write((writes) => writes.insertJob(JOB));
    for (const name of ["a", "b"]) this.start(name);
    for (let n = 0; n < 6; n++)
      this.timeline.plan(this.random.below(60_000), null, () => void this.schedule());
    // Whose due times come again at the end.
    this.timeline.plan(60_000, null, () => void this.schedule(undefined, "allow"));
    this.#events.start();
    this.timeline.plan(500, null, () => void this.#endRuns());
    this.timeline.plan(20_000, null, () => this.#trouble());
    await this.#until(this.timeline.nowMs + this.random.pick(FAULTY_MS));
    this.isFaulty = false;
    for (const name of ["a", "b"]) {
      this.start(name);
      this.#putsBackFor.add(name);
    }
    await this.#until(this.timeline.nowMs + ROUNDS_MS);
    // Due times come again.
    this.timeline.plan(0, null, () => void this.#resumeAll());
    await this.#until(this.timeline.nowMs + ROUNDS_MS);
    this.#punctualFromMs = this.nowMs;
    // The one on duty is lost right before runs are due, and the other one starts them.
    const toDueMs = TEN_MINUTES_MS - (this.nowMs % TEN_MINUTES_MS);
    this.timeline.plan(toDueMs - 500, null, () => this.crash(this.duty?.name ?? "a", QUIET_MS));
    // A program that sees the end of a run looks at its schedule.
    this.timeline.plan(toDueMs - ROUNDS_MS, null, () => {
      this.#runsEnd = false;
    });
    await this.#until(this.timeline.nowMs + toDueMs + ROUNDS_MS);
    await this.#check();
    for (const { scheduler } of this.programs.values()) void scheduler.stop();
  }

  async #until(endMs: number): Promise<void> {
    while (this.timeline.nowMs < endMs && (await this.timeline.step())) {
      this.latestMs = Math.max(this.latestMs, this.nowMs);
      if (this.hasWritten) await this.#checkOpen();
      this.hasWritten = false;
    }
  }

  /** A person makes a schedule. @returns null when it is not known whether it is there */
  async schedule(
    rule: Rule = this.#timeRule(),
    overlap = this.random.pick(overlapPolicies),
  ): Promise<Schedule | null> {
    const { random } = this;
    const settings: ScheduleSettings = {
      name: "n",
      rule,
      webhook: null,
      inputs: {},
      configOverrides: null,
      priority: "normal",
      overlap,
      missedPolicy: random.pick(missedPolicies),
      catchupLimit: random.pick([1, 3, 100]),
      untilMs: random.chance(0.1) ? this.nowMs + random.between(1, 3) * HOUR_MS : null,
      maxRuns: random.chance(0.1) ? random.between(1, 5) : null,
      pauseAfterFailures: random.chance(0.2) ? 2 : null,
    };
    let made: Schedule | null = null;
    await this.ask(async ({ schedules, records, scheduler }) => {
      const insert = await schedules.prepareCreate(target, settings);
      made = await records.write(insert);
      scheduler.changed(made);
    });
    return made;
  }

  #timeRule(): Rule {
    const { random } = this;
    const known = Object.keys(EXPRESSIONS);
    const expressions = [random.pick(known), ...(random.chance(0.3) ? [random.pick(known)] : [])];
    return random.chance(0.2)
      ? { kind: "delayed", atMs: this.nowMs + random.below(HOUR_MS) }
      : { kind: "cron", expressions, timezone: "UTC", jitterSeconds: random.pick([0, 0, 30]) };
  }

  /** Runs end by themselves, or because they were cancelled. */
  async #endRuns(): Promise<void> {
    if (!this.#runsEnd) return;
    const open = await this.database.read<{ run_id: string; runtime_job_id: string; desired_state: string }>(
      "SELECT run_id, runtime_job_id, desired_state FROM runs WHERE terminal = 0",
      [],
    );
    for (const { run_id: runId, runtime_job_id: runtimeJobId, desired_state: desired } of open) {
      if (desired !== "cancelled" && !this.random.chance(0.02)) continue;
      const status = desired === "cancelled" || this.random.chance(0.7) ? "cancelled" : "failed";
      await this.records.write((writes) =>
        writes.endUnlaunched(runId, { status, failureJson: null }, this.nowMs),
      );
      const [seenBy] = this.programs.values();
      if (this.random.chance(0.7)) seenBy?.ended(runtimeJobId);
      else this.counts.add("end of a scheduled run that nobody saw");
    }
    this.timeline.plan(3_000, null, () => void this.#endRuns());
  }

  #trouble(): void {
    if (!this.isFaulty) return;
    const kind = this.random.below(10);
    if (kind < 3) {
      this.counts.add("scheduler killed");
      this.crash(this.random.pick(["a", "b"]));
    } else if (kind === 3) {
      this.#jump();
    } else if (kind === 4) {
      for (const name of ["a", "b"]) this.crash(name);
      this.counts.add("outage of all schedulers");
    } else if (kind < 7) void this.#touch();
    this.timeline.plan(this.random.between(20_000, 240_000), null, () => this.#trouble());
  }

  #jump(): void {
    this.counts.add("jump of the wall clock");
    this.jumpedMs += this.random.pick([-3, 4]) * HOUR_MS + this.random.below(60_000);
  }

  /** Those whose runs may overlap; of the others each due time is counted. */
  async #resumeAll(): Promise<void> {
    const { rows } = await this.records.schedules({
      kind: "cron",
      status: "active",
      jobId: null,
      limit: 20,
      after: null,
    });
    for (const { scheduleId } of rows.filter(({ overlap }) => overlap === "allow")) {
      this.#touched.add(scheduleId);
      await this.ask(async ({ schedules, records, scheduler }) => {
        await records.write((writes) => schedules.pause(writes, scheduleId));
        scheduler.changed(await records.write((writes) => schedules.resume(writes, scheduleId)));
      });
    }
  }

  async #touch(): Promise<void> {
    const { rows } = await this.records.schedules({
      kind: null,
      status: null,
      jobId: null,
      limit: 20,
      after: null,
    });
    if (rows.length === 0) return;
    const { scheduleId } = this.random.pick(rows);
    await this.ask(async ({ schedules, records, scheduler }) => {
      if (this.random.chance(0.6)) {
        const insert = await schedules.prepareDispatch(scheduleId);
        scheduler.started(await records.write(insert));
        this.counts.add("dispatch by hand");
        return;
      }
      this.#touched.add(scheduleId);
      const name = this.random.pick(["pause", "resume"] as const);
      scheduler.changed(await records.write((writes) => schedules[name](writes, scheduleId)));
      this.counts.add(`${name} of a schedule`);
    });
  }

  // ----------------------------------------------------------------------------------------------- what must hold

  /** Those who skip or queue have one run at a time. */
  async #checkOpen(): Promise<void> {
    const tooMany = await this.database.read<{ schedule_id: string; open: number }>(
      `SELECT s.schedule_id, count(*) AS open FROM schedules AS s
        JOIN runs AS r ON r.trigger_id = s.schedule_id AND r.terminal = 0 AND r.trace_id = 'by rule'
        WHERE s.overlap IN ('skip', 'queue_one') GROUP BY s.schedule_id HAVING open > 1`,
      [],
    );
    assert.deepEqual(tooMany, [], "runs of one schedule overlap");
  }

  async #check(): Promise<void> {
    assert.deepEqual(this.errors, [], "errors that nothing explains");
    const { rows } = await this.records.schedules({
      kind: null,
      status: null,
      jobId: null,
      limit: 20,
      after: null,
    });
    for (const schedule of rows) await this.#checkSchedule(schedule);
    await this.#events.check(rows);
    const noted = await this.records.scheduledRuns("", 10_000);
    assert.deepEqual(
      noted.filter(({ hasEnded }) => hasEnded),
      [],
      "ends of runs that nobody has looked at",
    );
  }

  #checkPunctual(
    { scheduleId, rule }: Schedule,
    { run_id: runId, parent_span_id: began }: { readonly run_id: string; readonly parent_span_id: string },
  ): void {
    const wantedMs = startOf(scheduleId, rule, dueOf(runId));
    const lateMs = Number(began) + this.jumpedMs - wantedMs;
    // What began before may have begun by a clock that was put back since.
    if (wantedMs < this.#punctualFromMs || lateMs < 0) return;
    assert.ok(lateMs < LATE_MS, `run ${runId} began ${lateMs} ms late`);
  }

  async #checkSchedule(schedule: Schedule): Promise<void> {
    const { scheduleId, rule, status, nextRunAtMs, queuedDueAtMs, dueAtMs } = schedule;
    const name = JSON.stringify(schedule);
    const runs = await this.database.read<{ run_id: string; trace_id: string; parent_span_id: string }>(
      "SELECT run_id, trace_id, parent_span_id FROM runs WHERE trigger_id = ?",
      [scheduleId],
    );
    if (status !== "failed") this.counts.add(`schedule that is ${status}`);
    this.counts.add("due time that was skipped", schedule.skipped);
    this.counts.add("due time that was missed", schedule.missed);
    if (status === "active" && nextRunAtMs !== null)
      assert.ok(nextRunAtMs > this.nowMs - LATE_MS, `nobody comes to ${name}`);
    if (status === "active" && schedule.pauseAfterFailures !== null)
      assert.ok(schedule.failuresInARow < schedule.pauseAfterFailures, `goes on after failures: ${name}`);
    if (rule.kind !== "event" && (schedule.overlap === "allow" || schedule.overlap === "cancel_previous"))
      for (const one of runs.filter(({ trace_id: by }) => by === "by rule"))
        this.#checkPunctual(schedule, one);
    const open = await this.records.openRuns(scheduleId, 9);
    if (queuedDueAtMs !== null && status === "active")
      assert.ok(open.length > 0, `nothing is waited for: ${name}`);
    const byHand = runs.filter(({ trace_id: by }) => by === "by hand").length;
    const byRule = runs.length - byHand;
    assert.ok(schedule.dispatched >= runs.length, `runs are not counted: ${name}`);
    assert.ok(schedule.dispatched - schedule.failed <= runs.length, `runs are missing: ${name}`);
    assert.ok(byRule <= (schedule.maxRuns ?? byRule), `too many runs: ${name}`);
    const isRuled = !this.#touched.has(scheduleId) && status === "active" && dueAtMs !== null;
    if (!isRuled || rule.kind !== "cron") return;
    // Every due time up to the next one has become something, and only one thing.
    const dues = duesBetween(rule, schedule.createdAtMs, dueAtMs);
    const { dispatched, skipped, missed } = schedule;
    const come = dispatched - byHand + skipped + missed + (queuedDueAtMs === null ? 0 : 1);
    assert.equal(come, dues, `of ${dues} due times ${come} are accounted for: ${name}`);
  }
}

/** The due time that a run was started for: its id begins with it. */
function dueOf(runId: string): number {
  const [, time = ""] = /^run_(.{10})/.exec(runId) ?? [];
  return [...time].reduce((ms, digit) => ms * 32 + "0123456789abcdefghjkmnpqrstvwxyz".indexOf(digit), 0);
}

/** How many due times there are behind the first and before the last. */
function duesBetween({ expressions }: CronRule, fromMs: number, untilMs: number): number {
  let dues = 0;
  const HALF_MS = 30_000;
  for (let ms = Math.ceil((fromMs + 1) / HALF_MS) * HALF_MS; ms < untilMs; ms += HALF_MS) {
    const [minute, second] = [Math.floor(ms / 60_000) % 60, Math.floor(ms / 1_000) % 60];
    if (expressions.some((expression) => EXPRESSIONS[expression]?.(minute, second))) dues++;
  }
  return dues;
}

/** Plays a seed. @returns what has happened in it */
export async function runScheduleSeed(seed: number): Promise<Counts> {
  const world = new ScheduleWorld(seed);
  await world.play();
  return world.counts;
}
