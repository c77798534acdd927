// `troupe schedules …`: rules by which runs of a job are started.

import type { Schedule, SchedulePatch } from "../../sdk/src/index.ts";
import { parseJson } from "../engine/json.ts";
import { limits } from "../engine/limits.ts";
import { MASK } from "../engine/sealed.ts";
import { priorities } from "../engine/share.ts";
import { isCalendarDay } from "../lib/dates.ts";
import { type FilterOp, filterOps } from "../schedules/event-filter.ts";
import { missedPolicies, overlapPolicies, scheduleKinds, scheduleStates } from "../schedules/records.ts";
import { webhookSchemes } from "../schedules/webhook-signatures.ts";
import { type Call, printAnswer, UsageError } from "./command.ts";
import { checkedId, idOf } from "./ids.ts";
import { durationMs, overridesOf, readLine, readObject } from "./input.ts";
import { countOf, limitOf, oneOf, printList } from "./lists.ts";
import { ago, away, fieldLines } from "./record-text.ts";
import { statusWord } from "./result-text.ts";
import type { ServerCall } from "./session.ts";
import type { Style } from "./terminal.ts";
import { cleanText, localTime } from "./text.ts";
import { started } from "./watching.ts";

const CATCHUP_MAX = 100;

const rowStyles: Readonly<Partial<Record<Schedule["status"], Style>>> = {
  paused: "yellow",
  completed: "dim",
  failed: "red",
};

export async function list(call: ServerCall): Promise<number> {
  const job = call.text("job");
  const query = {
    kind: oneOf(call, "kind", scheduleKinds),
    status: oneOf(call, "status", scheduleStates),
    job_id: job === null ? undefined : checkedId(job, "job"),
  };
  return printList<Schedule>(call, {
    limit: limitOf(call),
    items: (pageSize) => call.client.schedules.list({ ...query, page_size: pageSize }),
    head: ["SCHEDULE", "STATUS", "NEXT RUN", "LAST ONE", "NAME", "RULE"],
    row: ({ next_run_at: next, last_dispatch: last, ...schedule }) => [
      schedule.schedule_id,
      schedule.status,
      next === null ? "-" : away(next),
      last === null ? "-" : `${last.outcome} ${ago(last.dispatched_at)}`,
      schedule.name,
      schedule.description,
    ],
    style: ({ status }) => rowStyles[status] ?? null,
    nothing: "No schedules. `troupe schedules create` makes one.",
  });
}

export async function create(call: ServerCall): Promise<number> {
  const target = targetOf(call);
  const rule = ruleOf(call);
  if (rule.cron?.expressions === undefined && rule.delayed === undefined && rule.event?.type === undefined)
    throw new UsageError("When? Give --cron EXPR, --at TIME, --in DURATION or --on TYPE.");
  const schedule = await call.client.schedules.create({ ...target, ...rule, ...settingsOf(call) });
  noteWhatItSays(call, schedule);
  return printAnswer(call, schedule, () => cleanText(schedule.schedule_id));
}

export async function show(call: ServerCall): Promise<number> {
  const schedule = await call.client.schedules.get(idOf(call, "schedule"));
  return printAnswer(call, schedule, () => scheduleLines(schedule, call));
}

export async function update(call: ServerCall): Promise<number> {
  const id = idOf(call, "schedule");
  const patch: SchedulePatch = { ...ruleOf(call), ...settingsOf(call) };
  if (Object.keys(patch).length === 0)
    throw new UsageError("Nothing to change. `troupe schedules update --help` lists what can be changed.");
  const schedule = await call.client.schedules.update(anyVersion(id), patch);
  noteWhatItSays(call, schedule);
  return printAnswer(call, schedule, () => `${id} changed, revision ${schedule.revision}`);
}

export async function pause(call: ServerCall): Promise<number> {
  const schedule = await call.client.schedules.pause(idOf(call, "schedule"));
  return printAnswer(call, schedule, () => `${cleanText(schedule.schedule_id)} ${schedule.status}`);
}

export async function resume(call: ServerCall): Promise<number> {
  const schedule = await call.client.schedules.resume(idOf(call, "schedule"));
  if (!call.flag("json")) call.terminal.note(nextText(schedule));
  return printAnswer(call, schedule, () => `${cleanText(schedule.schedule_id)} ${schedule.status}`);
}

export async function dispatch(call: ServerCall): Promise<number> {
  const run = await call.client.schedules.dispatch(idOf(call, "schedule"));
  return started(call, run.run_id, run);
}

export async function remove(call: ServerCall): Promise<number> {
  const id = idOf(call, "schedule");
  await call.client.schedules.delete(anyVersion(id));
  return printAnswer(call, { schedule_id: id, deleted: true }, () => `${id} deleted`);
}

/** A person who changes a schedule by its id has not read a version of it. */
const anyVersion = (scheduleId: string) => ({ schedule_id: scheduleId, etag: "*" });

// ---------------------------------------------------------------------------------- what was asked for

