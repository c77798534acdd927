// One message, timer or result through one agent: what each kind of agent does with it, and what the actions of its step
// mean for the job. The steps themselves are pure and live in agents/.

import { stepAggregator } from "../agents/aggregator.ts";
import { stepRouter } from "../agents/router.ts";
import { stepSensor, stepSensorTimer } from "../agents/sensor.ts";
import type { Action, Step } from "../agents/step.ts";
import type { JsonValue } from "../json.ts";
import { limits } from "../limits.ts";
import { type Message, messageId, toEnvelope } from "../message.ts";
import { addEvent, markDone } from "./history.ts";
import { ask, HUMAN_INPUT_REQUESTED } from "./human-questions.ts";
import { deadLetter, deadLetterToNobody, deliver, discardMailbox, startMessage } from "./messages.ts";
import { setTimer } from "./schedule.ts";
import { type AgentState, isOver, type Job, refOf } from "./state.ts";
import { complete, failRun, sensorTimerOf } from "./status.ts";
import { abandon, createTask } from "./tasks.ts";

/** Has the agent work on a message that was taken out of its mailbox: at once, or as a task outside. */
export function process(job: Job, agent: AgentState, message: Message): void {
  const { config } = agent.node;
  switch (config.kind) {
    case "router":
      apply(job, agent, stepRouter(config, agent.state, message), message);
      return;
    case "aggregator":
      if (agent.collected.length >= limits.collectedMessagesMax) deadLetter(job, message, "mailbox_full", 1);
      else apply(job, agent, stepAggregator(config, agent.state, message, agent.collected), message);
      return;
    case "sensor":
      apply(job, agent, stepSensor(config, agent.state, message), message);
      return;
    case "executor":
      if (!config.longLived) createTask(job, agent, "command", message);
      else sendToWorker(job, agent, message);
      return;
    case "module":
      createTask(job, agent, "module", message);
      return;
    default:
      config satisfies never;
  }
}

/** Hands a message to the agent's long-lived command. */
function sendToWorker(job: Job, { node, task }: AgentState, message: Message): void {
  if (task === null || task.state.kind !== "running") return;
  job.draft.effects.sends.push({
    ref: refOf(job, task),
    envelope: toEnvelope(message, job, node.nodeId, task.attempt),
  });
}

/** A sensor's timer is due; late and superseded timers change nothing. */
export function sensorTimerDue(job: Job, agentIndex: number): void {
  const { clock } = job.context;
  const agent = job.agents[agentIndex]!;
  const { config } = agent.node;
  const dueAtMs = sensorTimerOf(agent);
  if (config.kind !== "sensor" || job.status !== "running" || dueAtMs === null) return;
  if (dueAtMs > clock.steadyMs()) return;
  apply(job, agent, stepSensorTimer(config, agent.state, clock), null);
}

/**
 * Takes over an agent's new state and does what its step asked for.
 * @param cause the message that the step worked on; null when there was none
 */
export function apply(job: Job, agent: AgentState, step: Step, cause: Message | null): void {
  agent.state = step.state;
  job.draft.changedAgents.add(agent.node.index);
  for (const action of step.actions) {
    // An emit may end the run: what it sent was too large.
    if (isOver(job)) return;
    act(job, agent, action, cause);
  }
}

function act(job: Job, agent: AgentState, action: Action, cause: Message | null): void {
  switch (action.kind) {
    case "emit":
      emit(job, agent, action, cause);
      return;
    case "event":
      if (action.type === HUMAN_INPUT_REQUESTED) ask(job, agent, action.payload, cause);
      else addEvent(job, action.type, agent.node.nodeId, action.payload);
      return;
    case "collect":
      collect(job, agent, action.body);
      return;
    case "clear":
      clear(job, agent);
      return;
    case "task":
      createTask(job, agent, action.task, startMessage(job, agent.node.index));
      return;
    case "timer":
      setTimer(job, action.dueAtMs, { kind: "sensor", agentIndex: agent.node.index });
      return;
    case "done":
      sensorDone(job, agent);
      return;
    case "complete_run":
      complete(job, action.result);
      return;
    default:
      action satisfies never;
  }
}

/** Sends what an agent emitted: to the agent it names, or along every edge that carries the type. */
function emit(
  job: Job,
  agent: AgentState,
  { type, body, to: receiver }: Extract<Action, { kind: "emit" }>,
  cause: Message | null,
): void {
  const { nodeId: from, toAll, toByType } = agent.node;
  // Measured and timed once, however many agents it goes to.
  const chars = JSON.stringify(body).length;
  if (chars > limits.formedCharsMax) {
    const most = `more than the ${limits.formedCharsMax} that one message may have`;
    const message = `Agent "${from}" sent a body of ${chars} characters, ${most}.`;
    failRun(job, "message.body_too_large", message, { agentId: from });
    return;
  }
  const head = {
    from,
    type,
    body,
    chars,
    timestampMs: job.context.clock.nowMs(),
    correlationId: cause?.correlationId ?? null,
    causationId: cause === null ? null : messageId(job.runId, cause.seq),
  };
  if (receiver !== null) {
    const to = job.graph.indexOf.get(receiver);
    if (to !== undefined) deliver(job, to, head);
    else deadLetterToNobody(job, receiver, head);
    return;
  }
  const typed = toByType.get(type);
  for (const to of toAll) deliver(job, to, head);
  if (typed !== undefined) for (const to of typed) deliver(job, to, head);
  if (toAll.length === 0 && typed === undefined) {
    agent.unrouted = body;
    addEvent(job, "message_unrouted", from, { type });
  }
}

/** Keeps a body with what the aggregator has collected. */
function collect(job: Job, agent: AgentState, body: JsonValue): void {
  const { index, nodeId } = agent.node;
  const json = JSON.stringify(body);
  agent.collectedChars += json.length;
  if (agent.collectedChars > limits.formedCharsMax) {
    const message = `Aggregator "${nodeId}" has collected more than ${limits.formedCharsMax} characters.`;
    failRun(job, "message.body_too_large", message, { agentId: nodeId });
    return;
  }
  agent.collected.push(body);
  agent.collectedSeq++;
  const run = job.draft.collected.get(index);
  if (run !== undefined) run.bodiesJson.push(json);
  else job.draft.collected.set(index, { firstSeq: agent.collectedSeq, bodiesJson: [json] });
  const { aggregators } = job;
  aggregators.cursor = Math.min(aggregators.cursor, aggregators.placeOf.get(agent)!);
}

/** Forgets everything that the aggregator has collected. */
function clear(job: Job, agent: AgentState): void {
  agent.collected = [];
  agent.collectedSeq = 0;
  agent.collectedChars = 0;
  job.draft.collected.delete(agent.node.index);
  job.draft.cleared.add(agent.node.index);
}

export function sensorDone(job: Job, agent: AgentState): void {
  job.openSensors--;
  markDone(job, agent);
  if (agent.task !== null) abandon(job, agent.task);
  discardMailbox(job, agent);
}
