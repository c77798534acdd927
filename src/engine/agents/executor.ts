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
  const actions = workerActions(outcome.actions);
  if (config.outputMessageType !== null && outcome.command !== null) {
    const body = resultBody(outcome.command, outcome.actions, message, attempt);
    actions.push({ kind: "emit", type: config.outputMessageType, body, to: null });
  }
  return finish(state, outcome.actions, actions);
}

/** handle() of a module has returned. */
export function stepModuleOutcome(state: JsonValue, outcome: SucceededOutcome): Step {
  return finish(state, outcome.actions, workerActions(outcome.actions));
}

/** A long-lived command asked for something while it goes on. */
export function stepWorkerActions(state: JsonValue, given: WorkerActions): Step {
  return finish(state, given, workerActions(given));
}

function workerActions(given: WorkerActions): Action[] {
  const actions: Action[] = [];
  for (const event of given.events) actions.push({ kind: "event", type: event.type, payload: event.payload });
  for (const emit of given.emits) {
    actions.push({ kind: "emit", type: emit.type, body: emit.body, to: emit.to });
  }
  return actions;
}

/** Completing the run comes last, so that what the same result emits is still counted and seen. */
function finish(state: JsonValue, given: WorkerActions, actions: Action[]): Step {
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
