// executor and module: a message becomes a task; the task's outcome becomes messages, state and results.

import type { ExecutorConfig } from "../graph.ts";
import type { JsonValue } from "../json.ts";
import type { Message } from "../message.ts";
import type { CommandResult, Lease, TaskOutcome, WorkerActions } from "../task-port.ts";
import type { Action, Step } from "./step.ts";

export type SucceededOutcome = Extract<TaskOutcome, { kind: "succeeded" }>;

/** What the emitted body says about the attempt that produced it. */
export interface AttemptView {
  readonly agentId: string;
  readonly sandboxName: string;
  readonly attempts: number;
  readonly lease: Lease | null;
}

/** A command of an executor has succeeded (CONTRACTS §4 executor and worker contract). */
export function stepExecutorOutcome(
  config: ExecutorConfig,
  state: JsonValue,
  outcome: SucceededOutcome,
  message: Message,
  attempt: AttemptView,
): Step {
  const { command, actions } = outcome;
  if (config.outputMessageType === null || command === null) return stepWorkerActions(state, actions);
  const body = resultBody(command, actions, message, attempt);
  return stepWorkerActions(state, {
    ...actions,
    emits: [...actions.emits, { type: config.outputMessageType, body, to: null }],
  });
}

/** What a module returned, or a long-lived command asked for while it goes on. */
export function stepWorkerActions(state: JsonValue, given: WorkerActions): Step {
  const actions: Action[] = [
    ...given.events.map(({ type, payload }) => ({ kind: "event", type, payload }) as const),
    ...given.emits.map(({ type, body, to }) => ({ kind: "emit", type, body, to }) as const),
  ];
  // Last, so that what the same result emits is still counted and seen.
  if (given.completeRun !== undefined) actions.push({ kind: "complete_run", result: given.completeRun });
  return { state: given.nextState === undefined ? state : given.nextState, actions };
}

function resultBody(
  command: CommandResult,
  given: WorkerActions,
  message: Message,
  attempt: AttemptView,
): JsonValue {
  const { lease } = attempt;
  return {
    agent_id: attempt.agentId,
    sandbox: {
      sandbox_name: attempt.sandboxName,
      exit_code: command.exitCode,
      stdout: command.stdout,
      stderr: command.stderr,
      attempts: attempt.attempts,
      lease: lease === null ? null : { lease_id: lease.leaseId, pool: lease.pool, slots: lease.slots },
      duration_ms: command.durationMs,
    },
    input: message.body,
    ...(given.completeStep !== undefined && { result: given.completeStep }),
  };
}
