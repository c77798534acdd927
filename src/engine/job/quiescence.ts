// Quiescence: nothing is left in a job that could still change anything. Aggregators form their results, earlier ones
// first, each of which may give the job new work; when none has anything to emit, the job is complete.

import { form, stepQuiescentAggregator } from "../agents/aggregator.ts";
import type { JsonValue } from "../json.ts";
import { holdsJobOpen } from "./human-requests.ts";
import type { Job } from "./state.ts";
import { complete, missingOutputs } from "./status.ts";
import { apply } from "./steps.ts";

/** Whether no message, task, sensor or person is left that could still change anything. */
export function isQuiescent(job: Job): boolean {
  return (
    job.graph.type === "batch" &&
    job.waitingMessages === 0 &&
    job.openTasks === 0 &&
    job.openSensors === 0 &&
    !holdsJobOpen(job)
  );
}

/** The earliest aggregator with something to emit goes on; without one the job is complete. */
export function goOnOrComplete(job: Job): void {
  const { aggregators } = job;
  for (; aggregators.cursor < aggregators.inOrder.length; aggregators.cursor++) {
    const agent = aggregators.inOrder[aggregators.cursor]!;
    const { config } = agent.node;
    const step =
      config.kind === "aggregator" ? stepQuiescentAggregator(config, agent.state, agent.collected) : null;
    if (step === null) continue;
    apply(job, agent, step, null);
    return;
  }
  complete(job, resultOf(job), true);
}

/** CONTRACTS §6 "Results": the only aggregator that has something, else every agent's last unrouted body. */
function resultOf(job: Job): JsonValue {
  const holders = job.agents.filter((agent) => agent.collected.length > 0);
  const only = holders.length === 1 ? holders[0] : undefined;
  const partial = job.partial || missingOutputs(job).length > 0 ? { partial: true } : {};
  if (only !== undefined) return { ...(form(only.collected) as object), ...partial };
  const outputs = job.agents.flatMap(({ node, unrouted }) =>
    unrouted === undefined ? [] : [[node.nodeId, unrouted] as const],
  );
  // From entries, so that a node called __proto__ is a key like any other.
  return { outputs: Object.fromEntries(outputs), ...partial };
}
