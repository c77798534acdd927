// Operations: long work that a client asked for and can follow (spec gateway-api "Operation", CONTRACTS §3).
// Ports, implemented in src/store.
//
// - An operation is on disk before its work begins, and every change of it before it is published.
// - It ends once, as completed or failed; nothing changes afterwards.
// - Its history is gapless: the n-th event has the number n, and the last one is the terminal one.

import type { JsonObject } from "../engine/json.ts";
import type { Page } from "../lib/page.ts";
import type { EventPage } from "../runs/job-records.ts";

export const operationKinds = [
  "blueprint_addition",
  "blueprint_removal",
  "node_removal",
  "node_leave",
  "node_join",
  "model_installation",
  "model_update",
  "model_removal",
  "model_serving",
] as const;
export type OperationKind = (typeof operationKinds)[number];

export const operationStatuses = ["pending", "running", "completed", "failed"] as const;
export type OperationStatus = (typeof operationStatuses)[number];

export interface OperationStep {
  readonly name: string;
  /** For people, such as "Copying the package". */
  readonly label: string;
  readonly status: "pending" | "running" | "completed" | "failed" | "skipped";
}

export interface OperationError {
  readonly code: string;
  /** What happened, and what to do next. */
  readonly detail: string;
  /** Whether the same request, with a new idempotency key, may succeed. */
  readonly retryable: boolean;
}

export interface Operation {
  /** `op_` and a time-ordered id. */
  readonly operationId: string;
  readonly kind: OperationKind;
  /** What it is about: the id of a blueprint or of a node, or `model:` and that of a model. Of one target at most one operation is open. */
  readonly target: string;
  readonly status: OperationStatus;
  /** 0 to 100. */
  readonly percent: number;
  readonly label: string;
  /** The step under way; null before the first and after the last. */
  readonly step: string | null;
  readonly steps: readonly OperationStep[];
  /** What was asked for; enough to resume after a restart. */
  readonly request: JsonObject;
  readonly result: JsonObject | null;
  readonly error: OperationError | null;
  /** The program that works on it (ownership.ts). */
  readonly owner: string | null;
  /** Number of the last event. */
  readonly eventSeq: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly finishedAtMs: number | null;
}

/** Newest first. */
export interface OperationPage {
  readonly target: string | null;
  readonly status: OperationStatus | null;
  readonly limit: number;
  /** The last id of the page before. */
  readonly after: string | null;
}

export interface OperationRecords {
  operation(operationId: string): Promise<Operation | null>;
  operations(page: OperationPage): Promise<Page<Operation>>;
  /** Oldest first: those that have not ended, of all programs. */
  openOperations(): Promise<readonly Operation[]>;
  /** Events behind `afterSeq`, at most `limit`. */
  operationEvents(operationId: string, afterSeq: number, limit: number): Promise<EventPage>;
  /** Removes operations that ended before `beforeMs`, with their events, at most `limit`; returns how many. */
  forgetOperations(beforeMs: number, limit: number): Promise<number>;
}

/** The part of a gateway transaction that writes operations. */
export interface OperationWrites {
  /** The one of this target that has not ended. */
  open(target: string): Promise<Operation | null>;
  insert(operation: Operation, eventLine: string): Promise<void>;
  /**
   * @param eventLine the event with the number `operation.eventSeq`; null when there is none
   * @returns false when it has ended, or another program works on it now; nothing is changed
   */
  save(operation: Operation, eventLine: string | null): Promise<boolean>;
}
