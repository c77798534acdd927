// Taking a node out of work, and back: POST /nodes/{node_id}/drain, /undrain and /maintenance of the gateway, and how far it is.

import type { FastifyInstance } from "fastify";
import { type NodeOrder, type NodeOrders, type NodeRecord, nodeStates } from "../../cluster/nodes.ts";
import { isoTime } from "../../engine/event.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { notClustered } from "../../nodes/node-changes.ts";
import { addRoutes, get, post } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { noSuchNode } from "./nodes.ts";

export const DEADLINE_SECONDS = 300;
const DEADLINE_SECONDS_MAX = 7 * 86_400;

/** Of a drain, in bodies. */
export const deadlineSeconds = Type.Integer(
  "How long running attempts may go on; then they are ended, and made again on other nodes. Asked again, it counts from then.",
  { minimum: 0, maximum: DEADLINE_SECONDS_MAX, default: DEADLINE_SECONDS },
);

const DrainBody = Type.Input(
  {
    deadline_seconds: deadlineSeconds,
    services_last: Type.Boolean("Whether jobs of type service stay until no other job is left.", {
      default: true,
    }),
  },
  { examples: [{ deadline_seconds: 300, services_last: true }] },
);

const MaintenanceBody = Type.Input(
  {
    enabled: Type.Boolean("Whether the node is to stay without work, also when its program starts again."),
    reason: Type.String("For people.", { maxLength: 1_000, examples: ["new disk"] }),
  },
  { required: ["enabled"], examples: [{ enabled: true, reason: "new disk" }] },
);

const NodeDrainSchema = Type.Object(
  {
    node_id: Type.String({ examples: ["node_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    state: Type.OneOf(
      nodeStates,
      "draining and maintenance: it takes no work, and its jobs go to other nodes.",
    ),
    jobs_left: Type.Integer("Jobs that are still there."),
    tasks_left: Type.Integer("Attempts that run there, those of other nodes' jobs included."),
    services_left: Type.Integer("Of the jobs those of type service."),
    moved: Type.Integer("Jobs that have gone to other nodes."),
    deadline_at: Type.Nullable(Type.Time("When attempts that still run are ended; null: it is not drained.")),
    reason: Type.Nullable(Type.String("Why it is in maintenance.")),
  },
  "How far a node is with giving its work away, as it said with its last heartbeat: a second ago at most while it is drained.",
);

/** By the names that clients see. */
export const schemas = { DrainNode: DrainBody, SetMaintenance: MaintenanceBody, NodeDrain: NodeDrainSchema };

export interface Parts {
  /** Null for a program that shares its database with nobody. */
  readonly nodeOrders: NodeOrders | null;
}

export function gatewayRoutes(api: FastifyInstance, { nodeOrders }: Parts): void {
  const problems = ["not_clustered", "conflict"] as const;

  addRoutes(api, "system", [
    get("/nodes/:node_id/drain", {
      operationId: "getNodeDrain",
      summary: "See how far a node is drained",
      answers: { 200: NodeDrainSchema },
      problems: ["not_clustered"],
      handle: async ({ params: { node_id: nodeId } }) => rendered(await found(clustered(nodeOrders), nodeId)),
    }),

    post("/nodes/:node_id/drain", {
      operationId: "drainNode",
      summary: "Take a node out of work",
      description:
        "It takes no jobs and no attempts any more. Attempts that run may end until the deadline; then they are ended, which does not count against max_attempts. Each job goes to another node once none of its attempts runs, and goes on there where it stopped. Ends with undrain, or when the node's program starts again. A node learns of it with its next heartbeat, a few seconds later.",
      body: DrainBody,
      answers: { 200: NodeDrainSchema },
      problems,
      handle: async ({ params: { node_id: nodeId }, body }) => {
        const { deadline_seconds: seconds = DEADLINE_SECONDS, services_last: servicesLast = true } =
          body ?? {};
        const nodes = clustered(nodeOrders);
        const { status } = await found(nodes, nodeId);
        if (status === "lost" || status === "left") throw notRunning(nodeId);
        return ordered(nodes, nodeId, { kind: "drain", withinMs: seconds * 1_000, servicesLast });
      },
    }),

    post("/nodes/:node_id/undrain", {
      operationId: "undrainNode",
      summary: "Let a drained node work again",
      description: "Jobs that are still there go on; those that have gone stay where they are.",
      answers: { 200: NodeDrainSchema },
      problems,
      handle: async ({ params: { node_id: nodeId } }) => {
        const nodes = clustered(nodeOrders);
        const { status } = await found(nodes, nodeId);
        if (status === "maintenance") throw inMaintenance(nodeId);
        return ordered(nodes, nodeId, { kind: "undrain" });
      },
    }),

    post("/nodes/:node_id/maintenance", {
      operationId: "setNodeMaintenance",
      summary: "Keep a node out of work, or let it work again",
      description: `Enabled, the node is drained within ${DEADLINE_SECONDS} seconds if it was not, and stays without work until this is taken back, also when its program starts again.`,
      body: MaintenanceBody,
      answers: { 200: NodeDrainSchema },
      problems: ["not_clustered"],
      handle: ({ params: { node_id: nodeId }, body: { enabled, reason = null } }) =>
        ordered(
          clustered(nodeOrders),
          nodeId,
          enabled ? { kind: "begin_maintenance", reason } : { kind: "end_maintenance" },
        ),
    }),
  ]);
}

async function ordered(nodes: NodeOrders, nodeId: string, order: NodeOrder) {
  return rendered((await nodes.order(nodeId, order)) ?? noSuchNode(nodeId));
}

async function found(nodes: NodeOrders, nodeId: string): Promise<NodeRecord> {
  return (await nodes.find(nodeId)) ?? noSuchNode(nodeId);
}

function rendered(node: NodeRecord) {
  const { nodeId, status, jobsOwned, tasksRunning, servicesOwned, jobsMoved, drainUntilMs } = node;
  const isDrained = drainUntilMs !== null;
  return {
    node_id: nodeId,
    state: status,
    jobs_left: jobsOwned,
    tasks_left: tasksRunning,
    services_left: servicesOwned,
    moved: isDrained ? jobsMoved : 0,
    deadline_at: isDrained ? isoTime(drainUntilMs) : null,
    reason: node.maintenanceReason,
  };
}

function clustered(nodes: NodeOrders | null): NodeOrders {
  if (nodes !== null) return nodes;
  throw notClustered();
}

const notRunning = (nodeId: string) =>
  new DomainError(
    "conflict",
    `Node ${nodeId} does not run, so it has nothing to give away. POST /nodes/${nodeId}/maintenance keeps it out of work when it starts again.`,
  );

const inMaintenance = (nodeId: string) =>
  new DomainError(
    "conflict",
    `Node ${nodeId} is in maintenance: POST /nodes/${nodeId}/maintenance with enabled=false ends that.`,
  );
