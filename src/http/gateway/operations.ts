// GET /operations, /operations/{operation_id} and /operations/{operation_id}/events/stream: long work, while it goes on
// and afterwards.

import type { FastifyInstance } from "fastify";
import { eventType, isoTime } from "../../engine/event.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { isOpen, terminalOperationEvents } from "../../operations/operation-change.ts";
import type { Operation } from "../../operations/records.ts";
import { addRoutes, get } from "../core/route.ts";
import { frame } from "../core/sse.ts";
import { sendPage } from "./page.ts";
import { sendJson } from "./run-source.ts";
import { openStream, RESUMING, readLastEventId, streamAnswers } from "./run-streams.ts";
import { LastEventIdHeader } from "./schemas/evidence.ts";
import { OperationPageSchema, OperationSchema, OperationsQuery } from "./schemas/operations.ts";
import type { GatewayServices } from "./services.ts";

const EVENTS_PER_READ = 500;

export function operationRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { operationRecords } = services;

  addRoutes(api, "operations", [
    get("/operations", {
      operationId: "listOperations",
      summary: "List operations",
      description: "Newest first. Those that ended more than SVC_RETENTION_DAYS ago are gone.",
      query: OperationsQuery,
      answers: { 200: OperationPageSchema },
      handle: (request, reply) => {
        const { target = null, status = null } = request.query;
        return sendPage<Operation>(services, request, reply, {
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
        sendJson(reply, renderOperation(await findOperation(services, request.params.operation_id))),
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
        const operation = await findOperation(services, request.params.operation_id);
        const { operationId, eventSeq } = operation;
        const afterSeq = readLastEventId(request.headers["last-event-id"], eventSeq, "operation");
        const view = {
          key: `${operationId} operation`,
          jobId: operationId,
          read: (seq: number) => operationRecords.operationEvents(operationId, seq, EVENTS_PER_READ),
          exists: async () => (await operationRecords.operation(operationId)) !== null,
          render: (seq: number, line: string) => frame(seq, eventType(line), line),
          terminalTypes: terminalOperationEvents,
        };
        return openStream(services, request, reply, {
          hasAll: !isOpen(operation) && afterSeq === eventSeq,
          view: async () => ({ view, afterSeq }),
        });
      },
    }),
  ]);
}

async function findOperation({ operationRecords }: GatewayServices, operationId: string): Promise<Operation> {
  const operation = await operationRecords.operation(operationId);
  if (operation !== null) return operation;
  throw new DomainError(
    "operation_not_found",
    `Operation ${operationId} was not found, or was removed with age. GET /api/v1/operations lists those there are.`,
  );
}

/** An operation as JSON text (CONTRACTS §3). */
export function renderOperation(operation: Operation): string {
  const { status, percent, label, step, steps, error, finishedAtMs } = operation;
  return JSON.stringify({
    operation_id: operation.operationId,
    kind: operation.kind,
    target: operation.target,
    status,
    progress: { percent, label, step, steps },
    // What it remembers for itself before its end is nobody else's.
    result: status === "completed" ? operation.result : null,
    error,
    created_at: isoTime(operation.createdAtMs),
    updated_at: isoTime(operation.updatedAtMs),
    finished_at: finishedAtMs === null ? null : isoTime(finishedAtMs),
  });
}
