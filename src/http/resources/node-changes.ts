// Which nodes the cluster has: POST /system/cluster/nodes:add, :join, :remove and :leave of the gateway.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isoTime } from "../../engine/event.ts";
import { DomainError } from "../../lib/domain-error.ts";
import type { JoinRequest } from "../../nodes/joining.ts";
import type { AddedNode, NodeChanges, WriteChange } from "../../nodes/node-changes.ts";
import type { Operation } from "../../operations/records.ts";
import { addRoutes, post } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { answerIdempotent, type IdempotencyParts, sendGiven, sendStarted } from "./idempotent.ts";
import { DEADLINE_SECONDS, deadlineSeconds } from "./node-drain.ts";
import { OperationSchema, renderOperation } from "./operations.ts";
import { idempotencyKeyHeader } from "./schemas.ts";

const NodeName = Type.String("A name for people: visible ASCII characters.", {
  pattern: "^[!-~]([ -~]{0,126}[!-~])?$",
  examples: ["node2"],
});

const AddNodeBody = Type.Input(
  {
    name: NodeName,
    labels: Type.Record(Type.String({ pattern: "^[A-Za-z0-9._-]{0,63}$" }), "SVC_NODE_LABELS of the node.", {
      propertyNames: { pattern: "^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$" },
      maxProperties: 64,
    }),
  },
  { required: ["name"], examples: [{ name: "node2", labels: { zone: "b" } }] },
);

