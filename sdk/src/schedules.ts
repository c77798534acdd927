// Schedules: rules by which runs of a job are started.

import { type Pages, pagesOf } from "./pages.ts";
import type {
  NewSchedule,
  Schedule,
  SchedulePatch,
  SchedulesQuery,
  ScheduleVersion,
  TaggedSchedule,
} from "./records.ts";
import { tagged } from "./tagged.ts";
import type { CallOptions, KeyedOptions, Transport } from "./transport.ts";

export class SchedulesResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Starts runs of a job, or of a new job made from a blueprint, by a rule. Keep what comes back: changes need it.
   *
   * @throws TroupeProblem `validation_failed` when the rule is none, would never start a run, or its runs could not be given this
   *
   * @example
   * const cron = { expressions: ["30 7 * * *"], timezone: "Europe/Berlin" };
   * await client.schedules.create({ job_id: jobId, cron });
   */
  async create(schedule: NewSchedule, options: KeyedOptions = {}): Promise<TaggedSchedule> {
    return tagged(await this.#transport.json("createSchedule", { body: schedule }, options));
  }

  /** Newest first. */
  list(query: SchedulesQuery = {}, options: CallOptions = {}): Pages<Schedule> {
    return pagesOf(this.#transport, "listSchedules", { query }, options);
  }

  async get(scheduleId: string, options: CallOptions = {}): Promise<TaggedSchedule> {
    return tagged(await this.#transport.json("getSchedule", pathOf(scheduleId), options));
  }

  /**
   * Changes what it says: a JSON merge patch, in which null removes a key and "********" keeps the secret that is stored. A new
   * rule counts from now on.
   *
   * @param schedule as it was read: nothing is changed when its definition was changed elsewhere since
   * @throws TroupeProblem `precondition_failed` when it has changed: get it again, then decide
   */
  async update(
    schedule: ScheduleVersion,
    patch: SchedulePatch,
    options: CallOptions = {},
  ): Promise<TaggedSchedule> {
    const request = { ...pathOf(schedule.schedule_id), headers: { "if-match": schedule.etag }, body: patch };
    return tagged(await this.#transport.json("updateSchedule", request, options));
  }

  /** Deletes it; its runs stay. @throws TroupeProblem `precondition_failed` when it has changed */
  async delete(schedule: ScheduleVersion, options: CallOptions = {}): Promise<void> {
    const request = { ...pathOf(schedule.schedule_id), headers: { "if-match": schedule.etag } };
    await this.#transport.json("deleteSchedule", request, options);
  }

  /** Starts no more runs until it is resumed. @throws TroupeProblem `invalid_transition` when it is over */
  pause(scheduleId: string, options: KeyedOptions = {}): Promise<Schedule> {
    return this.#transport.value("pauseSchedule", pathOf(scheduleId), options);
  }

  /** Goes on from now. @throws TroupeProblem `invalid_transition` when it is over */
  resume(scheduleId: string, options: KeyedOptions = {}): Promise<Schedule> {
    return this.#transport.value("resumeSchedule", pathOf(scheduleId), options);
  }

  /** Starts a run now, whatever its status and its rule. */
  dispatch(scheduleId: string, options: KeyedOptions = {}): Promise<{ readonly run_id: string }> {
    return this.#transport.value("dispatchSchedule", pathOf(scheduleId), options);
  }
}

const pathOf = (scheduleId: string) => ({ path: { schedule_id: scheduleId } });
