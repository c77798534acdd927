// A bundle for tests: a worker that prints, reports, and leaves an output.

import { zipOf } from "../../test/support/bundle-files.ts";
import { executor, graph } from "../../test/support/manifests.ts";

const WORK = `
printf 'working on %s\\n' "$SVC_RUN_ID"
printf '{"type":"progress","payload":{"percent":50}}\\n' > "$SVC_EVENT_STREAM"
printf 'hello' > "$SVC_OUTPUT_DIR/report.txt"
printf '{"complete_run":{"greeting":"hello"}}\\n'
`;

/** A run of it completes immediately, with the output report.txt. */
export const helloZip = () =>
  zipOf({
    "manifest.json": graph("hello", [executor("worker", WORK)], [], { outputs: ["report.txt"] }),
  });

/** A run of it stays open until it is cancelled. */
export const waitingZip = () =>
  zipOf({
    "manifest.json": graph("waiting", [
      { node_id: "door", agent_type: "sensor", config: { complete_after: 1_000_000 } },
    ]),
  });

/** A run of it has about three events for each of `count` messages. */
export const busyZip = (count: number) =>
  zipOf({
    "manifest.json": graph(
      "busy",
      [
        { node_id: "start", agent_type: "router" },
        { node_id: "end", agent_type: "aggregator", config: { complete_after: count } },
      ],
      ["start>end"],
      { initial_inputs: { start: Array.from({ length: count }, (_, n) => ({ n })) } },
    ),
  });
