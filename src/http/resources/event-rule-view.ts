// The rule of a schedule that reacts to events, as the API takes and shows it.

import type { JsonValue } from "../../engine/json.ts";
import type { DomainErrorEntry } from "../../lib/domain-error.ts";
import { type EventFilter, filterOps, filterProblem } from "../../schedules/event-filter.ts";
import type { EventRule } from "../../schedules/records.ts";
import { type Schema, type Static, Type } from "../core/type.ts";

const FILTERS_MAX = 20;
const BATCH_MAX = 1_000;
const WAIT_SECONDS_MAX = 86_400;

export const EVENT_TYPE_PATTERN = "^[a-z0-9._-]{1,200}$";

const path = Type.String(
  "A JSON Pointer from the event: /type, /source, /payload and what is in it, /event_id, /received_at.",
  { maxLength: 500, examples: ["/payload/status"] },
);
const op = Type.OneOf(
  filterOps,
  "eq and ne compare any JSON; in: one of a list; prefix: of a text; contains: a part of a text, or an item of a list; exists: true or false; gt, gte, lt and lte compare numbers, or texts. What is not there passes ne and exists: false only.",
);
const value = Type.Unknown("What is compared with. Of exists: true without it.", { examples: ["done"] });

export const FilterInput = Type.Input({ path, op, value }, { required: ["path", "op"] });

const seconds = (what: string) =>
  Type.Nullable(Type.Integer(what, { minimum: 1, maximum: WAIT_SECONDS_MAX }));
const batch = {
  max: Type.Integer("A run starts when there are so many.", { minimum: 1, maximum: BATCH_MAX }),
  seconds: Type.Integer("And at most so long after the first.", { minimum: 1, maximum: WAIT_SECONDS_MAX }),
};

const debounce_seconds = seconds(
  "A run is started for the last of several events, once none has come for so long.",
);
const throttle_seconds = seconds("After the start of a run, events start none for so long.");

const Batch = Type.Input(batch, { required: ["max", "seconds"] });
/** Not by Type.Nullable, which would tell a mistake inside it three times. */
const BatchInput = { ...Batch, type: ["object", "null"] } as Schema<Static<typeof Batch> | null>;

export const EventInput = Type.Input(
  {
    type: Type.String("Of the events.", { pattern: EVENT_TYPE_PATTERN, examples: ["file.arrived"] }),
    filters: Type.Array(FilterInput, "All of them must let an event pass.", { maxItems: FILTERS_MAX }),
    debounce_seconds,
    throttle_seconds,
    batch: BatchInput,
  },
  {
    description:
      "What events start runs. At most one of debounce_seconds, throttle_seconds and batch. A run of a batch is given all of its events: templates begin at {events: […]}.",
  },
);

export const EventShown = Type.Object({
  type: Type.String(),
  filters: Type.Array(Type.Object({ path, op, value })),
  debounce_seconds,
  throttle_seconds,
  batch: Type.Nullable(Type.Object(batch)),
});

export const renderEventRule = ({ type, filters, debounceSeconds, throttleSeconds, batch }: EventRule) => ({
  type,
  filters,
  debounce_seconds: debounceSeconds,
  throttle_seconds: throttleSeconds,
  batch,
});

/** @param before the rule that a patch changes @returns the rule, or every mistake in it */
export function eventRuleOf(
  given: Static<typeof EventInput>,
  before: EventRule | null,
): EventRule | { readonly entries: readonly DomainErrorEntry[] } {
  const { type = before?.type, filters, debounce_seconds, throttle_seconds } = given;
  const rule: EventRule = {
    kind: "event",
    type: type ?? "",
    filters: filters?.map(filterOf) ?? before?.filters ?? [],
    debounceSeconds: (debounce_seconds === undefined ? before?.debounceSeconds : debounce_seconds) ?? null,
    throttleSeconds: (throttle_seconds === undefined ? before?.throttleSeconds : throttle_seconds) ?? null,
    batch: (given.batch === undefined ? before?.batch : given.batch) ?? null,
  };
  const entries = rule.filters.flatMap((filter, i): readonly DomainErrorEntry[] => {
    const problem = filterProblem(filter);
    if (problem === null) return [];
    const { field, message } = problem;
    return [{ path: `/event/filters/${i}/${field}`, code: "invalid_filter", message }];
  });
  if (type === undefined) entries.push({ path: "/event/type", code: "missing", message: "is missing" });
  const paces = [rule.debounceSeconds, rule.throttleSeconds, rule.batch].filter((one) => one !== null);
  if (paces.length > 1) {
    const message = "at most one of debounce_seconds, throttle_seconds and batch may be given";
    entries.push({ path: "/event", code: "not_allowed", message });
  }
  return entries.length > 0 ? { entries } : rule;
}

const filterOf = ({ path, op, value }: Static<typeof FilterInput>): EventFilter => ({
  path,
  op,
  value: value === undefined && op === "exists" ? true : ((value ?? null) as JsonValue),
});
