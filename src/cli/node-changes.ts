// `troupe node add`, join, remove and leave: which nodes the cluster has.

import { type Call, printAnswer, UsageError } from "./command.ts";
import { secondsOf } from "./node-drain.ts";
import { nodeIdOf } from "./nodes.ts";
import { ending } from "./operations.ts";
import { fieldLines } from "./record-text.ts";
import type { ServerCall } from "./session.ts";

export async function add(call: ServerCall): Promise<number> {
  const [name = ""] = call.words;
  const added = await call.client.system.addNode({ name, labels: labelsOf(call) });
  return printAnswer(call, added, () => [
    ...fieldLines([
      ["node", added.node_id],
      ["token", added.join_token ?? null],
      ["good until", added.expires_at],
    ]),
    "The token is not shown again. Start Troupe on the node's machine, and there run:",
    `  troupe node join --cluster HOST:PORT --token ${added.join_token}`,
    "HOST:PORT is the address of a node (`troupe node list`).",
  ]);
}

export async function join(call: ServerCall): Promise<number> {
  const token = call.text("token");
  if (token === null)
    throw new UsageError("--token is needed: `troupe node add NAME`, at a node, prints one.");
  const asked = {
    database_url: call.text("database") ?? undefined,
    cluster_address: call.text("cluster") ?? undefined,
    name: call.text("name") ?? undefined,
    address: call.text("address") ?? undefined,
  };
  if ((asked.database_url === undefined) === (asked.cluster_address === undefined))
    throw new UsageError("Give one of --database URL and --cluster HOST:PORT.");
  return ending(call, (await call.client.system.joinCluster({ token, ...asked })).operation_id);
}

export async function remove(call: ServerCall): Promise<number> {
  const body = { node_id: await nodeIdOf(call), force: call.flag("force") === true, ...deadlineOf(call) };
  return ending(call, (await call.client.system.removeNode(body)).operation_id);
}

export async function leave(call: ServerCall): Promise<number> {
  return ending(call, (await call.client.system.leaveCluster(deadlineOf(call))).operation_id);
}

function deadlineOf(call: Call): { readonly deadline_seconds?: number } {
  const deadline = call.text("deadline");
  return deadline === null ? {} : { deadline_seconds: secondsOf(deadline) };
}

function labelsOf(call: Call): Readonly<Record<string, string>> {
  const labels = call.texts("label").map((text) => {
    const at = text.indexOf("=");
    if (at > 0) return [text.slice(0, at), text.slice(at + 1)] as const;
    throw new UsageError(`--label ${JSON.stringify(text)} is not of the form name=value.`);
  });
  return Object.fromEntries(labels);
}
