// Run (spec gateway-api "Run", CONTRACTS §3).

import { BATCH_ITEMS_MAX } from "../../core/batch-text.ts";
import { Type } from "../../core/type.ts";
import {
  answerObject,
  JsonObjectSchema,
  nullable,
  ProblemSchema,
  pageOf,
  pageQuery,
  strictObject,
  Time,
} from "./common.ts";

export const RunStatus = Type.Union(
  ["pending", "queued", "running", "paused", "completed", "failed", "cancelled"].map((status) =>
    Type.Literal(status),
  ),
  { description: "completed, failed and cancelled are final." },
);

export const DesiredState = Type.Union([
  Type.Literal("paused"),
  Type.Literal("running"),
  Type.Literal("cancelled"),
]);

const Trigger = answerObject({
  kind: Type.Union([
    Type.Literal("api"),
    Type.Literal("blueprint"),
    Type.Literal("schedule"),
    Type.Literal("event"),
  ]),
  id: nullable(Type.String({ description: "Of the schedule, event or blueprint." })),
});

export const AgentEndsSchema = answerObject(
  {
    done: Type.Integer({ description: "They ended well." }),
    failed: Type.Integer(),
    cancelled: Type.Integer({ description: "At work, or with messages to read, when the run ended." }),
    skipped: Type.Integer({ description: "The run ended before anything came to them." }),
    not_reached: Type.Integer({ description: "No message ever reached them, though the run was completed." }),
  },
  { description: "How many agents ended how; only of a run that has ended." },
);

const Progress = answerObject({
  agents_total: Type.Integer(),
  agents_done: Type.Integer({
    description:
      "Agents that have done what there was for them so far; of an ended run, those that ended well.",
  }),
  agents: Type.Optional(AgentEndsSchema),
  messages: Type.Integer({ description: "Messages sent so far." }),
  tasks_running: Type.Integer(),
  human_pending: Type.Integer({ description: "Requests to people that nobody has answered yet." }),
  label: Type.String({ description: "For people.", examples: ["2 of 5 agents done"] }),
});

const Links = Type.Record(Type.String(), Type.String(), {
  description:
    "Where to look next: self, job, events, events_stream, stream, result, logs, timeline, artifacts, outputs, human, dead_letters, observability_summary.",
});

const Reason = nullable(
  Type.String({ description: "For people: failure.desc, or null. Kept for clients that know no failure." }),
);

/** What old clients read in place of the failure. */
export const reasonFields = { reason: Reason, status_reason: Reason };

export const RunSchema = answerObject(
  {
    run_id: Type.String({ examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    job_id: Type.String(),
    status: RunStatus,
    desired_state: DesiredState,
    inputs: JsonObjectSchema("As given at creation."),
    config_overrides: nullable(JsonObjectSchema('As given at creation; secrets are shown as "********".')),
    trigger: Trigger,
    attempt: Type.Integer(),
    created_at: Time("When the run was accepted."),
    started_at: nullable(Time("When its graph began to run.")),
    finished_at: nullable(Time("When it ended.")),
    updated_at: Time("Last change."),
    duration_ms: nullable(Type.Integer({ description: "From its start to its end, or to now." })),
    progress: Progress,
    result: nullable(JsonObjectSchema("Null until there is one.")),
    failure: nullable(JsonObjectSchema("svc.error.v1; null unless the run failed.")),
    ...reasonFields,
    trace_id: Type.String({ description: "W3C trace id.", examples: ["4bf92f3577b34da6a3ce929d0e0e4736"] }),
    links: Links,
  },
  { description: "One execution of a job." },
);

/** A run as a job mentions it. */
export const RunSummarySchema = answerObject({
  run_id: Type.String(),
  status: RunStatus,
  desired_state: DesiredState,
  created_at: Time("When the run was accepted."),
  started_at: nullable(Time("When its graph began to run.")),
  finished_at: nullable(Time("When it ended.")),
  updated_at: Time("Last change."),
});

export const RunPageSchema = pageOf(RunSchema, "runs, newest first");

export const runInputs = JsonObjectSchema(
  'One body for every entrypoint, in place of the manifest\'s initial_inputs; {} leaves those. {"$entrypoints": {"id": [bodies]}} addresses entrypoints one by one.',
  { topic: "bees" },
);

export const CreateRunBody = strictObject(
  {
    inputs: Type.Optional(runInputs),
    config_overrides: Type.Optional(
      JsonObjectSchema(
        "For jobs made from a catalog blueprint only: laid over the job's configuration. The run, and the job from then on, use the blueprint's package as it is now.",
      ),
    ),
  },
  { examples: [{ inputs: { topic: "bees" } }] },
);

export const CreateRunsBody = strictObject(
  {
    items: Type.Array(
      // Of any type here: what is wrong with one item is that item's answer.
      Type.Unsafe<unknown>({
        description: "What starts one run: inputs and config_overrides, as in the start of a single run.",
        examples: [{ inputs: { topic: "bees" } }],
      }),
      { maxItems: BATCH_ITEMS_MAX },
    ),
  },
  { examples: [{ items: [{ inputs: { topic: "bees" } }, { inputs: { topic: "wasps" } }] }] },
);

const StartedItem = answerObject({
  status: Type.Integer({
    description:
      "What the item would have been answered with alone: 202 when its run was accepted, 200 when it was waited for and has ended, 4xx when it was refused.",
  }),
  id: Type.Optional(Type.String({ description: "The run's id." })),
  run: Type.Optional(RunSchema),
  error: Type.Optional(ProblemSchema),
});

export const StartedRunsSchema = answerObject(
  {
    items: Type.Array(StartedItem, {
      description: "In the order of the request. Each has id, and run when it has ended; or error.",
    }),
  },
  { description: "What became of each item." },
);

export const ControlRunBody = strictObject(
  { desired_state: DesiredState },
  { examples: [{ desired_state: "paused" }] },
);

export const JobRunsQuery = strictObject({
  status: Type.Optional(RunStatus),
  ...pageQuery,
});

export const RunsQuery = strictObject({
  job_id: Type.Optional(Type.String({ description: "Runs of this job only." })),
  status: Type.Optional(RunStatus),
  ...pageQuery,
});
