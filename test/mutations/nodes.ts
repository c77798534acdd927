// Faults of how nodes are shown, and of placing by labels.

import type { Mutation } from "./mutation.ts";

const SHOWN = ["src/cluster/cluster-nodes.test.ts"];
const ROWS = ["src/store/postgres/nodes.test.ts"];
const SLOTS = ["src/cluster/tasks/slots.test.ts"];
const CLUSTER = ["test/integration/nodes-shown.test.ts"];

const shown: readonly Mutation[] = [
  {
    fault: "a node shows itself as its row was at its last heartbeat",
    file: "src/cluster/cluster-nodes.ts",
    search: "isSelf ? { ...record, ...own.load() } : record",
    replacement: "record",
    tests: SHOWN,
  },
  {
    fault: "sums count nodes that are lost",
    file: "src/cluster/cluster-nodes.ts",
    search: "nodes.filter(isLiving)",
    replacement: "nodes",
    tests: SHOWN,
  },
  {
    fault: "a list of nodes begins again on every page",
    file: "src/store/postgres/nodes.ts",
    search: "OR (name, node_id) > ($2, $3)",
    replacement: "OR (name, node_id) > ('', $3)",
    tests: ROWS,
  },
  {
    fault: "an overview leaves out living nodes for lost ones",
    file: "src/store/postgres/nodes.ts",
    search: "ORDER BY lease_until <= ${NOW}, name, node_id",
    replacement: "ORDER BY name, node_id",
    tests: ROWS,
  },
  {
    fault: "a node is connected to nodes that are lost",
    file: "src/store/postgres/nodes.ts",
    search: "AND node_id <> $1 AND lease_until > ${NOW})",
    replacement: "AND node_id <> $1)",
    tests: ROWS,
  },
  {
    fault: "a renewal tells of no connections",
    file: "src/app/node.ts",
    search: "connectedTo: peers.connected",
    replacement: "connectedTo: []",
    tests: CLUSTER,
  },
  {
    fault: "metrics are refused while the nodes cannot be read",
    file: "src/observability/metrics/metrics-source.ts",
    search: "if (error instanceof JournalUnavailable) return null;",
    replacement: "",
    tests: ["test/integration/postgres.test.ts"],
  },
  {
    fault: "a job is shown at the node that is asked",
    file: "src/cluster/node-names.ts",
    search: "null : ofNode(nodeId)",
    replacement: "null : own.name",
    tests: CLUSTER,
  },
  {
    fault: "a job that was handed over is shown at a node that nobody knows",
    file: "src/cluster/nodes.ts",
    search: "end < 0 ? null : owner",
    replacement: "owner",
    tests: ["src/http/resources/submitted-job-view.test.ts"],
  },
  {
    fault: "an attempt is shown at its job's node",
    file: "src/http/resources/submitted-job-view.ts",
    search: "nodeNames.ofNode(node);",
    replacement: "nodeNames.ofOwner(job.owner);",
    tests: CLUSTER,
  },
];

const labels: readonly Mutation[] = [
  {
    fault: "an attempt is placed on a node without its labels",
    file: "src/cluster/tasks/slots.ts",
    search: "known.capacity < slots || !this.#couldHold(other, request)",
    replacement: "known.capacity < slots",
    tests: SLOTS,
  },
  {
    fault: "an attempt is placed on its own node without its labels",
    file: "src/cluster/tasks/slots.ts",
    search: "own.capacity >= slots && this.#couldHold(nodeId, request)",
    replacement: "own.capacity >= slots",
    tests: SLOTS,
  },
  {
    fault: "a request is taken to a node with free slots and without its labels",
    file: "src/cluster/tasks/slots.ts",
    search: " && this.#couldHold(nodeId, request);",
    replacement: ";",
    tests: SLOTS,
  },
  {
    fault: "labels that no node has fail the run although one may join",
    file: "src/cluster/tasks/slots.ts",
    search: "if (Object.keys(nodeLabels).length > 0) return true;",
    replacement: "",
    tests: SLOTS,
  },
  {
    fault: "the only node runs what asks for labels that it lacks",
    file: "src/execution/pools.ts",
    search: "if (!hasLabels(this.#labels, nodeLabels))",
    replacement: "if (false)",
    tests: ["src/execution/pools.test.ts"],
  },
  {
    fault: "one label of several is enough",
    file: "src/engine/labels.ts",
    search: ".every(",
    replacement: ".some(",
    tests: ["src/execution/pools.test.ts"],
  },
  {
    fault: "the event of a request has no reason why it waits",
    file: "src/engine/job/tasks.ts",
    search: "hint === undefined ? asked : { ...asked, hint }",
    replacement: "asked",
    tests: ["src/engine/job.test.ts"],
  },
];

export const nodesMutations: readonly Mutation[] = [...shown, ...labels];
