// A schedule as the API takes and shows it (CONTRACTS section 8).

import { isoTime } from "../../engine/event.ts";
import { defaultTerms } from "../../engine/share.ts";
import { runEndTypes } from "../../launch/run-end-events.ts";
import { DomainError, type DomainErrorEntry } from "../../lib/domain-error.ts";
import {
  type CronRule,
  missedPolicies,
  overlapPolicies,
  type Rule,
  type Schedule,
  type ScheduleSettings,
  scheduleKinds,
  scheduleStates,
  type Webhook,
} from "../../schedules/records.ts";
import { describeRule, expressionProblem, isTimezone, MISSED_MAX } from "../../schedules/rule.ts";
import { nextDues } from "../../schedules/step.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { type Static, Type } from "../core/type.ts";
import { EventInput, EventShown, eventRuleOf, renderEventRule } from "./event-rule-view.ts";
import { Priority } from "./schemas.ts";
import { renderWebhook, WebhookInput, WebhookShown, webhookOf } from "./webhook-view.ts";

const EXPRESSIONS_MAX = 10;
const DAY_SECONDS = 86_400;
const DELAY_SECONDS_MAX = 10 * 366 * DAY_SECONDS;
/** A time that has just gone by is due at once. */
const PAST_MS_MAX = 60_000;
const NEXT_RUNS = 5;

export const Cron = Type.Input(
  {
    expressions: Type.Array(
      Type.String({ minLength: 1, maxLength: 200, examples: ["0 9 * * MON-FRI"] }),
      "Five fields (minute, hour, day, month, weekday), or six with seconds in front; or @hourly, @daily, @weekly, @monthly, @yearly. A time is due when one of them matches.",
      { minItems: 1, maxItems: EXPRESSIONS_MAX },
    ),
    timezone: Type.String(
      "An IANA name. Default: UTC. A time that does not exist when clocks are put forward is due at the first moment that does; one that comes twice is due once.",
      { maxLength: 64, examples: ["Europe/Berlin"] },
    ),
    jitter_seconds: Type.Integer("Each start is put off by up to so long. Default: 0.", {
      minimum: 0,
      maximum: DAY_SECONDS,
    }),
  },
  { description: "When runs are started, again and again." },
);

export const Delayed = Type.Input(
  {
    at: Type.Time("When; or delay_seconds."),
    delay_seconds: Type.Integer("From now on.", { minimum: 0, maximum: DELAY_SECONDS_MAX }),
  },
  { description: "When the one run is started." },
);

const Overrides = Type.JsonObject(
  "As in the start of a run: for jobs made from a catalog blueprint only.",
  {},
);

const INPUTS =
  'As in the start of a run. A value {"$event": "/payload/name"} becomes what is there in the event that a run is started for, {"$schedule": "due_at"} the time that it is due at.';

/** Without default values, which would be laid over what a change does not mention. */
const settings = {
  name: Type.String("For people.", { minLength: 1, maxLength: 200 }),
  cron: Cron,
  delayed: Delayed,
  event: EventInput,
  webhook: WebhookInput,
  inputs: Type.JsonObject(INPUTS, { topic: "bees" }),
  priority: Priority,
  overlap: Type.OneOf(
    overlapPolicies,
    "When the run before has not ended: start none (skip, the default), start one all the same, let one wait for its end, or cancel it.",
  ),
  missed: Type.OneOf(
    missedPolicies,
    "Times at which nothing was running, or that are more than a minute late: start no run for them, one for the last of them (run_once, the default), or one for each.",
  ),
  catchup_limit: Type.Integer(
    `Most missed times, the latest ones, that run_all makes up for. Default: ${MISSED_MAX}.`,
    { minimum: 1, maximum: MISSED_MAX },
  ),
  until: Type.Nullable(Type.Time("No run is started behind it.")),
  max_runs: Type.Nullable(Type.Integer("After so many the schedule is completed.", { minimum: 1 })),
  pause_after_failures: Type.Nullable(
    Type.Integer("Pauses the schedule when so many runs in a row have failed or were refused.", {
      minimum: 1,
    }),
  ),
};

export const Target = Type.Input(
  {
    job_id: Type.String("A job that is there."),
    blueprint_id: Type.String("A catalog blueprint: a job is made of it with the schedule."),
  },
  { description: "Whose runs are started: exactly one of them." },
);

const example = {
  job_id: "job_01k9z1v7m3e8q2x4c6t8b0n5dh",
  cron: { expressions: ["0 9 * * MON-FRI"], timezone: "Europe/Berlin" },
};

