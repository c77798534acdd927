// `troupe node list`: the nodes of the cluster, and how busy each is.

import type { Node } from "../../sdk/src/index.ts";
import { UsageError } from "./command.ts";
import { printList } from "./lists.ts";
import { ago } from "./record-text.ts";
import type { ServerCall } from "./session.ts";
import { cleanText } from "./text.ts";

const NAMED_SHOWN_MAX = 10;

const ALONE =
  "This gateway keeps its records in SVC_HOME, so it is the only node. Programs with one SVC_DATABASE_URL are nodes of one cluster.";

export async function list(call: ServerCall): Promise<number> {
  let isAlone = false;
  const code = await printList<Node>(call, {
    items: (pageSize) => call.client.system.nodes({ page_size: pageSize }),
    head: [
      "NODE",
      "NAME",
      "STATUS",
      "ADDRESS",
      "SLOTS IN USE",
      "JOBS",
      "TASKS",
      "VERSION",
      "LAST SEEN",
      "LABELS",
    ],
    row(node) {
      isAlone = node.address === null;
      return nodeRow(node);
    },
    style: ({ status }) => (status === "ready" ? null : status === "lost" ? "red" : "dim"),
    nothing: "No nodes.",
  });
  if (isAlone && !call.flag("json")) call.terminal.note(ALONE);
  return code;
}

/** The id of the node that the command's first word names: its name, or its id. */
export async function nodeIdOf({ client, words: [word = ""] }: ServerCall): Promise<string> {
  const { items } = await client.system.nodes({ name: word, page_size: NAMED_SHOWN_MAX }).page();
  const [node, ...others] = items;
  if (others.length > 0) {
    const ids = items.map((one) => one.node_id).join(", ");
    throw new UsageError(`Several nodes are named ${cleanText(word)}: give the id of one (${ids}).`);
  }
  // The gateway says that there is no such node.
  return node?.node_id ?? word;
}

function nodeRow(node: Node): readonly unknown[] {
  // Ports of dashboards are a pool too, which commands do not use.
  const pools = Object.entries(node.pools).filter(([name]) => !name.startsWith("@"));
  return [
    node.node_id,
    node.self ? `${node.name} *` : node.name,
    node.status,
    node.address ?? "-",
    pools.map(([name, { in_use: inUse, capacity }]) => `${name} ${inUse}/${capacity}`).join(", "),
    String(node.jobs_owned),
    String(node.tasks_running),
    node.version,
    ago(node.heartbeat_at),
    Object.entries(node.labels)
      .map(([name, value]) => `${name}=${value}`)
      .join(","),
  ];
}
