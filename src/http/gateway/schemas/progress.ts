// How far a run has come: its steps and agents (CONTRACTS §6 "Evidence").

import { Type } from "../../core/type.ts";
import { answerObject, JsonObjectSchema, nullable, strictObject, Time } from "./common.ts";
import { AgentEndsSchema, RunStatus, reasonFields } from "./runs.ts";
import { ObservabilitySummarySchema } from "./summary.ts";

export const WorkflowProgressQuery = strictObject({
  run_id: Type.Optional(Type.String({ description: "One of the job's runs; the latest one without it." })),
});

const states = [
  "pending",
  "ready",
  "running",
  "waiting",
  "paused",
  "done",
  "failed",
  "cancelled",
  "skipped",
  "not_reached",
];

const StepState = Type.Union(
  states.map((state) => Type.Literal(state)),
  {
    description:
      "pending: nothing has come to it. ready: it has worked and may get more. waiting: for slots, a retry or something outside. skipped: the run ended before anything came to it. not_reached: the run was completed, and no message ever reached it.",
  },
);

const Failure = (description: string) => nullable(JsonObjectSchema(`svc.error.v1; ${description}`));

/** What steps and agents share. */
const progressOfNode = {
  state: StepState,
  attempt: nullable(Type.Integer({ description: "Of its task, from 1; null without one." })),
  started_at: nullable(
    Time(
      "When the attempt began; of a node without attempts, when its first message came. Null while that is not known.",
    ),
  ),
  finished_at: nullable(
    Time("When the attempt, or the node, was through; null while it runs, or not known."),
  ),
  duration_ms: nullable(Type.Integer({ description: "From the one to the other, or to now." })),
  failure: Failure("what failed there, in spite of which the run may have gone on."),
};

export const WorkflowProgressSchema = answerObject(
  {
    job_id: Type.String({ examples: ["job_01k9z1v7m3e8q2x4c6t8b0n5dg"] }),
    run_id: nullable(Type.String({ examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] })),
    status: nullable(RunStatus),
    progress: answerObject({
      percent: Type.Integer({ description: "0 to 100.", examples: [40] }),
      done: Type.Integer({
        description:
          "Agents that have done what there was for them so far; of an ended run, those that ended well.",
      }),
      total: Type.Integer({ description: "Agents." }),
      agents: Type.Optional(AgentEndsSchema),
      label: Type.String({ description: "For people.", examples: ["2 of 5 agents done"] }),
    }),
    steps: Type.Array(
      answerObject({
        step_id: Type.String(),
        name: Type.String(),
        agent_id: Type.String(),
        ...progressOfNode,
      }),
      { description: "The graph's nodes in its order; at most 1,000, those that something can be said of." },
    ),
    agents: Type.Array(
      answerObject({
        agent_id: Type.String(),
        agent_type: Type.String(),
        ...progressOfNode,
        processed_messages: Type.Integer(),
        mailbox_depth: Type.Integer({ description: "Messages that wait for it." }),
        last_error: nullable(Type.String()),
      }),
      { description: "The same nodes, with what their agents did." },
    ),
    failure: Failure("null unless the run failed."),
    ...reasonFields,
    trace_id: nullable(
      Type.String({ description: "W3C trace id.", examples: ["4bf92f3577b34da6a3ce929d0e0e4736"] }),
    ),
    observability_summary: nullable(ObservabilitySummarySchema),
    eta_ms: nullable(
      Type.Integer({
        description:
          "Until the end, about: what the last completed runs of the job took, less what this one has taken; 0 when it takes longer. Null without such runs, and when it is not running.",
        examples: [42_000],
      }),
    ),
  },
  { description: "How far a run of the job has come." },
);