export const CreateScheduleBody = Type.Input(
  {
    ...settings,
    config_overrides: Overrides,
    kind: Type.OneOf(scheduleKinds, "Follows from which of cron, delayed and event is given."),
    target: Target,
    job_id: Type.String("The same as target.job_id."),
    blueprint_id: Type.String("The same as target.blueprint_id."),
  },
  { examples: [example] },
);

export const UpdateScheduleBody = Type.Input(
  { ...settings, config_overrides: Type.Nullable(Overrides) },
  {
    description:
      'A JSON merge patch (RFC 7396): null takes a key away, "********" keeps the secret that is stored. A new rule counts from now on; a schedule that was completed goes on with it.',
    examples: [{ cron: { timezone: "Europe/London" } }],
  },
);

const Time = (what: string) => Type.Nullable(Type.Time(what));

export const ScheduleSchema = Type.Object(
  {
    schedule_id: Type.String({ examples: ["schedule_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    name: Type.String(),
    kind: Type.OneOf(scheduleKinds),
    status: Type.OneOf(
      scheduleStates,
      "completed: no time will be due any more; failed: its job was deleted.",
    ),
    status_reason: Type.Nullable(Type.String("Why it is paused or failed, if nobody asked for it.")),
    target: Type.Object({ job_id: Type.Optional(Type.String()), blueprint_id: Type.Optional(Type.String()) }),
    job_id: Type.String("Whose runs are started."),
    inputs: Type.JsonObject("What each run is given; secrets are masked."),
    config_overrides: Type.Nullable(Type.JsonObject("The same of the configuration.")),
    priority: Priority,
    cron: Type.Nullable(
      Type.Object({
        expressions: Type.Array(Type.String()),
        timezone: Type.String(),
        jitter_seconds: Type.Integer(),
      }),
    ),
    delayed: Type.Nullable(Type.Object({ at: Type.Time("When the run is started.") })),
    event: Type.Nullable(EventShown),
    webhook: Type.Nullable(WebhookShown),
    overlap: settings.overlap,
    missed: settings.missed,
    catchup_limit: settings.catchup_limit,
    until: settings.until,
    max_runs: settings.max_runs,
    pause_after_failures: settings.pause_after_failures,
    next_run_at: Time("With the jitter; null while no run will be started."),
    next_runs: Type.Array(Type.Time("Without the jitter."), `The next ${NEXT_RUNS} due times.`),
    description: Type.String("The rule in plain English.", {
      examples: ["At 09:00, Monday through Friday (Europe/Berlin)"],
    }),
    last_dispatch: Type.Nullable(
      Type.Object({
        due_at: Type.Time("The due time."),
        dispatched_at: Type.Time("When it was looked at."),
        run_id: Type.Nullable(Type.String()),
        outcome: Type.OneOf(["dispatched", "skipped", "queued", "failed"]),
        reason: Type.Nullable(Type.String("Why there is no run.")),
      }),
    ),
    counts: Type.Object({
      dispatched: Type.Integer("Runs that were started, and starts that were refused."),
      skipped: Type.Integer("Due times without a run because the one before had not ended."),
      missed: Type.Integer(`Due times that nobody came to; of one outage at most ${MISSED_MAX} are counted.`),
      failed: Type.Integer("Starts that were refused, and runs that failed."),
    }),
    revision: Type.Integer(),
    created_at: Type.Time("When it was made."),
    updated_at: Type.Time("Last change of anything that is shown."),
  },
  "A rule by which runs of a job are started.",
);

/** @param webhookSecret shown: to the caller who has just made it */
export function renderSchedule(
  schedule: Schedule,
  secrets: ConfigurationSecrets,
  webhookSecret: "masked" | "shown" = "masked",
): string {
  const { rule, webhook, blueprintId, jobId, lastDispatch: last } = schedule;
  const time = (ms: number | null) => (ms === null ? null : isoTime(ms));
  const isActive = schedule.status === "active";
  return JSON.stringify({
    schedule_id: schedule.scheduleId,
    name: schedule.name,
    kind: rule.kind,
    status: schedule.status,
    status_reason: schedule.statusReason,
    target: blueprintId === null ? { job_id: jobId } : { blueprint_id: blueprintId },
    job_id: jobId,
    inputs: secrets.maskInputs(schedule.inputs),
    config_overrides: schedule.configOverrides === null ? null : secrets.mask(schedule.configOverrides),
    priority: schedule.priority,
    cron: rule.kind === "cron" ? shownCron(rule) : null,
    delayed: rule.kind === "delayed" ? { at: isoTime(rule.atMs) } : null,
    event: rule.kind === "event" ? renderEventRule(rule) : null,
    webhook: webhook === null ? null : renderWebhook(webhook, secrets, webhookSecret),
    overlap: schedule.overlap,
    missed: schedule.missedPolicy,
    catchup_limit: schedule.catchupLimit,
    until: time(schedule.untilMs),
    max_runs: schedule.maxRuns,
    pause_after_failures: schedule.pauseAfterFailures,
    next_run_at: isActive ? time(nextRunOf(schedule)) : null,
    next_runs: isActive ? nextDues(schedule, NEXT_RUNS).map(isoTime) : [],
    description: describeRule(rule),
    last_dispatch:
      last === null
        ? null
        : {
            due_at: isoTime(last.dueAtMs),
            dispatched_at: isoTime(last.dispatchedAtMs),
            run_id: last.runId,
            outcome: last.outcome,
            reason: last.reason,
          },
    counts: {
      dispatched: schedule.dispatched,
      skipped: schedule.skipped,
      missed: schedule.missed,
      failed: schedule.failed,
    },
    revision: schedule.revision,
    created_at: isoTime(schedule.createdAtMs),
    updated_at: isoTime(schedule.updatedAtMs),
  });
}

/** Of one that reacts to events: when those that wait are due. */
const nextRunOf = ({ rule, dueAtMs, nextRunAtMs, queuedDueAtMs }: Schedule) =>
  rule.kind === "event" ? dueAtMs : nextRunAtMs || queuedDueAtMs;

const shownCron = ({ expressions, timezone, jitterSeconds }: CronRule) => ({
  expressions,
  timezone,
  jitter_seconds: jitterSeconds,
});

/** @throws DomainError `validation_failed` with every mistake */
export function newSettings(
  body: Static<typeof CreateScheduleBody>,
  secrets: ConfigurationSecrets,
  nowMs: number,
): ScheduleSettings {
  const rule = ruleOf(body, null, nowMs);
  if (body.kind !== undefined && body.kind !== rule.kind)
    throw invalid([
      { path: "/kind", code: "not_allowed", message: `the rule that is given is ${rule.kind}` },
    ]);
  return {
    name: body.name ?? describeRule(rule),
    rule,
    webhook: checkedWebhook(webhookOf(body.webhook ?? null, null, secrets), rule),
    inputs: body.inputs ?? {},
    configOverrides: body.config_overrides ?? null,
    priority: body.priority ?? defaultTerms.priority,
    overlap: body.overlap ?? "skip",
    missedPolicy: body.missed ?? "run_once",
    catchupLimit: body.catchup_limit ?? MISSED_MAX,
    untilMs: timeOf(body.until ?? null),
    maxRuns: body.max_runs ?? null,
    pauseAfterFailures: body.pause_after_failures ?? null,
  };
}

/** @throws DomainError `validation_failed` with every mistake */
export function changedSettings(
  body: Static<typeof UpdateScheduleBody>,
  before: Schedule,
  secrets: ConfigurationSecrets,
  nowMs: number,
): Partial<ScheduleSettings> {
  const hasRule = body.cron !== undefined || body.delayed !== undefined || body.event !== undefined;
  const rule = hasRule ? ruleOf(body, before.rule, nowMs) : before.rule;
  const webhook =
    body.webhook === undefined ? before.webhook : webhookOf(body.webhook, before.webhook, secrets);
  checkedWebhook(webhook, rule);
  return {
    ...(body.name !== undefined && { name: body.name }),
    ...(hasRule && { rule }),
    ...(webhook !== before.webhook && { webhook }),
    ...(body.inputs !== undefined && { inputs: body.inputs }),
    ...(body.config_overrides !== undefined && { configOverrides: body.config_overrides }),
    ...(body.priority !== undefined && { priority: body.priority }),
    ...(body.overlap !== undefined && { overlap: body.overlap }),
    ...(body.missed !== undefined && { missedPolicy: body.missed }),
    ...(body.catchup_limit !== undefined && { catchupLimit: body.catchup_limit }),
    ...(body.until !== undefined && { untilMs: timeOf(body.until) }),
    ...(body.max_runs !== undefined && { maxRuns: body.max_runs }),
    ...(body.pause_after_failures !== undefined && { pauseAfterFailures: body.pause_after_failures }),
  };
}

/** @throws DomainError `validation_failed` when schedules by this rule have none */
function checkedWebhook(webhook: Webhook | null, rule: Rule): Webhook | null {
  if (webhook === null) return null;
  if (rule.kind !== "event")
    throw invalid([
      { path: "/webhook", code: "not_allowed", message: "is for schedules that react to events" },
    ]);
  if (!runEndTypes.includes(rule.type)) return webhook;
  const message = `events of type ${rule.type} are told by Troupe itself, when a run ends; use another type`;
  throw invalid([{ path: "/webhook", code: "not_allowed", message }]);
}

const timeOf = (text: string | null) => (text === null ? null : Date.parse(text));

interface GivenRule {
  readonly cron?: Static<typeof Cron>;
  readonly delayed?: Static<typeof Delayed>;
  readonly event?: Static<typeof EventInput>;
}

/** @param before the rule that a patch changes; its kind stays */
function ruleOf(given: GivenRule, before: Rule | null, nowMs: number): Rule {
  const [kind, ...others] = scheduleKinds.filter((one) => given[one] !== undefined);
  if (kind === undefined || others.length > 0) {
    const message = "exactly one of cron, delayed and event must be given";
    const code = kind === undefined ? "missing" : "not_allowed";
    throw invalid([{ path: `/${others[0] ?? "cron"}`, code, message }]);
  }
  if (before !== null && before.kind !== kind) {
    const message = `the schedule is ${before.kind} and stays it; make a new one`;
    throw invalid([{ path: `/${kind}`, code: "not_allowed", message }]);
  }
  if (given.delayed !== undefined) return { kind: "delayed", atMs: atOf(given.delayed, nowMs) };
  if (given.event === undefined) return cronOf(given.cron ?? {}, before?.kind === "cron" ? before : null);
  const made = eventRuleOf(given.event, before?.kind === "event" ? before : null);
  if ("entries" in made) throw invalid(made.entries);
  return made;
}

function cronOf(cron: Static<typeof Cron>, before: CronRule | null): CronRule {
  const rule: CronRule = {
    kind: "cron",
    expressions: cron.expressions ?? before?.expressions ?? [],
    timezone: cron.timezone ?? before?.timezone ?? "UTC",
    jitterSeconds: cron.jitter_seconds ?? before?.jitterSeconds ?? 0,
  };
  const entries = rule.expressions.flatMap((expression, i): readonly DomainErrorEntry[] => {
    const problem = expressionProblem(expression);
    const path = `/cron/expressions/${i}`;
    return problem === null ? [] : [{ path, code: "invalid_cron", message: `${expression}: ${problem}` }];
  });
  if (rule.expressions.length === 0)
    entries.push({ path: "/cron/expressions", code: "missing", message: "is missing" });
  if (!isTimezone(rule.timezone)) {
    const message = `${rule.timezone} is no IANA time zone; one is Europe/Berlin`;
    entries.push({ path: "/cron/timezone", code: "invalid_timezone", message });
  }
  if (entries.length > 0) throw invalid(entries);
  return rule;
}

function atOf({ at, delay_seconds: delaySeconds }: Static<typeof Delayed>, nowMs: number): number {
  if ((at === undefined) === (delaySeconds === undefined)) {
    const message = "exactly one of at and delay_seconds must be given";
    const code = at === undefined ? "missing" : "not_allowed";
    throw invalid([{ path: "/delayed/at", code, message }]);
  }
  if (at === undefined) return nowMs + (delaySeconds ?? 0) * 1_000;
  const atMs = Date.parse(at);
  if (atMs >= nowMs - PAST_MS_MAX) return atMs;
  throw invalid([{ path: "/delayed/at", code: "never_due", message: "this time is over" }]);
}

function invalid(entries: readonly DomainErrorEntry[]): DomainError {
  const messages = entries.map(({ message }) => message).join("; ");
  return new DomainError("validation_failed", `Invalid schedule: ${messages}.`, entries);
}

/** Whose runs are started. @throws DomainError `validation_failed` */
export function targetOf(body: Static<typeof CreateScheduleBody>): {
  readonly jobId?: string;
  readonly blueprintId?: string;
} {
  const jobId = body.target?.job_id ?? body.job_id;
  const blueprintId = body.target?.blueprint_id ?? body.blueprint_id;
  const given = [body.target?.job_id, body.target?.blueprint_id, body.job_id, body.blueprint_id];
  if (given.filter((one) => one !== undefined).length !== 1) {
    const message = "exactly one of target.job_id and target.blueprint_id must be given, there or at the top";
    const code = jobId === undefined && blueprintId === undefined ? "missing" : "not_allowed";
    throw invalid([{ path: "/target", code, message }]);
  }
  return jobId === undefined ? { blueprintId: blueprintId ?? "" } : { jobId };
}
