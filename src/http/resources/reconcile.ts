// Comparing a node with its jobs: POST /nodes/{node_id}/reconcile of the gateway.

import type { FastifyInstance } from "fastify";
import { differenceKinds } from "../../cluster/reconcile.ts";
import type { ReconcileNode } from "../../cluster/remote-reconcile.ts";
import { addRoutes, post } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { noSuchNode } from "./nodes.ts";

const ReconcileBody = Type.Input(
  { fix: Type.Boolean("Whether to fix what is found.", { default: false }) },
  { examples: [{ fix: true }] },
);

const ReconciliationSchema = Type.Object({
  node_id: Type.String({ examples: ["node_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
  differences: Type.Array(
    Type.Object({
      kind: Type.OneOf(
        differenceKinds,
        "process: a command has left it running. attempt: it runs without its job, or its job waits for it and it does not run. workspace: a folder of an attempt that does not run, or of no run. port: its run has ended, and something listens. service: its job is not open here.",
      ),
      where: Type.String({ examples: ["process 4711, started at 812345"] }),
      what: Type.String("For people."),
      fix: Type.String("What a fix does, for people."),
      fixed: Type.Boolean("Whether it was fixed by this request."),
    }),
    "At most 200.",
  ),
  has_more: Type.Boolean(
    "Whether there may be more than these; with 10,000 runs' folders the others are not looked at.",
  ),
});

/** By the names that clients see. */
export const schemas = { ReconcileNode: ReconcileBody, Reconciliation: ReconciliationSchema };

export interface Parts {
  readonly reconcileNode: ReconcileNode;
}

export function gatewayRoutes(api: FastifyInstance, { reconcileNode }: Parts): void {
  addRoutes(api, "system", [
    post("/nodes/:node_id/reconcile", {
      operationId: "reconcileNode",
      summary: "Compare a node with its jobs",
      description:
        "What the node has (processes of commands, attempts, their folders, ports of dashboards, services) is compared with what open jobs say. A difference is listed when two looks, a second apart, have found it; with `fix` it is fixed then. What attempts use that run, or begin, is never touched. Any node may be asked about any other.",
      body: ReconcileBody,
      answers: { 200: ReconciliationSchema },
      problems: ["conflict"],
      handle: async ({ params: { node_id: nodeId }, body }) => {
        const found = (await reconcileNode(nodeId, body?.fix ?? false)) ?? noSuchNode(nodeId);
        return {
          node_id: nodeId,
          differences: found.differences.map(({ isFixed, ...difference }) => ({
            ...difference,
            fixed: isFixed,
          })),
          has_more: found.hasMore,
        };
      },
    }),
  ]);
}