const AddedNodeSchema = Type.Object(
  {
    node_id: Type.String("Of the node that is expected.", { examples: ["node_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    join_token: Type.Optional(
      Type.String("What the program joins with. Shown once: a repeated request is answered without it."),
    ),
    expires_at: Type.Time("Until when the token is good."),
  },
  "A node that is expected. GET /nodes shows it once it has joined.",
);

const JoinBody = Type.Input(
  {
    token: Type.String("The join_token that the node was added with.", { maxLength: 200 }),
    database_url: Type.String(
      "SVC_DATABASE_URL of the cluster, by which its nodes are found; or give cluster_address.",
      { maxLength: 4_096, examples: ["postgres://troupe:password@db.example.org/troupe"] },
    ),
    cluster_address: Type.String(
      "host:port of a node (`address` in GET /nodes), which tells the database to the program.",
      { maxLength: 300, examples: ["node1.example.org:55052"] },
    ),
    name: NodeName,
    address: Type.String("host:port at which other nodes are to reach this one, as SVC_NODE_ADDRESS.", {
      maxLength: 300,
      examples: ["node2.example.org:55052"],
    }),
  },
  {
    required: ["token"],
    examples: [{ token: "node_01k9z1v7m3e8q2x4c6t8b0n5dh.2v…", cluster_address: "node1.example.org:55052" }],
  },
);

const RemoveNodeBody = Type.Input(
  {
    node_id: Type.String("The node's id; or give its name."),
    name: Type.String("The node's name, if no other node has it."),
    force: Type.Boolean(
      "Does not drain it: its program gives everything up with its next heartbeat, and other nodes take its jobs over.",
      { default: false },
    ),
    deadline_seconds: deadlineSeconds,
  },
  { examples: [{ name: "node2" }] },
);

const LeaveBody = Type.Input(
  { deadline_seconds: deadlineSeconds },
  { examples: [{ deadline_seconds: DEADLINE_SECONDS }] },
);

/** By the names that clients see. */
export const schemas = {
  AddNode: AddNodeBody,
  AddedNode: AddedNodeSchema,
  JoinCluster: JoinBody,
  RemoveNode: RemoveNodeBody,
  LeaveCluster: LeaveBody,
};

export interface Parts extends IdempotencyParts {
  readonly nodeChanges: NodeChanges;
}

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { nodeChanges } = parts;

  const sendChange = (request: FastifyRequest, reply: FastifyReply, prepare: () => Promise<WriteChange>) =>
    sendStarted<Operation>(parts, request, reply, {
      prepare,
      answer: (operation) => ({
        location: `/api/v1/operations/${operation.operationId}`,
        body: renderOperation(operation),
      }),
      started: (operation) => nodeChanges.begin(operation),
    });

  addRoutes(api, "system", [
    post("/system/cluster/nodes::add", {
      operationId: "addNode",
      summary: "Expect a node",
      description:
        "Answers the token with which a program joins as this node, within an hour. Adding the name again before it has joined makes the earlier token void. The node is a new one, also when a node of its name was removed.",
      headers: idempotencyKeyHeader,
      body: AddNodeBody,
      answers: { 201: AddedNodeSchema },
      problems: ["not_clustered", "conflict", "idempotency_key_reused"],
      async handle(request, reply) {
        const { name, labels = {} } = request.body;
        let added: AddedNode | null = null;
        const given = await answerIdempotent(parts, request, async () => {
          const expect = nodeChanges.prepareAddition(name, labels);
          return async (writes) => {
            added = await expect(writes);
            const location = `/api/v1/nodes/${added.nodeId}`;
            return { status: 201, headers: { location }, body: JSON.stringify(rendered(added)) };
          };
        });
        // Kept is the answer without the token.
        if (given.isReplay || added === null) return sendGiven(reply, given);
        const { token } = added as AddedNode;
        return sendGiven(reply, given, JSON.stringify({ ...rendered(added), join_token: token }));
      },
    }),

    post("/system/cluster/nodes::join", {
      operationId: "joinCluster",
      summary: "Make this program a node",
      description:
        "For a program without SVC_DATABASE_URL whose SVC_HOME is empty. It asks a node for what it needs, keeps it in SVC_HOME, and starts again as the node that was added, without ending its process; the operation goes on there under the same id. Asked again with the token of the node that it is, it answers the operation by which it has joined.",
      headers: idempotencyKeyHeader,
      body: JoinBody,
      answers: { 202: OperationSchema },
      problems: ["conflict", "node_busy", "idempotency_key_reused"],
      handle: (request, reply) => {
        const { token, name = null, address = null } = request.body;
        const { database_url: databaseUrl, cluster_address: nodeAddress } = request.body;
        const place = placeOf(databaseUrl, nodeAddress);
        return sendChange(request, reply, () => nodeChanges.prepareJoin(token, { place, name, address }));
      },
    }),

    post("/system/cluster/nodes::remove", {
      operationId: "removeNode",
      summary: "Remove a node",
      description:
        "Drains the node, then its program ends, and its SVC_HOME is not let in again. A node that is lost is removed at once. POST /nodes/{node_id}/undrain takes a removal back that has not ended: the operation fails with node_stays.",
      headers: idempotencyKeyHeader,
      body: RemoveNodeBody,
      answers: { 202: OperationSchema },
      problems: [...problems, "node_not_found", "conflict"],
      handle: (request, reply) => {
        const { node_id: nodeId, name, force = false, deadline_seconds = DEADLINE_SECONDS } = request.body;
        const asked = oneOf(nodeId, name);
        return sendChange(request, reply, () =>
          nodeChanges.prepareRemoval(asked, { force, deadline_seconds }),
        );
      },
    }),

    post("/system/cluster/nodes::leave", {
      operationId: "leaveCluster",
      summary: "Have this node leave",
      description:
        "Drains the node that is asked, then its program ends, as on SIGTERM. Another node sees the operation to its end. The program may be started again, and is the same node then. An undrain takes it back, as for a removal.",
      headers: idempotencyKeyHeader,
      body: LeaveBody,
      answers: { 202: OperationSchema },
      problems,
      handle: (request, reply) => {
        const { deadline_seconds = DEADLINE_SECONDS } = request.body ?? {};
        return sendChange(request, reply, () => nodeChanges.prepareLeave({ deadline_seconds }));
      },
    }),
  ]);
}

const problems = ["not_clustered", "last_node", "node_busy", "idempotency_key_reused"] as const;

const rendered = ({ nodeId, expiresAtMs }: AddedNode) => ({
  node_id: nodeId,
  expires_at: isoTime(expiresAtMs),
});

function placeOf(databaseUrl: string | undefined, nodeAddress: string | undefined): JoinRequest["place"] {
  if (databaseUrl !== undefined && nodeAddress === undefined) return { databaseUrl };
  if (nodeAddress !== undefined && databaseUrl === undefined) return { nodeAddress };
  throw wrong("/database_url", "give one of database_url and cluster_address");
}

const wrong = (path: string, message: string) =>
  new DomainError("validation_failed", `The body is not valid: ${message}.`, [
    { path, code: "invalid_value", message },
  ]);

function oneOf(nodeId: string | undefined, name: string | undefined) {
  if (nodeId !== undefined && name === undefined) return { nodeId };
  if (name !== undefined && nodeId === undefined) return { name };
  throw wrong("/node_id", "give one of node_id and name");
}
