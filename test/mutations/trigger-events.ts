// Faults of trigger events: that each is in one run of every schedule that reacts to it, or is said not to be.

import { type Mutation, mutationsOf } from "./mutation.ts";

const simulation = ["test/simulation/schedules.test.ts"];
const gateway = ["test/gateway/trigger-events.test.ts"];
const unit = ["src/schedules/trigger-events.test.ts"];
const contract = ["src/store/sql/trigger-events.test.ts"];

const step = mutationsOf("src/schedules/event-step.ts", ["src/schedules/event-step.test.ts"]);
const events = mutationsOf("src/schedules/trigger-events.ts", simulation);
const queue = mutationsOf("src/schedules/event-queue.ts", simulation);
const starts = mutationsOf("src/schedules/run-starts.ts", simulation);
const store = mutationsOf("src/store/sql/trigger-events.ts", contract);
const filter = mutationsOf("src/schedules/event-filter.ts", ["src/schedules/event-filter.test.ts"]);
const templates = mutationsOf("src/schedules/templates.ts", ["src/schedules/templates.test.ts"]);
const view = mutationsOf("src/http/resources/trigger-events.ts", gateway);

const ends = mutationsOf("src/launch/run-end-events.ts", ["src/launch/run-end-events.test.ts"]);
const runEnds = [
  ends("two programs tell of one end", "isFirst && end.status", "end.status"),
  ends(
    "two programs tell of one end that somebody listens to",
    "isFirst && insert !== null",
    "insert !== null",
  ),
  ends("cancelled runs are told of", 'end.status !== "cancelled"', "true"),
  ends("ends that could not be told are forgotten", "this.#lookIn(RETRY_MS);", ""),
  ends("ends that nobody saw are not told", "this.#lookIn(0);", ""),
  {
    ...ends(
      "every chain of runs is as deep as its first event",
      "await triggerEvents.depthBehind(runId)",
      "0",
    ),
    tests: ["test/gateway/run-end-events.test.ts"],
  },
  mutationsOf("src/store/sql/runs.ts", ["src/store/sql/runs.test.ts"])(
    "long results are told",
    'eb.fn<number>("length", ["j.result_json"]), "<=", sql.lit(TOLD_CHARS_MAX)',
    'eb.fn<number>("length", ["j.result_json"]), ">=", sql.lit(0)',
  ),
  {
    ...view("anybody tells of the ends of runs", "runEndTypes.includes(type)", "false"),
    tests: ["test/gateway/run-end-events.test.ts"],
  },
];

const runtime = ["test/runtime/schedules.test.ts"];
const runtimeDoor = [
  mutationsOf("src/bundles/memory-source.ts", runtime)(
    "payloads lead out of their folder",
    ' || part === ".."',
    "",
  ),
  mutationsOf("src/bundles/memory-source.ts", runtime)(
    "scripts in payloads cannot be started",
    "=== SHEBANG",
    "=== null",
  ),
  mutationsOf("src/http/resources/schedule-sources.ts", runtime)(
    "one of two targets is taken",
    "(path === undefined ? 0 : 1) !== 1",
    "(path === undefined ? 0 : 1) < 1",
  ),
  mutationsOf("src/http/resources/schedules.ts", runtime)(
    "the runtime API asks for If-Match",
    'if (api.name === "runtime" && request.headers["if-match"] === undefined) return;',
    "",
  ),
  mutationsOf("src/http/resources/api.ts", runtime)(
    "bodies are taken unchecked",
    "checkBody(schema, body);",
    "",
  ),
];

const counted = (file: string) => mutationsOf(file, ["test/gateway/schedule-metrics.test.ts"]);
const counts = [
  mutationsOf("src/schedules/scheduler.ts", ["src/schedules/scheduler.test.ts"])(
    "times that nobody came to are not counted for the metrics",
    "meter.missed(Math.max(0, schedule.missed - missed));",
    "",
  ),
  counted("src/observability/metrics/schedule-counts.ts")(
    "repeated events are counted as new ones",
    "if (isRepeated) {",
    "if (false) {",
  ),
  counted("src/schedules/scheduler.ts")(
    "refusals and waits are not counted",
    'if (outcome !== null && outcome !== "dispatched") meter.dispatched(outcome);',
    "",
  ),
  counted("src/schedules/scheduler.ts")(
    "delays are not measured",
    "if (run !== null && nextRunAtMs",
    "if (false && nextRunAtMs",
  ),
  counted("src/http/resources/webhook-requests.ts")(
    "repeated requests to webhooks are counted as accepted",
    'reply.hasHeader("idempotency-replayed")',
    "false",
  ),
];

