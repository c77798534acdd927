// Runs that schedules start (src/schedules): whose they are, what they are given, and how they are cancelled.

import { isoTime } from "../engine/event.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import type { Rule, Schedule } from "../schedules/records.ts";
import { runIdOf, runIdOfEvent } from "../schedules/rule.ts";
import type { Cause, RunStarts } from "../schedules/run-starts.ts";
import type { Given, ScheduleTarget } from "../schedules/schedules.ts";
import { filled, hasTemplate } from "../schedules/templates.ts";
import { seenEvent } from "../schedules/trigger-events.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import { type Acceptance, inputsRefused } from "./acceptance.ts";
import type { CreatedJob, Definitions } from "./definitions.ts";
import type { Launcher } from "./launcher.ts";
import type { GatewayWrites, JobDefinition, JobSource } from "./records.ts";
import type { Runs } from "./runs.ts";

export interface ScheduledRunsParts {
  readonly acceptance: Acceptance;
  readonly definitions: Definitions;
  readonly runs: Runs;
  readonly launcher: Pick<Launcher, "enqueue" | "settleSoon">;
  readonly secrets: ConfigurationSecrets;
  readonly clock: Clock;
}

export class ScheduledRuns implements RunStarts<GatewayWrites> {
  readonly #parts: ScheduledRunsParts;

  constructor(parts: ScheduledRunsParts) {
    this.#parts = parts;
  }

  async prepare(schedule: Schedule, cause: Cause) {
    const { runs, secrets } = this.#parts;
    const { scheduleId, jobId, rule, configOverrides } = schedule;
    const runId = runIdFor(scheduleId, cause);
    return runs.prepare(jobId, {
      ...(runId !== null && { runId }),
      inputs: this.#filled(await secrets.decrypt(schedule.inputs), rule, cause),
      configOverrides: configOverrides === null ? null : await secrets.decrypt(configOverrides),
      priority: schedule.priority,
      trigger: { kind: rule.kind === "event" ? "event" : "schedule", id: scheduleId },
      trace: null,
    });
  }

  #filled(inputs: JsonObject, rule: Rule, cause: Cause): JsonObject {
    if (!hasTemplate(inputs)) return inputs;
    const nowMs = this.#parts.clock.nowMs();
    const atMs = cause.kind === "time" ? cause.dueAtMs : nowMs;
    const given = filled(inputs, { event: eventOf(rule, cause), dueAt: isoTime(atMs) });
    if (given === undefined) throw inputsRefused(["the templates put more than 8 MiB into the inputs"]);
    if (isObject(given)) return given;
    throw inputsRefused(["the event has no object where inputs are taken from"]);
  }

  async isStarted(writes: GatewayWrites, { scheduleId }: Schedule, dueAtMs: number): Promise<boolean> {
    return (await writes.run(runIdOf(scheduleId, dueAtMs))) !== null;
  }

  accepted(runId: string): void {
    this.#parts.launcher.enqueue(runId);
  }

  cancel(writes: GatewayWrites, runId: string): Promise<void> {
    return writes.setDesiredState(runId, "cancelled", this.#parts.clock.nowMs());
  }

  cancelled(jobId: string): void {
    this.#parts.launcher.settleSoon(jobId);
  }

  /** A job that is there. @throws DomainError `job_not_found` */
  async targetOfJob(jobId: string): Promise<ScheduleTarget<GatewayWrites>> {
    const job = await this.#parts.runs.jobOf(jobId);
    return {
      blueprintId: null,
      check: (given) => this.#check(job, given),
      settle: async (writes) => ((await writes.job(jobId)) === null ? null : jobId),
      settled: () => {},
    };
  }

  /** A job that is made from a blueprint or a bundle with the schedule. @throws DomainError what Definitions.prepareCreate throws */
  async targetOfSource(source: JobSource, name: string): Promise<ScheduleTarget<GatewayWrites>> {
    const { definitions } = this.#parts;
    const draft = await definitions.prepareCreate({ source, name, configuration: {} });
    let created: CreatedJob | null = null;
    return {
      blueprintId: source.kind === "blueprint" ? source.blueprintId : null,
      check: (given) => this.#check(draft.job, given),
      async settle(writes) {
        created = await draft.insert(writes);
        return created.job.jobId;
      },
      settled() {
        if (created !== null) definitions.created(created);
      },
    };
  }

  async #check(job: JobDefinition, given: Given): Promise<Given> {
    const isTemplate = hasTemplate(given.inputs);
    const { inputsJson, configOverridesJson } = await this.#parts.acceptance.check(job, {
      ...given,
      isTemplate,
    });
    return {
      inputs: JSON.parse(inputsJson) as JsonObject,
      configOverrides: configOverridesJson === null ? null : (JSON.parse(configOverridesJson) as JsonObject),
    };
  }
}

function runIdFor(scheduleId: string, cause: Cause): string | null {
  if (cause.kind === "hand") return null;
  if (cause.kind === "time") return runIdOf(scheduleId, cause.dueAtMs);
  const last = cause.events.at(-1);
  return last === undefined ? null : runIdOfEvent(scheduleId, last);
}

/** What templates are filled from; null: it was no event that started the run. */
function eventOf(rule: Rule, cause: Cause): JsonValue {
  const events = (cause.kind === "events" ? cause.events : []).map((event) => ({ ...seenEvent(event) }));
  return rule.kind === "event" && rule.batch !== null ? { events } : (events[0] ?? null);
}