function targetOf(call: Call) {
  const blueprint = call.text("blueprint");
  if ((blueprint === null) === (call.words[0] === undefined))
    throw new UsageError("Whose runs? Give the id of a job or --blueprint ID, one of them.");
  return blueprint === null
    ? { job_id: idOf(call, "job") }
    : { blueprint_id: checkedId(blueprint, "blueprint") };
}

/** What is said of the rule: all of it, or some of it when it is changed. */
function ruleOf(call: Call): Pick<SchedulePatch, "cron" | "delayed" | "event"> {
  const expressions = call.texts("cron");
  const cron = {
    ...(expressions.length > 0 && { expressions }),
    ...given("timezone", call.text("timezone")),
    ...given("jitter_seconds", secondsOf(call, "jitter")),
  };
  const delayed = { ...given("at", timeOf(call, "at")), ...given("delay_seconds", delayOf(call)) };
  const event = eventOf(call);
  const [hasCron, hasDelayed, hasEvent] = [cron, delayed, event].map((part) => Object.keys(part).length > 0);
  if (hasEvent && (hasCron || hasDelayed))
    throw new UsageError("--on and what goes with it are for events, and --cron, --at and --in for times.");
  if (hasCron && hasDelayed)
    throw new UsageError("--at and --in are for one run, and --cron, --timezone and --jitter for many.");
  if (Object.keys(delayed).length > 1) throw new UsageError("--at and --in name one time: give one of them.");
  return { ...(hasCron && { cron }), ...(hasDelayed && { delayed }), ...(hasEvent && { event }) };
}

function eventOf(call: Call): NonNullable<SchedulePatch["event"]> {
  const conditions = call.texts("where");
  return {
    ...given("type", call.text("on")),
    ...(conditions.length > 0 && { filters: conditions.map(filterOf) }),
    ...orNone(call, "debounce_seconds", "debounce", () => secondsOf(call, "debounce")),
    ...orNone(call, "throttle_seconds", "throttle", () => secondsOf(call, "throttle")),
    ...orNone(call, "batch", "batch", () => batchOf(call)),
  };
}

/** `/payload/size gt 10`: a value that is JSON is that JSON, and any other one is a text. */
function filterOf(condition: string) {
  const [, path = "", op = "", text = ""] = /^(\S*) (\w+)(?: (.+))?$/s.exec(condition) ?? [];
  if (!filterOps.includes(op as FilterOp))
    throw new UsageError(
      `--where ${JSON.stringify(cleanText(condition))} is not PATH OP VALUE, with one of ${filterOps.join(", ")}: --where "/payload/size gt 10"`,
    );
  const parsed = parseJson(text, limits.jsonDepthMax);
  const value = text === "" ? {} : { value: parsed === null ? text : parsed.value };
  return { path, op: op as FilterOp, ...value };
}

function batchOf(call: Call): { readonly max: number; readonly seconds: number } | null {
  const text = call.text("batch");
  if (text === null) return null;
  const [, max, seconds] = /^(\d{1,4})\/(\d{1,5})$/.exec(text) ?? [];
  if (max !== undefined && seconds !== undefined) return { max: Number(max), seconds: Number(seconds) };
  throw new UsageError("--batch needs events and seconds: --batch 100/60");
}

/** A merge patch: null makes another one. */
function webhookOf(call: Call): SchedulePatch["webhook"] {
  const scheme = call.text("webhook");
  if (scheme === "none") return null;
  const file = call.text("webhook-secret");
  const part = oneOf(call, "new-webhook", ["secret", "path"]);
  if (part === "secret" && file !== null)
    throw new UsageError(
      "--new-webhook secret makes a secret, and --webhook-secret gives one: use one of them.",
    );
  const webhook = {
    ...given("scheme", oneOf(call, "webhook", webhookSchemes)),
    ...given("secret", file === null ? null : readLine(file)),
    ...(part !== undefined && { [part]: null }),
  };
  return Object.keys(webhook).length === 0 ? undefined : webhook;
}

function settingsOf(call: Call) {
  const webhook = webhookOf(call);
  return {
    ...(webhook !== undefined && { webhook }),
    ...given("name", call.text("name")),
    ...given("inputs", readObject(call, "input")),
    ...given("config_overrides", overridesOf(call)),
    ...given("priority", oneOf(call, "priority", priorities)),
    ...given("overlap", oneOf(call, "overlap", overlapPolicies)),
    ...given("missed", oneOf(call, "missed", missedPolicies)),
    ...given("catchup_limit", countOf(call, "catchup-limit", { max: CATCHUP_MAX, example: 10 })),
    ...orNone(call, "until", "until", () => timeOf(call, "until")),
    ...orNone(call, "max_runs", "max-runs", () => countOf(call, "max-runs", { example: 10 })),
    ...orNone(call, "pause_after_failures", "pause-after-failures", () =>
      countOf(call, "pause-after-failures", { example: 3 }),
    ),
  };
}