export const triggerEventMutations: readonly Mutation[] = [
  events(
    "a run that was checked for an older definition of its schedule is started",
    "prepared?.revision === schedule.revision",
    "prepared !== undefined",
  ),
  {
    ...events(
      "an event that is known is written again",
      "const known = eventId === null ? null : await writes.events.event(eventId);",
      "const known = null;",
    ),
    tests: unit,
  },
  {
    ...events("a schedule whose run cannot be checked fails the event of others", ".catch(() => null)", ""),
    tests: unit,
  },
  events(
    "an event whose run cannot begin at once is forgotten",
    "waitForStart(schedule, arrived(content)) : wanted",
    "null : wanted",
  ),
  events(
    "events that a later one replaces still wait",
    "arrival.replaces && schedule.waitingEvents > 0",
    "false",
  ),
  queue(
    "a run is started for events that are not the oldest",
    "events.some(({ seq }, i) => seq !== oldest[i])",
    "oldest.length === 0",
  ),
  queue(
    "waiting events are given to a run that was checked for an older definition",
    "now.revision !== schedule.revision || ",
    "",
  ),
  starts("events of a run that was started wait on", "if (throughSeq !== undefined) {", "if (false) {"),
  starts(
    "events wait for ever for a schedule that has ended",
    'waitingEvents === 0 || status === "active"',
    'status !== "none" || status === "active"',
  ),
  step("a paused schedule reacts to events", 'schedule.status === "paused"', "false"),
  step(
    "a full batch waits for its time",
    "isBatchFull(joined, max) ? Math.min(nowMs, openUntilMs) : openUntilMs",
    "openUntilMs",
  ),
  step(
    "a batch is put off by each of its events",
    "isSooner ? Math.min(dueMs, schedule.dueAtMs ?? dueMs) : dueMs",
    "dueMs",
  ),
  step("any number of events may wait", "waitingEvents >= WAITING_EVENTS_MAX || ", ""),
  step("any amount of payloads may wait", " || waitingBytes + bytes > WAITING_BYTES_MAX", ""),
  step(
    "a clock that is put back throttles for hours",
    " && throttledUntilMs - nowMs <= rule.throttleSeconds * 1_000",
    "",
  ),
  step("runs are started behind the end of a schedule", "if (isOver(schedule, nowMs)) return null;", ""),
  step(
    "what waits at the end of a schedule is started behind it",
    "Math.min(dueMs, untilMs ?? dueMs)",
    "dueMs",
  ),
  { ...step("runs of one schedule overlap", 'isBusy && overlap === "skip"', "false"), tests: simulation },
  {
    ...step(
      "a due batch does not wait for the run before",
      'hasOpen && overlap === "queue_one") {\n    const next = { ...schedule, q',
      "false) {\n    const next = { ...schedule, q",
    ),
    tests: simulation,
  },
  store(
    "an event at the end of a page has only a part of what schedules have made of it",
    "i === 0 || seq > lastSeq",
    "true",
  ),
  store(
    "waiting events are removed with old ones",
    '.where("m.waiting", "=", sql.lit(1)),\n        ),',
    '.where("m.waiting", "=", sql.lit(2)),\n        ),',
  ),
  store("events are kept however many there are", "seq > keptFrom && ", ""),
  store(
    "events of other schedules wait no more either",
    '.where("schedule_id", "=", scheduleId)\n      .where("waiting"',
    '.where("waiting"',
  ),
  store(
    "completed schedules listen",
    '[sql.lit("active"), sql.lit("paused")]',
    '[sql.lit("active"), sql.lit("paused"), sql.lit("completed")]',
  ),
  filter("a text is compared with a number", "typeof found === typeof value && isOrdered", "isOrdered"),
  filter("one of several filters is enough", "filters.every(", "filters.some("),
  templates(
    "what an event brings is taken for a template",
    "const given = valueFor(template, values);",
    "const given = fill(valueFor(template, values));",
  ),
  templates(
    "a template is filled in again and again",
    "return room < 0 ? undefined : whole;",
    "return whole;",
  ),
  view("a payload of any size is taken", "bytesOf(text) > PAYLOAD_BYTES_MAX", "false"),
  view(
    "a repeated event is answered with what has become of it",
    "renderEvent(event, firstMatch)",
    "renderEvent(event, presentMatch)",
  ),
  {
    ...mutationsOf("src/schedules/schedules.ts", gateway)(
      "events wait for a schedule that was deleted",
      "if (now.waitingEvents > 0)",
      "if (false)",
    ),
  },
  ...runEnds,
  ...runtimeDoor,
  mutationsOf("src/cli/schedules.ts", ["test/integration/cli-triggers.test.ts"])(
    "a condition is sent with every value as a text",
    "parsed === null ? text : parsed.value };\n  return { path",
    "text };\n  return { path",
  ),
  mutationsOf("src/schedules/event-step.ts", gateway)(
    "open runs are of no account for any event",
    "debounceSeconds !== null || batch !== null;",
    "true;",
  ),
  step("a circle of runs goes on for ever", "event.depth >= DEPTH_MAX", "false"),
  {
    fault: "two events have one run",
    file: "src/schedules/rule.ts",
    search: "digestOf(scheduleId, eventId)",
    replacement: "digestOf(scheduleId, 0)",
    tests: simulation,
  },
  ...counts,
];
