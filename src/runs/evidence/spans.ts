// The spans of a run: run > agent > task > attempt. Their ids follow from the run's id and their own names, so that
// every view of the history, now and after a restart, gives a span the same id without keeping one.

import { hash } from "node:crypto";
import type { JsonObject } from "../../engine/json.ts";
import { textField, wholeField } from "./line.ts";

const SPAN_ID_CHARS = 16;

export interface Span {
  readonly id: string;
  /** Null for the run itself. */
  readonly parentId: string | null;
}

export function runSpan(runId: string): Span {
  return { id: runSpanId(runId), parentId: null };
}

export function agentSpan(runId: string, agentId: string): Span {
  return { id: agentSpanId(runId, agentId), parentId: runSpanId(runId) };
}

/** @param task the task's number in the run */
export function taskSpan(runId: string, agentId: string, task: number): Span {
  return { id: taskSpanId(runId, task), parentId: agentSpanId(runId, agentId) };
}

export function attemptSpan(runId: string, { task, attempt }: AttemptName): Span {
  return { id: spanId(runId, ["attempt", task, attempt]), parentId: taskSpanId(runId, task) };
}

/** A moment that belongs to an agent. */
export function momentSpan(runId: string, agentId: string, name: readonly string[]): Span {
  return { id: spanId(runId, name), parentId: agentSpanId(runId, agentId) };
}

export interface AttemptName {
  readonly task: number;
  readonly attempt: number;
}

/** The attempt that an engine's event is about, by the name of its sandbox or by its numbers. */
export function attemptOf(fields: JsonObject): AttemptName | null {
  const match = /-(\d{1,15})-(\d{1,15})$/.exec(textField(fields, "sandbox_name") ?? "");
  if (match !== null) return { task: Number(match[1]), attempt: Number(match[2]) };
  const task = wholeField(fields, "task");
  const attempt = wholeField(fields, "attempt");
  return task === null || attempt === null ? null : { task, attempt };
}

const runSpanId = (runId: string) => spanId(runId, ["run"]);
const agentSpanId = (runId: string, agentId: string) => spanId(runId, ["agent", agentId]);
const taskSpanId = (runId: string, task: number) => spanId(runId, ["task", task]);

function spanId(runId: string, name: readonly (string | number)[]): string {
  return hash("sha256", JSON.stringify([runId, ...name])).slice(0, SPAN_ID_CHARS);
}
