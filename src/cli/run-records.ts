// What a run left in writing: `troupe events`, and `runs timeline` and `runs result`.

import type { TimelineRecord } from "../../sdk/src/index.ts";
import { printAnswer } from "./command.ts";
import { eventLine, readEvent } from "./event-text.ts";
import { idOf } from "./ids.ts";
import { printStream } from "./lists.ts";
import { gatewayRun, withNamedRun } from "./named-run.ts";
import { timelineLine } from "./record-text.ts";
import { failureLines, failureOf } from "./result-text.ts";
import type { ServerCall } from "./session.ts";
import { cleanText } from "./text.ts";
import { exitCodeOf } from "./watching.ts";

const PAGE = 200;

/**
 * `troupe events`: a run's history; with --follow until it has ended.
 *
 * @param only the kind of id it takes; any kind when absent
 */
export function events(only?: "job" | "run"): (call: ServerCall) => Promise<number> {
  return (call) => {
    const { paint } = call.terminal;
    return withNamedRun(
      call,
      (run) =>
        printStream(
          call,
          call.flag("follow") ? run.follow() : run.events(),
          (event) => eventLine(readEvent(event.id, event), paint),
          // The runtime's events have no number of their own.
          ({ id, ...event }) => ("run_id" in event ? { id, ...event } : { sequence: id, ...event }),
        ),
      only,
    );
  };
}

export async function timeline(call: ServerCall): Promise<number> {
  const found = call.client.runs.timeline(idOf(call, "run"), { page_size: PAGE });
  return printStream<TimelineRecord>(call, found, (record) => timelineLine(record, call.terminal.paint));
}

export async function result(call: ServerCall): Promise<number> {
  const id = idOf(call, "run");
  const { terminal } = call;
  const found = await call.client.runs.result(id);
  printAnswer(call, found, () => (found.result === null ? [] : JSON.stringify(found.result, null, 2)));
  const failure = failureOf(found.failure);
  if (call.flag("json") || found.status === "completed") return exitCodeOf(found.status);
  const { address } = gatewayRun(call, id);
  if (failure !== null)
    for (const line of failureLines(failure, terminal.paint, address)) terminal.note(line);
  else if (found.finished_at !== null) terminal.note(`${id} ${cleanText(found.status)}: it has no result.`);
  else {
    const next = `Wait for it: troupe runs wait ${id}`;
    terminal.note(`${id} has not ended yet: ${cleanText(found.status)}. ${next}`);
  }
  return exitCodeOf(found.status);
}