/** A field that was asked for. */
const given = <Name extends string, Value>(name: Name, value: Value | null | undefined) =>
  (value == null ? {} : { [name]: value }) as { readonly [key in Name]?: Value };

/** A field whose option may also say that there is none. */
const orNone = <Name extends string, Value>(
  call: Call,
  name: Name,
  option: string,
  read: () => Value | null | undefined,
) =>
  (call.text(option) === "none" ? { [name]: null } : given(name, read())) as {
    readonly [key in Name]?: Value | null;
  };

function secondsOf(call: Call, option: string): number | null {
  const text = call.text(option);
  if (text === null) return null;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new UsageError(`--${option} needs a whole number of seconds: --${option} 60`);
}

function delayOf(call: Call): number | null {
  const text = call.text("in");
  if (text === null) return null;
  const ms = durationMs(text);
  if (ms !== null) return ms / 1_000;
  throw new UsageError(`--in: ${JSON.stringify(cleanText(text))} is not a duration. Use 30s, 10m, 2h or 3d.`);
}

/** A time as the gateway takes it; one without an offset is by this machine's clock. */
function timeOf(call: Call, option: string): string | null {
  const text = call.text(option);
  if (text === null) return null;
  const ms = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(ms) && isCalendarDay(text)) return new Date(ms).toISOString();
  throw new UsageError(
    `--${option}: ${JSON.stringify(cleanText(text))} is not a time. Use 2026-12-01T07:30 or 2026-12-01T07:30:00Z.`,
  );
}

// ---------------------------------------------------------------------------------- what is shown

function nextText({ status, kind, next_runs: [next] }: Schedule): string {
  if (status === "paused") return "It is paused.";
  if (status === "active" && kind === "event") return "It waits for events.";
  return next === undefined ? "No run will be started." : `Next: ${localTime(next)}.`;
}

/** The answer of a change: what the schedule does now, and the webhook's secret while it is shown. */
function noteWhatItSays(call: ServerCall, schedule: Schedule): void {
  if (call.flag("json")) return;
  call.terminal.note(`${cleanText(schedule.description)}. ${nextText(schedule)}`);
  const { webhook } = schedule;
  if (webhook === null || webhook.secret === MASK) return;
  call.terminal.note(`Send events, signed as ${webhook.scheme} does, to ${webhookUrl(call, webhook)}`);
  call.terminal.note(`Secret, shown this once: ${cleanText(webhook.secret)}`);
}

/** As this command reaches the gateway; others may have to use another name of it. */
const webhookUrl = ({ client }: ServerCall, { path }: NonNullable<Schedule["webhook"]>) =>
  cleanText(client.baseUrl.replace(/\/api\/v1$/, "") + path);

function scheduleLines(schedule: Schedule, call: ServerCall): readonly string[] {
  const { paint } = call.terminal;
  const {
    cron,
    webhook,
    counts,
    last_dispatch: last,
    next_runs: nextRuns,
    next_run_at: nextStart,
  } = schedule;
  const isPutOff = nextStart !== null && nextStart !== nextRuns[0];
  return [
    `${cleanText(schedule.schedule_id)} ${statusWord(schedule.status, paint)}`,
    ...fieldLines([
      ["why", schedule.status_reason],
      ["name", schedule.name],
      ["rule", schedule.description],
      ["cron", cron?.expressions.join("; ") ?? null],
      ["webhook", webhook && `${webhook.scheme}, ${webhookUrl(call, webhook)}`],
      ["job", schedule.job_id],
      ["blueprint", schedule.target.blueprint_id ?? null],
      ["inputs", jsonOf(schedule.inputs)],
      ["config", schedule.config_overrides && jsonOf(schedule.config_overrides)],
      ["priority", schedule.priority === "normal" ? null : schedule.priority],
      ["overlap", schedule.overlap],
      [
        "missed",
        schedule.missed === "run_all" ? `run_all, ${schedule.catchup_limit} at most` : schedule.missed,
      ],
      ["until", schedule.until && localTime(schedule.until)],
      ["max runs", schedule.max_runs],
      ["pause after", schedule.pause_after_failures && `${schedule.pause_after_failures} failures in a row`],
      ...nextRuns.map((time, i) => [i === 0 ? "next" : "", localTime(time)] as const),
      ["next start", isPutOff ? localTime(nextStart) : null],
      ["last", last && lastText(last)],
      [
        "counts",
        `${counts.dispatched} dispatched, ${counts.skipped} skipped, ${counts.missed} missed, ${counts.failed} failed`,
      ],
      ["created", ago(schedule.created_at)],
      ["changed", schedule.revision > 1 ? `revision ${schedule.revision}` : null],
    ]),
  ];
}

function lastText({ due_at, outcome, run_id, reason }: NonNullable<Schedule["last_dispatch"]>): string {
  return [`${outcome}, of ${localTime(due_at)}`, run_id, reason].filter((part) => part !== null).join(": ");
}

const jsonOf = (value: object) => (Object.keys(value).length === 0 ? null : JSON.stringify(value));
