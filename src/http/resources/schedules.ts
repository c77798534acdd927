// Schedules, in both APIs: POST and GET /schedules; GET, PATCH and DELETE /schedules/{schedule_id}; and POST …/pause, …/resume,
// …/dispatch. The runtime API also makes jobs of manifests and bundles, and asks for no If-Match.

import type { FastifyRequest } from "fastify";
import type { GatewayWrites } from "../../launch/records.ts";
import type { ScheduledRuns } from "../../launch/scheduled-runs.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { Slices } from "../../lib/slices.ts";
import {
  type Schedule,
  type ScheduleRecords,
  scheduleKinds,
  scheduleStates,
} from "../../schedules/records.ts";
import type { StartedRun } from "../../schedules/run-starts.ts";
import type { Scheduler } from "../../schedules/scheduler.ts";
import type { Schedules } from "../../schedules/schedules.ts";
import { etagOf, knowsCurrent, notModified, stale, type Versioned } from "../core/etag.ts";
import { get, patch, post, remove } from "../core/route.ts";
import { Type } from "../core/type.ts";
import type { Api } from "./api.ts";
import { EventInput, FilterInput } from "./event-rule-view.ts";
import { sendGiven } from "./idempotent.ts";
import { sendJson } from "./lists.ts";
import type { WaitParts } from "./run-starts.ts";
import { RuntimeScheduleBody, type SourceParts, sourceOf } from "./schedule-sources.ts";
import {
  CreateScheduleBody,
  Cron,
  changedSettings,
  Delayed,
  newSettings,
  renderSchedule,
  ScheduleSchema,
  targetOf,
  UpdateScheduleBody,
} from "./schedule-view.ts";
import { idempotencyKeyHeader, ifMatchHeader, ifNoneMatchHeader, pageOf, pageQuery } from "./schemas.ts";
import { WebhookInput } from "./webhook-view.ts";

const SchedulePageSchema = pageOf(ScheduleSchema, "schedules, newest first");

const DispatchedSchema = Type.Object({ run_id: Type.String() });

const SchedulesQuery = Type.Input({
  kind: Type.OneOf(scheduleKinds, "Schedules of this kind only."),
  status: Type.OneOf(scheduleStates, "Schedules in this status only."),
  job_id: Type.String("Schedules that start runs of this job only."),
  ...pageQuery,
});

/** By the names that clients see. */
export const schemas = {
  Schedule: ScheduleSchema,
  SchedulePage: SchedulePageSchema,
  CreateSchedule: CreateScheduleBody,
  UpdateSchedule: UpdateScheduleBody,
  CronRule: Cron,
  Delay: Delayed,
  EventRule: EventInput,
  EventFilter: FilterInput,
  WebhookSettings: WebhookInput,
  ScheduleDispatch: DispatchedSchema,
};

export interface Parts extends Pick<WaitParts, "secrets">, SourceParts {
  readonly records: Pick<ScheduleRecords, "schedules">;
  readonly schedules: Schedules<GatewayWrites>;
  readonly scheduler: Scheduler<GatewayWrites>;
  readonly scheduleTargets: Pick<ScheduledRuns, "targetOfJob" | "targetOfSource">;
  readonly nowMs: () => number;
}

