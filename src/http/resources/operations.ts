// Long work, while it goes on and afterwards: GET /operations, /operations/{operation_id} and …/events/stream.

import type { FastifyInstance } from "fastify";
import { eventType, isoTime } from "../../engine/event.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { operationFailures } from "../../operations/failures.ts";
import { isOpen, terminalOperationEvents } from "../../operations/operation-change.ts";
import {
  type Operation,
  type OperationRecords,
  operationKinds,
  operationStatuses,
} from "../../operations/records.ts";
import { addRoutes, get } from "../core/route.ts";
import { frame } from "../core/sse-chunk.ts";
import { Type } from "../core/type.ts";
import { type PageParts, sendJson, sendPage } from "./lists.ts";
import { LastEventIdHeader, openStream, RESUMING, type StreamParts, streamAnswers } from "./run-streams.ts";
import { pageOf, pageQuery } from "./schemas.ts";

const OperationStatus = Type.OneOf(operationStatuses, "The last two are final.");

const StepSchema = Type.Object({
  name: Type.String({ examples: ["package"] }),
  label: Type.String("For people.", { examples: ["Copying the package"] }),
  status: Type.OneOf(
    ["pending", "running", "completed", "failed", "skipped"],
    "skipped: there was nothing to do.",
  ),
});

const ErrorSchema = Type.Object({
  code: Type.OneOf(Object.keys(operationFailures), "Stable, for programs."),
  detail: Type.String("What happened and what to do next, for people."),
  retryable: Type.Boolean(
    "Whether the same request may succeed when it is made again, with a new Idempotency-Key.",
  ),
});

export const OperationSchema = Type.Object(
  {
    operation_id: Type.String({ examples: ["op_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    kind: Type.OneOf(operationKinds, "What it does."),
    target: Type.String("The id of the blueprint or of the node; of a model its id behind `model:`."),
    dry_run: Type.Boolean("Whether it changes nothing and only tells what it would do."),
    status: OperationStatus,
    progress: Type.Object({
      percent: Type.Integer({ minimum: 0, maximum: 100 }),
      label: Type.String("What is being done, for people."),
      step: Type.Nullable(Type.String("The step under way; null before the first.")),
      steps: Type.Array(StepSchema),
    }),
    result: Type.Nullable(
      Type.JsonObject(
        "What it has come to. Of an addition blueprint_id, version, fingerprint and size; of a removal removed, or preview after a dry run: {resources: [{kind, id, bytes, action}], jobs_affected, bytes_freed}. Of the kinds about nodes node_id and name. Of an installation or update of a model model_id, node_id, sha256 and size; of a removal as of a blueprint's, with used_by. Null until it has completed.",
        { blueprint_id: "document-digest" },
      ),
    ),
    error: Type.Nullable(ErrorSchema),
    created_at: Type.Time("When it was asked for."),
    updated_at: Type.Time("When it last changed."),
    finished_at: Type.Nullable(Type.Time("When it ended; null while it goes on.")),
  },
  "Long-running work, which continues after the request that started it.",
);

const OperationPageSchema = pageOf(OperationSchema, "operations, newest first");

const OperationsQuery = Type.Input({
  target: Type.String("Only those about this blueprint, this node, or this model (`model:` and its id)."),
  status: OperationStatus,
  ...pageQuery,
});

/** By the names that clients see. */
export const schemas = {
  Operation: OperationSchema,
  OperationStatus,
  OperationPage: OperationPageSchema,
};

export interface Parts extends PageParts, StreamParts {
  readonly operationRecords: OperationRecords;
}

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { operationRecords } = parts;

  addRoutes(api, "operations", [
    get("/operations", {
      operationId: "listOperations",
      summary: "List operations",
      description: "Newest first. Those that ended more than SVC_RETENTION_DAYS ago are gone.",
      query: OperationsQuery,
      answers: { 200: OperationPageSchema },
      handle: (request, reply) => {
        const { target = null, status = null } = request.query;
        return sendPage<Operation>(parts, request, reply, {
          rows: (limit, after) =>
            operationRecords.operations({
              target,
              status,
              limit,
              after: after === null ? null : String(after[0]),
            }),
          positionOf: (operation) => [operation.operationId],
          render: renderOperation,
        });
      },
    }),

    get("/operations/:operation_id", {
      operationId: "getOperation",
      summary: "Get an operation",
      description: "Where the Location of a request points that began one.",
      answers: { 200: OperationSchema },
      handle: async (request, reply) =>
        sendJson(reply, renderOperation(await findOperation(parts, request.params.operation_id))),
    }),

    get("/operations/:operation_id/events/stream", {
      operationId: "streamOperationEvents",
      summary: "Follow an operation",
      description: `Server-sent events: operation_pending, operation_running, operation_progress, then operation_completed or operation_failed. ${RESUMING}`,
      headers: LastEventIdHeader,
      answers: streamAnswers(
        'id: 3\nevent: operation_progress\ndata: {"id":3,"operation_id":"op_01k9z1v7m3e8q2x4c6t8b0n5dh","timestamp":"2026-11-21T09:30:00.000Z","type":"operation_progress","payload":{"percent":20,"label":"Copying the package","step":"package"}}\n\n',
      ),
      handle: async (request, reply) => {
        const operation = await findOperation(parts, request.params.operation_id);
        const { operationId, eventSeq } = operation;
        const view = {
          key: `${operationId} operation`,
          jobId: operationId,
          read: (seq: number) => operationRecords.operationEvents(operationId, seq, EVENTS_PER_READ),
          exists: async () => (await operationRecords.operation(operationId)) !== null,
          render: (seq: number, line: string) => frame(seq, eventType(line), line),
          terminalTypes: terminalOperationEvents,
        };
        return openStream(request, reply, {
          isEnded: !isOpen(operation),
          eventCount: eventSeq,
          serve: async (afterSeq) => () => parts.streams.serve(reply.raw, view, afterSeq),
        });
      },
    }),
  ]);
}

const EVENTS_PER_READ = 500;

async function findOperation({ operationRecords }: Parts, operationId: string): Promise<Operation> {
  const operation = await operationRecords.operation(operationId);
  if (operation !== null) return operation;
  throw new DomainError(
    "operation_not_found",
    `Operation ${operationId} was not found, or was removed with age. List the operations to find its id.`,
  );
}

/** An operation as JSON text (CONTRACTS §3). */
export function renderOperation(operation: Operation): string {
  const { status, percent, label, step, steps, error, finishedAtMs } = operation;
  return JSON.stringify({
    operation_id: operation.operationId,
    kind: operation.kind,
    target: operation.target,
    dry_run: operation.request.dry_run === true,
    status,
    progress: { percent, label, step, steps },
    // Before the end the result holds internal state.
    result: status === "completed" ? operation.result : null,
    error,
    created_at: isoTime(operation.createdAtMs),
    updated_at: isoTime(operation.updatedAtMs),
    finished_at: finishedAtMs === null ? null : isoTime(finishedAtMs),
  });
}
