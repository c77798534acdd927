// Runs that schedules start (src/schedules): whose they are, what they are given, and how they are cancelled.

import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import type { Schedule } from "../schedules/records.ts";
import { runIdOf } from "../schedules/rule.ts";
import type { RunStarts } from "../schedules/scheduler.ts";
import type { Given, ScheduleTarget } from "../schedules/schedules.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import type { Acceptance } from "./acceptance.ts";
import type { CreatedJob, Definitions } from "./definitions.ts";
import type { Launcher } from "./launcher.ts";
import type { GatewayWrites, JobDefinition } from "./records.ts";
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

  async prepare({ scheduleId, jobId, inputs, configOverrides }: Schedule, dueAtMs: number | null) {
    const { runs, secrets } = this.#parts;
    return runs.prepare(jobId, {
      ...(dueAtMs !== null && { runId: runIdOf(scheduleId, dueAtMs) }),
      inputs: await secrets.decrypt(inputs),
      configOverrides: configOverrides === null ? null : await secrets.decrypt(configOverrides),
      trigger: { kind: "schedule", id: scheduleId },
      trace: null,
    });
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

  /** A job that is made from a blueprint with the schedule. @throws DomainError what Definitions.prepareCreate throws */
  async targetOfBlueprint(blueprintId: string, name: string): Promise<ScheduleTarget<GatewayWrites>> {
    const { definitions } = this.#parts;
    const source = { kind: "blueprint", blueprintId } as const;
    const draft = await definitions.prepareCreate({ source, name, configuration: {} });
    let created: CreatedJob | null = null;
    return {
      blueprintId,
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
    const { inputsJson, configOverridesJson } = await this.#parts.acceptance.check(job, given);
    return {
      inputs: JSON.parse(inputsJson) as JsonObject,
      configOverrides: configOverridesJson === null ? null : (JSON.parse(configOverridesJson) as JsonObject),
    };
  }
}