export function routes(api: Api, parts: Parts): void {
  const { records, schedules, scheduler, scheduleTargets, secrets, nowMs } = parts;

  api.add("schedules", [
    post("/schedules", {
      operationId: "createSchedule",
      summary: "Start runs of a job by a rule",
      description:
        "Each due time starts one run, also when the program was killed in the middle. What the runs are given is checked now, as if one began. A run's trigger has kind schedule, or event, and the schedule's id. A webhook's secret is in this answer alone, not in that of a repeated request.",
      headers: idempotencyKeyHeader,
      body: CreateScheduleBody,
      answers: { 201: ScheduleSchema },
      problems: [
        "job_not_found",
        "blueprint_busy",
        "requirements_not_met",
        "resource_unsatisfiable",
        "conflict",
      ],
      async handle(request, reply) {
        const made: { schedule?: Schedule; settled?: () => void } = {};
        const given = await api.effect(request, async () => {
          const { settings, source } = await asked(request);
          const target = await ("jobId" in source
            ? scheduleTargets.targetOfJob(source.jobId)
            : scheduleTargets.targetOfSource(source, settings.name));
          const insert = await schedules.prepareCreate(target, settings);
          return async (writes) => {
            const schedule = await insert(writes);
            made.schedule = schedule;
            made.settled = () => target.settled();
            const body = renderSchedule(schedule, secrets);
            const headers = {
              location: `/api/v1/schedules/${schedule.scheduleId}`,
              etag: etagOf(versioned(schedule), body),
            };
            return { status: 201, headers, body };
          };
        });
        if (made.schedule !== undefined && !given.isReplay) {
          made.settled?.();
          scheduler.changed(made.schedule);
          // Kept is the answer without the webhook's secret.
          return sendGiven(reply, given, renderSchedule(made.schedule, secrets, "shown"));
        }
        return sendGiven(reply, given);
      },
    }),

    get("/schedules", {
      operationId: "listSchedules",
      summary: "List schedules",
      query: SchedulesQuery,
      answers: { 200: SchedulePageSchema },
      handle: (request, reply) =>
        api.sendList(request, reply, {
          async rows(limit, after) {
            const { kind = null, status = null, job_id: jobId = null } = request.query;
            const asked = { kind, status, jobId, limit, after: after === null ? null : String(after[0]) };
            const { rows, isCut } = await records.schedules(asked);
            return { rows: await rendered(rows), isCut };
          },
          positionOf: ({ scheduleId }) => [scheduleId],
          render: ({ text }) => text,
        }),
    }),

    get("/schedules/:schedule_id", {
      operationId: "getSchedule",
      summary: "Get a schedule",
      description:
        "The ETag changes with the schedule and with what has become of its due times; If-Match looks at the schedule alone.",
      headers: ifNoneMatchHeader,
      answers: { 200: ScheduleSchema, 304: Type.Null("The client has this answer already.") },
      async handle(request, reply) {
        const schedule = await schedules.find(request.params.schedule_id);
        const body = renderSchedule(schedule, secrets);
        const etag = etagOf(versioned(schedule), body);
        reply.header("etag", etag);
        return notModified(request, etag) ? reply.code(304).send() : sendJson(reply, body);
      },
    }),

    patch("/schedules/:schedule_id", {
      operationId: "updateSchedule",
      summary: "Change a schedule",
      headers: ifMatchHeader,
      body: UpdateScheduleBody,
      answers: { 200: ScheduleSchema },
      problems: ["requirements_not_met", "resource_unsatisfiable", "conflict"],
      async handle(request, reply) {
        const before = await schedules.find(request.params.schedule_id);
        requireCurrent(request, before);
        const after = await schedules
          .update(
            before,
            changedSettings(api.readBody(request, UpdateScheduleBody), before, secrets, nowMs()),
          )
          .catch((error) => asStale(before, error));
        scheduler.changed(after);
        const etag = etagOf(versioned(after), renderSchedule(after, secrets));
        const isNewSecret = after.webhook?.secret.$sealed !== before.webhook?.secret.$sealed;
        const body = renderSchedule(after, secrets, isNewSecret ? "shown" : "masked");
        return sendJson(reply.header("etag", etag), body);
      },
    }),

    remove("/schedules/:schedule_id", {
      operationId: "deleteSchedule",
      summary: "Delete a schedule; its runs stay",
      headers: ifMatchHeader,
      answers: { 204: Type.Null("The schedule is gone.") },
      async handle(request, reply) {
        const before = await schedules.find(request.params.schedule_id);
        requireCurrent(request, before);
        await schedules.remove(before).catch((error) => asStale(before, error));
        return reply.code(204).send();
      },
    }),

    ...(["pause", "resume"] as const).map((name) =>
      post(`/schedules/:schedule_id/${name}`, {
        operationId: `${name}Schedule`,
        summary: name === "pause" ? "Pause a schedule" : "Let a paused schedule go on",
        description:
          name === "pause"
            ? "No run is started until it is resumed. Runs that were started go on."
            : "From now on: what was due meanwhile is not made up for.",
        headers: idempotencyKeyHeader,
        answers: { 200: ScheduleSchema },
        problems: ["invalid_transition"],
        async handle(request, reply) {
          let after: Schedule | null = null;
          const given = await api.effect(request, async () => async (writes) => {
            after = await schedules[name](writes, request.params.schedule_id);
            return { status: 200, headers: {}, body: renderSchedule(after, secrets) };
          });
          if (after !== null) scheduler.changed(after);
          return sendGiven(reply, given);
        },
      }),
    ),

    post("/schedules/:schedule_id/dispatch", {
      operationId: "dispatchSchedule",
      summary: "Start a run of a schedule now",
      description: "Whatever its status, its rule and its other runs.",
      headers: idempotencyKeyHeader,
      answers: { 202: DispatchedSchema },
      problems: [
        "job_not_found",
        "requirements_not_met",
        "resource_unsatisfiable",
        "no_free_port",
        "conflict",
      ],
      handle: (request, reply) =>
        api.sendStarted<StartedRun>(request, reply, {
          prepare: () => schedules.prepareDispatch(request.params.schedule_id),
          answer: ({ runId }) => ({
            location: `/api/v1/runs/${runId}`,
            body: JSON.stringify({ run_id: runId }),
          }),
          started: (run) => scheduler.started(run),
        }),
    }),
  ]);

  /** Reads a request for a schedule. */
  async function asked(request: FastifyRequest) {
    if (api.name === "gateway") {
      const body = api.readBody(request, CreateScheduleBody);
      const settings = newSettings(body, secrets, nowMs());
      const { jobId, blueprintId = "" } = targetOf(body);
      return {
        settings,
        source: jobId === undefined ? ({ kind: "blueprint", blueprintId } as const) : { jobId },
      };
    }
    const given = api.readBody(request, RuntimeScheduleBody);
    const settings = newSettings(given, secrets, nowMs());
    return { settings, source: await sourceOf(parts, given) };
  }

  /** In slices: finding the next times of one takes half a millisecond. */
  async function rendered(rows: readonly Schedule[]) {
    const slices = new Slices();
    const texts: { readonly scheduleId: string; readonly text: string }[] = [];
    for (const schedule of rows) {
      if (slices.isOver) await slices.breathe();
      texts.push({ scheduleId: schedule.scheduleId, text: renderSchedule(schedule, secrets) });
    }
    return texts;
  }

  /** @throws Problem unless If-Match has the schedule's current revision */
  function requireCurrent(request: FastifyRequest, schedule: Schedule): void {
    if (api.name === "runtime" && request.headers["if-match"] === undefined) return;
    if (!knowsCurrent(request, versioned(schedule))) throw staleNow(schedule);
  }

  /** A change that lost a race is answered with the current ETag. */
  async function asStale({ scheduleId }: Schedule, error: unknown): Promise<never> {
    const isLost = error instanceof DomainError && error.code === "precondition_failed";
    throw isLost ? staleNow(await schedules.find(scheduleId)) : error;
  }

  const staleNow = (schedule: Schedule) =>
    stale(etagOf(versioned(schedule), renderSchedule(schedule, secrets)));
}

const versioned = ({ scheduleId, revision }: Schedule): Versioned => ({ id: scheduleId, revision });
