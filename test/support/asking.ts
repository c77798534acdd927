// Workers that ask people, for tests: each request once, then waiting for all answers, which become the run's result.

import type { JsonObject } from "../../src/engine/json.ts";
import { executor, graph } from "./graphs.ts";

/** The payload of a `human_input_requested` event. */
export type Question = JsonObject;

/** A graph of one worker that asks, waits, and ends the run with `{"answers": […]}`. */
export function askingGraph(
  graphId: string,
  questions: readonly Question[],
  more: JsonObject = {},
): JsonObject {
  const events = questions
    .map((payload) => JSON.stringify({ type: "human_input_requested", payload }))
    .map((line) => `printf '%s\\n' '${line.replaceAll("'", "'\\''")}' >>"$SVC_EVENT_STREAM"`);
  const script = [
    ...events,
    // Counted by the shell itself: a process for each look would be most of what a test costs.
    'answered() { n=0; while read -r _; do n=$((n + 1)); done <"$SVC_HUMAN_RESPONSES"; }',
    `until answered; [ "$n" -ge ${questions.length} ]; do sleep 0.05; done`,
    `printf '{"complete_run":{"answers":[%s]}}\\n' "$(paste -sd, "$SVC_HUMAN_RESPONSES")"`,
  ].join("\n");
  return graph(graphId, [executor("asker", script)], [], more);
}
