// What a run left in writing: `troupe runs events`, `timeline`, `result`.

import type { TimelineRecord } from "../../sdk/src/index.ts";
import type { Call } from "./command.ts";
import { eventLine } from "./event-text.ts";
import { idOf } from "./ids.ts";
import { printStream } from "./lists.ts";
import { failureOf, historyEvent, timelineLine } from "./record-text.ts";
import { failureLines } from "./result-text.ts";
import { linkTo } from "./run-files.ts";
import { type Session, withGateway } from "./session.ts";
import { cleanText } from "./text.ts";
import { exitCodeOf } from "./watching.ts";

const PAGE = 200;

export async function events(call: Call): Promise<number> {
  const id = idOf(call, "run");
  return withGateway(call, (session) => followEvents(session, id));
}

/** Prints a run's events; with --follow until it has ended. */
export function followEvents({ call, client }: Session, runId: string): Promise<number> {
  const found = call.flag("follow")
    ? client.runs.follow(runId)
    : client.runs.events(runId, { page_size: PAGE });
  return printStream(call, found, (event) => eventLine(historyEvent(event), call.terminal.paint));
}

export async function timeline(call: Call): Promise<number> {
  const id = idOf(call, "run");
  return withGateway(call, ({ client }) =>
    printStream<TimelineRecord>(call, client.runs.timeline(id, { page_size: PAGE }), (record) =>
      timelineLine(record, call.terminal.paint),
    ),
  );
}

export async function result(call: Call): Promise<number> {
  const id = idOf(call, "run");
  return withGateway(call, async (session) => {
    const { terminal } = call;
    const found = await session.client.runs.result(id);
    if (call.flag("json")) terminal.print(JSON.stringify(found));
    else if (found.result !== null) terminal.print(JSON.stringify(found.result, null, 2));
    const failure = failureOf(found.failure);
    if (call.flag("json") || found.status === "completed") return exitCodeOf(found.status);
    const address = (url: string) => linkTo(session, { url });
    if (failure !== null)
      for (const line of failureLines(failure, terminal.paint, address)) terminal.note(line);
    else if (found.finished_at !== null) terminal.note(`${id} ${cleanText(found.status)}: it has no result.`);
    else
      terminal.note(
        `${id} has not ended yet: ${cleanText(found.status)}. Wait for it: troupe runs wait ${id}`,
      );
    return exitCodeOf(found.status);
  });
}
