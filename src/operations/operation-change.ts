// The changes of an operation, one named function each, with their events. Pure.
//
// - A change adds one to the number of the last event, and its event has that number.
// - Neither the percentage nor a step's status goes back: of an operation that is done again after a restart, what
//   it has done already writes no event.

import { isoTime } from "../engine/event.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Operation, OperationError, OperationKind, OperationStep } from "./records.ts";

export type OperationEventType =
  | "operation_pending"
  | "operation_running"
  | "operation_progress"
  | "operation_completed"
  | "operation_failed";

/** The types of the events that nothing follows. */
export const terminalOperationEvents: ReadonlySet<string> = new Set([
  "operation_completed",
  "operation_failed",
]);

export interface OperationChange {
  readonly type: OperationEventType;
  readonly operation: Operation;
}

/** A step as its handler declares it. */
export type DeclaredStep = Pick<OperationStep, "name" | "label">;

export function isOpen({ status }: Operation): boolean {
  return status === "pending" || status === "running";
}

export function pending(given: {
  readonly operationId: string;
  readonly kind: OperationKind;
  readonly target: string;
  readonly request: JsonObject;
  readonly steps: readonly DeclaredStep[];
  readonly owner: string | null;
  readonly nowMs: number;
}): OperationChange {
  const { operationId, kind, target, request, owner, nowMs } = given;
  return {
    type: "operation_pending",
    operation: {
      operationId,
      kind,
      target,
      status: "pending",
      percent: 0,
      label: "Waiting to begin",
      step: null,
      steps: given.steps.map(({ name, label }) => ({ name, label, status: "pending" })),
      request,
      result: null,
      error: null,
      owner,
      eventSeq: 1,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
      finishedAtMs: null,
    },
  };
}

export function running(before: Operation, nowMs: number): OperationChange {
  const changed = next(before, nowMs, { status: "running", label: "Beginning" });
  return { type: "operation_running", operation: changed };
}

/** @returns null when the step was entered or passed before */
export function entered(before: Operation, name: string, nowMs: number): OperationChange | null {
  const step = stepOf(before, name);
  if (step.status !== "pending") return null;
  return advanced(before, step, { status: "running", step: name, label: step.label }, nowMs);
}

/** There is nothing to do in this step. @returns null when it is through already */
export function skipped(before: Operation, name: string, nowMs: number): OperationChange | null {
  const step = stepOf(before, name);
  if (step.status === "completed" || step.status === "skipped") return null;
  return advanced(before, step, { status: "skipped", step: null, label: before.label }, nowMs);
}

/** A step gets a status; the ones before it that were running are completed. */
function advanced(
  before: Operation,
  step: OperationStep,
  to: Pick<OperationStep, "status" | "label"> & Pick<Operation, "step">,
  nowMs: number,
): OperationChange {
  const place = before.steps.indexOf(step);
  const steps = before.steps.map((one, i): OperationStep => {
    if (one === step) return { ...one, status: to.status };
    return i < place && one.status === "running" ? { ...one, status: "completed" } : one;
  });
  const percent = Math.max(before.percent, percentOf(steps, 0));
  const changes = { steps, step: to.step, label: to.label, percent };
  return { type: "operation_progress", operation: next(before, nowMs, changes) };
}

/**
 * @param fraction of the step under way, 0 to 1
 * @returns null when there is no visible difference
 */
export function progressed(
  before: Operation,
  fraction: number,
  label: string,
  nowMs: number,
): OperationChange | null {
  const inStep = Math.min(1, Math.max(0, fraction));
  const percent = Math.max(before.percent, percentOf(before.steps, inStep));
  if (percent === before.percent && label === before.label) return null;
  return { type: "operation_progress", operation: next(before, nowMs, { percent, label }) };
}

export function completed(before: Operation, result: JsonObject, nowMs: number): OperationChange {
  const steps = before.steps.map(
    (one): OperationStep =>
      one.status === "skipped" ? one : { ...one, status: one.status === "pending" ? "skipped" : "completed" },
  );
  const changed = next(before, nowMs, {
    status: "completed",
    percent: 100,
    label: "Done",
    step: null,
    steps,
    result,
    finishedAtMs: nowMs,
  });
  return { type: "operation_completed", operation: changed };
}

export function failed(before: Operation, error: OperationError, nowMs: number): OperationChange {
  const steps = before.steps.map(
    (one): OperationStep => (one.status === "running" ? { ...one, status: "failed" } : one),
  );
  const changed = next(before, nowMs, {
    status: "failed",
    label: "Failed",
    steps,
    result: null,
    error,
    finishedAtMs: nowMs,
  });
  return { type: "operation_failed", operation: changed };
}

/** The event of a change, as the line that is kept and that every reader sees. */
export function eventLine({ type, operation }: OperationChange): string {
  const { operationId, percent, label, step, steps, result, error, eventSeq, updatedAtMs } = operation;
  const isEnd = terminalOperationEvents.has(type);
  return JSON.stringify({
    id: eventSeq,
    operation_id: operationId,
    timestamp: isoTime(updatedAtMs),
    type,
    payload: { percent, label, step, steps, ...(isEnd && { result, error }) },
  });
}

function next(before: Operation, nowMs: number, changes: Partial<Operation>): Operation {
  const updatedAtMs = Math.max(nowMs, before.updatedAtMs);
  return { ...before, ...changes, eventSeq: before.eventSeq + 1, updatedAtMs };
}

function stepOf({ steps }: Operation, name: string): OperationStep {
  const step = steps.find((one) => one.name === name);
  if (step === undefined) throw new Error(`There is no step "${name}".`);
  return step;
}

/** All steps count alike; an operation is at 100 with its end alone. */
function percentOf(steps: readonly OperationStep[], fractionOfRunning: number): number {
  if (steps.length === 0) return 0;
  const through = steps.filter(({ status }) => status === "completed" || status === "skipped").length;
  return Math.min(99, Math.floor(((through + fractionOfRunning) / steps.length) * 100));
}
