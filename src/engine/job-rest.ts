// What aggregators collect, and what follows when a job has come to rest: aggregators form their results, earlier
// ones first, each of which may wake the job again; when none has anything to emit, the job is complete.

import { form, restAggregator } from "./agents/aggregator.ts";
import type { AgentSlot, Job } from "./job.ts";
import * as control from "./job-control.ts";
import { missingOutputs } from "./job-ends.ts";
import type { JsonValue } from "./json.ts";
import { limits } from "./limits.ts";

/** The aggregators in the order in which they form their results at rest: earlier in the graph first. */
export interface RestOrder {
  readonly aggregators: readonly AgentSlot[];
  readonly placeOf: ReadonlyMap<AgentSlot, number>;
  /** Those before it have nothing to emit: each collection moves it back, so that all rests together are linear. */
  cursor: number;
}

export function restOrder(agents: readonly AgentSlot[]): RestOrder {
  const aggregators = agents
    .filter(({ node }) => node.agentType === "aggregator")
    .sort((a, b) => a.node.rank - b.node.rank || a.node.index - b.node.index);
  const placeOf = new Map(aggregators.map((agent, place) => [agent, place]));
  return { aggregators, placeOf, cursor: 0 };
}

/** Keeps a body with what the aggregator has collected. */
export function collect(job: Job, agent: AgentSlot, body: JsonValue): void {
  const json = JSON.stringify(body);
  agent.collectedChars += json.length;
  if (agent.collectedChars > limits.formedCharsMax) {
    const { nodeId } = agent.node;
    const message = `Aggregator "${nodeId}" has collected more than ${limits.formedCharsMax} characters.`;
    job.failRun("message.body_too_large", message, { agentId: nodeId });
    return;
  }
  agent.collected.push(body);
  agent.collectedSeq++;
  job.draft.collected(agent.node.index, agent.collectedSeq, json);
  const place = job.restOrder.placeOf.get(agent);
  if (place !== undefined && place < job.restOrder.cursor) job.restOrder.cursor = place;
}

/** Forgets everything that the aggregator has collected. */
export function clear(job: Job, agent: AgentSlot): void {
  agent.collected = [];
  agent.collectedChars = 0;
  job.draft.cleared(agent.node.index);
}

/** At rest: the earliest aggregator with something to emit goes on; without one the job is complete. */
export function rest(job: Job): void {
  const { aggregators } = job.restOrder;
  for (; job.restOrder.cursor < aggregators.length; job.restOrder.cursor++) {
    const agent = aggregators[job.restOrder.cursor]!;
    const { config } = agent.node;
    const step = config.kind === "aggregator" ? restAggregator(config, agent.state, agent.collected) : null;
    if (step === null) continue;
    job.isEndingAtRest = true;
    job.apply(agent, step, null);
    job.isEndingAtRest = false;
    return;
  }
  job.isEndingAtRest = true;
  control.complete(job, resultAtRest(job));
}

/** CONTRACTS §6 "Results": the only aggregator that has something, else every agent's last unrouted body. */
function resultAtRest(job: Job): JsonValue {
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
