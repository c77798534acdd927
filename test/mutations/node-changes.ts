// Faults of nodes that are added, leave, and are removed.

import type { Mutation } from "./mutation.ts";

const of = (
  file: string,
  test: string,
  faults: readonly (readonly [fault: string, search: string, replacement: string])[],
): readonly Mutation[] =>
  faults.map(([fault, search, replacement]) => ({ fault, file, search, replacement, tests: [test] }));

const rows = "src/store/postgres/nodes.test.ts";
const membership = "src/cluster/membership.test.ts";
const programs = "test/integration/node-changes.test.ts";

export const nodeChangesMutations: readonly Mutation[] = [
  ...of("src/store/postgres/nodes.ts", rows, [
    ["a removed node gets a lease when it starts", "OR $11) AND nodes.removed_at IS NULL", "OR $11)"],
    [
      "a removed node keeps its lease",
      "AND lease_until > ${NOW} AND removed_at IS NULL",
      "AND lease_until > ${NOW}",
    ],
    ["a removed node is forgotten", "AND maintenance = 0 AND removed_at IS NULL", "AND maintenance = 0"],
    [
      "a program is to end because an earlier one of its node was",
      "leaves = CASE WHEN nodes.owner = ANY ($10) THEN nodes.leaves ELSE 0 END",
      "leaves = nodes.leaves",
    ],
    ["an undrain lets a program end", '.concat("leaves = 0")', '.concat("leaves = leaves")'],
  ]),
  ...of("src/store/sql/node-writes.ts", rows, [
    [
      "jobs of a removed node wait for it",
      "drain_until = coalesce(drain_until, ${now})",
      "drain_until = drain_until",
    ],
    ["two nodes have one name", "return node.is_free ? node.node_id : null", "return node.node_id"],
    [
      "a removed node that is added again is not let in",
      "SET removed_at = NULL WHERE",
      "SET removed_at = removed_at WHERE",
    ],
  ]),
  ...of("src/cluster/membership.ts", membership, [
    ["a node does not hear that it is to end", 'if (outage.isLast) this.#parts.onEnd("left");', ""],
    [
      "a removed node asks for a lease for ever",
      'if (taken === "removed") return await this.#removed();',
      'if (taken === "removed") continue;',
    ],
    [
      "others wait for the end of a removed node's lease",
      "await records.leave({ ...node, owner: this.#owner });\n    onEnd",
      "onEnd",
    ],
  ]),
  ...of("src/nodes/departures.ts", "src/nodes/departures.test.ts", [
    ["a node that did not know of its drain goes", "HEARTBEATS_MIN = 2", "HEARTBEATS_MIN = 1"],
    ["a node whose jobs do not go never goes", "|| heartbeatAtMs > node.drainUntilMs + LATE_MS", ""],
    ["a node that starts again leaves again", ' && this.#last === "end")', " && false)"],
    [
      "a node goes before its jobs",
      "jobs + attempts === 0 || heartbeatAtMs",
      "jobs + attempts >= 0 || heartbeatAtMs",
    ],
    [
      "a drain that was taken back is asked for again",
      'asked === owner || (wasStartedAgain && this.#last === "end")',
      'wasStartedAgain && this.#last === "end"',
    ],
  ]),
  ...of("src/nodes/node-changes.ts", programs, [
    [
      "all nodes of a cluster may go at once",
      "(await operations.open(nodeId)) === null",
      "nodeId !== operations.toString()",
    ],
    ["the last node is not removed with force", "isLiving(node) && request.force !== true", "isLiving(node)"],
  ]),
  ...of("src/http/resources/node-changes.ts", programs, [
    [
      "a token is kept with its answer",
      "body: JSON.stringify(rendered(added)) }",
      "body: JSON.stringify({ ...rendered(added), join_token: added.token }) }",
    ],
  ]),
];
