// The machines of the cluster: GET /nodes and /nodes/{node_id} of the gateway, and a node as the summaries of both APIs
// show it.

import type { FastifyInstance } from "fastify";
import type { ClusterNodes, NodeView } from "../../cluster/cluster-nodes.ts";
import { nodeStates } from "../../cluster/nodes.ts";
import { isoTime } from "../../engine/event.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { addRoutes, get } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { type PageParts, sendPage } from "./lists.ts";
import { pageOf, pageQuery } from "./schemas.ts";

export const Pools = Type.Record(
  Type.Object({
    capacity: Type.Integer("Slots there are."),
    available: Type.Integer(),
    in_use: Type.Integer(),
    queued: Type.Integer("Requests that wait for slots."),
    active: Type.Integer("Leases that are held."),
  }),
  "Executor pools by name.",
);

export const NodeSchema = Type.Object(
  {
    node_id: Type.String("Kept in its SVC_HOME.", { examples: ["node_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    name: Type.String("SVC_NODE_NAME, else the machine's name."),
    address: Type.Nullable(
      Type.String("host:port at which other nodes reach it; null: there can be no other nodes.", {
        examples: ["node1.example.org:55052"],
      }),
    ),
    version: Type.String("Of its program.", { examples: ["0.1.0"] }),
    status: Type.OneOf(
      nodeStates,
      "ready: it takes work. draining: it finishes its work, or is shutting down. lost: it has not renewed its lease, so others take its jobs over. left: it has ended.",
    ),
    labels: Type.Record(Type.String(), "SVC_NODE_LABELS."),
    pools: Pools,
    totals: Type.JsonObject("What its machine has.", { cpu_cores: 8, memory_bytes: 16_655_052_800 }),
    reserved: Type.Record(Type.Integer(), "Slots in use, by pool."),
    jobs_owned: Type.Integer("Runs that it executes, and that have not ended."),
    tasks_running: Type.Integer("Attempts that run on it."),
    started_at: Type.Time("When it joined last."),
    heartbeat_at: Type.Time("Its last heartbeat: another node is shown as of that time."),
    self: Type.Boolean("Whether this node answers."),
    connected_nodes: Type.Array(
      Type.String(),
      "The ids of the nodes that it had connections to at its last heartbeat; connections that are not used are closed.",
    ),
  },
  "A program with its machine. Several share a database as a cluster.",
);

const NodePageSchema = pageOf(NodeSchema, "nodes, by name");

/** By the names that clients see. */
export const schemas = { ExecutorPools: Pools, Node: NodeSchema, NodePage: NodePageSchema };

export interface NodesParts {
  readonly nodes: ClusterNodes;
}

export interface Parts extends NodesParts, PageParts {}

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { nodes } = parts;

  addRoutes(api, "system", [
    get("/nodes", {
      operationId: "listNodes",
      summary: "List the nodes",
      query: Type.Input({
        ...pageQuery,
        name: Type.String(
          "Only nodes of this name: those that have not left; if there is none, those that have; else the one that was removed last.",
          { maxLength: 128 },
        ),
      }),
      answers: { 200: NodePageSchema },
      handle: (request, reply) =>
        sendPage(parts, request, reply, {
          rows: (limit, after) =>
            nodes.page(
              limit,
              after === null ? null : { name: String(after[0]), nodeId: String(after[1]) },
              request.query.name,
            ),
          positionOf: ({ name, nodeId }) => [name, nodeId],
          render: (node) => JSON.stringify(renderNode(node)),
        }),
    }),

    get("/nodes/:node_id", {
      operationId: "getNode",
      summary: "Get a node",
      answers: { 200: NodeSchema },
      handle: async (request) => {
        const { node_id: nodeId } = request.params;
        const node = await nodes.find(nodeId);
        if (node !== null) return renderNode(node);
        return noSuchNode(nodeId);
      },
    }),
  ]);
}

export function noSuchNode(nodeId: string): never {
  throw new DomainError("node_not_found", `There is no node ${nodeId}; GET /nodes lists them.`);
}

export function renderNode(node: NodeView) {
  const { pools } = node;
  return {
    node_id: node.nodeId,
    name: node.name,
    address: node.address,
    version: node.version,
    status: node.status,
    labels: node.labels,
    pools,
    totals: node.totals,
    reserved: Object.fromEntries(Object.entries(pools).map(([name, { in_use }]) => [name, in_use])),
    jobs_owned: node.jobsOwned,
    tasks_running: node.tasksRunning,
    started_at: isoTime(node.startedAtMs),
    heartbeat_at: isoTime(node.heartbeatAtMs),
    self: node.isSelf,
    connected_nodes: node.connectedNodes,
  };
}

/** As the specification of the runtime API names the fields; those that it does not name are left out without a value. */
export function renderRuntimeNode(node: NodeView) {
  const { pools, self, address, ...rest } = renderNode(node);
  return {
    ...rest,
    ...(address !== null && { address }),
    "self?": self,
    scheduler_hint: hintOf(node),
    executor_pools: pools,
  };
}

/** What placing an attempt there means for this node. */
function hintOf({ isSelf, status }: NodeView): "local" | "remote" | "avoid" {
  if (status !== "ready") return "avoid";
  return isSelf ? "local" : "remote";
}
