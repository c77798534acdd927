// One message through one agent: what each kind of agent does with it, and what the actions of its step mean for the
// job. The steps themselves are pure and live in agents/.

import { stepAggregator } from "./agents/aggregator.ts";
import { stepRouter } from "./agents/router.ts";
import { stepSensor } from "./agents/sensor.ts";
import type { Action } from "./agents/step.ts";
import type { AgentSlot, Job } from "./job.ts";
import * as control from "./job-control.ts";
import * as human from "./job-human.ts";
import * as mail from "./job-messages.ts";
import * as jobReports from "./job-reports.ts";
import * as rest from "./job-rest.ts";
import * as jobTasks from "./job-tasks.ts";
import { limits } from "./limits.ts";
import type { Message } from "./message.ts";

/** Has the agent work on a message that was taken out of its mailbox: at once, or as a task outside. */
export function process(job: Job, agent: AgentSlot, message: Message): void {
  const { config } = agent.node;
  switch (config.kind) {
    case "router":
      job.apply(agent, stepRouter(config, agent.state, message), message);
      return;
    case "aggregator":
      if (agent.collected.length >= limits.collectedMessagesMax)
        mail.deadLetter(job, message, "mailbox_full", 1);
      else job.apply(agent, stepAggregator(config, agent.state, message, agent.collected), message);
      return;
    case "sensor":
      job.apply(agent, stepSensor(config, agent.state, message), message);
      return;
    case "executor":
      if (!config.longLived) jobTasks.createTask(job, agent, "command", message);
      else jobReports.sendToWorker(job, agent, message);
      return;
    case "module":
      jobTasks.createTask(job, agent, "module", message);
      return;
    default:
      config satisfies never;
  }
}

/**
 * Does one thing that a step asked for.
 * @param cause the message that the step worked on; null when there was none
 */
export function act(job: Job, agent: AgentSlot, action: Action, cause: Message | null): void {
  switch (action.kind) {
    case "emit":
      mail.emit(job, agent, action, cause);
      return;
    case "event":
      if (action.type === human.HUMAN_INPUT_REQUESTED) human.ask(job, agent, action.payload, cause);
      else job.event(action.type, agent.node.nodeId, action.payload);
      return;
    case "collect":
      rest.collect(job, agent, action.body);
      return;
    case "clear":
      rest.clear(job, agent);
      return;
    case "task":
      jobTasks.createTask(job, agent, action.task, mail.startMessage(job, agent.node.index));
      return;
    case "timer":
      job.timer(action.dueAtMs, { kind: "sensor", agentIndex: agent.node.index });
      return;
    case "done":
      job.sensorDone(agent);
      return;
    case "complete_run":
      control.complete(job, action.result);
      return;
    default:
      action satisfies never;
  }
}
