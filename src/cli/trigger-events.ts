// `troupe events emit`, `list` and `show`: events that schedules react to.

import type { TriggerEvent } from "../../sdk/src/index.ts";
import type { JsonValue } from "../engine/json.ts";
import { printAnswer, UsageError } from "./command.ts";
import { readJsonFile, withSettings } from "./input.ts";
import { limitOf, printList } from "./lists.ts";
import { ago, fieldLines } from "./record-text.ts";
import type { ServerCall } from "./session.ts";
import { cleanText } from "./text.ts";

export async function list(call: ServerCall): Promise<number> {
  const query = { type: call.text("type") ?? undefined, source: call.text("source") ?? undefined };
  return printList<TriggerEvent>(call, {
    limit: limitOf(call),
    items: (pageSize) => call.client.events.list({ ...query, page_size: pageSize }),
    head: ["EVENT", "WHEN", "TYPE", "SOURCE", "STARTED"],
    row: (event) => [
      event.event_id,
      ago(event.received_at),
      event.type,
      event.source ?? "-",
      startedText(event),
    ],
    nothing: "No events. `troupe events emit` tells of one.",
  });
}

export async function emit(call: ServerCall): Promise<number> {
  const [type = ""] = call.words;
  const payload = payloadOf(call);
  const event = await call.client.events.emit({
    type,
    ...(payload !== undefined && { payload }),
    ...optional("source", call.text("source")),
    ...optional("event_id", call.text("id")),
  });
  return printAnswer(call, event, () => [cleanText(event.event_id), ...matchLines(event)]);
}

export async function show(call: ServerCall): Promise<number> {
  const event = await call.client.events.get(call.words[0] ?? "");
  return printAnswer(call, event, () => [
    cleanText(event.event_id),
    ...fieldLines([
      ["type", event.type],
      ["source", event.source],
      ["received", ago(event.received_at)],
      ["payload", JSON.stringify(event.payload)],
    ]),
    ...matchLines(event),
  ]);
}

/** --payload, and every --set in it. */
function payloadOf(call: ServerCall): JsonValue | undefined {
  const file = call.text("payload");
  const settings = call.texts("set");
  const given = file === null ? undefined : readJsonFile(file);
  if (settings.length === 0) return given;
  if (given !== undefined && (typeof given !== "object" || given === null || Array.isArray(given)))
    throw new UsageError("--set sets values of an object, and --payload is none.");
  return withSettings({ ...(given as object) }, settings);
}

const optional = <Name extends string>(name: Name, value: string | null) =>
  (value === null ? {} : { [name]: value }) as { readonly [key in Name]?: string };

function startedText({ matched }: TriggerEvent): string {
  if (matched.length === 0) return "nothing";
  const [one] = matched;
  return matched.length === 1 && one !== undefined ? becameText(one) : `${matched.length} schedules`;
}

const matchLines = ({ matched }: TriggerEvent) =>
  fieldLines(matched.map((match) => [match.schedule_id, becameText(match)] as const));

function becameText({ run_id: runId, skipped, reason }: TriggerEvent["matched"][number]): string {
  return [runId, skipped, reason].filter((part) => part !== undefined).join(": ");
}
