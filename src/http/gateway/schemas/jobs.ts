// Job: a durable definition (spec gateway-api "Job", CONTRACTS §3).

import { Type } from "../../core/type.ts";
import { answerObject, JsonObjectSchema, nullable, pageOf, pageQuery, strictObject, Time } from "./common.ts";
import { RunStatus, RunSummarySchema } from "./runs.ts";
import { latestRunEvidence } from "./summary.ts";

const Source = Type.Union([
  answerObject({ bundle_id: Type.String() }),
  answerObject({ blueprint_id: Type.String() }),
]);

const compact = {
  job_id: Type.String({ examples: ["job_01k9z1v7m3e8q2x4c6t8b0n5dg"] }),
  name: Type.String(),
  status: Type.Union([Type.Literal("ready"), Type.Literal("preparing"), Type.Literal("failed_preparation")], {
    description:
      "preparing: its blueprint is being added. failed_preparation: that failed, and a later addition may mend it.",
  }),
  source: Source,
  graph_id: Type.String(),
  resolved_configuration: JsonObjectSchema('Secrets are shown as "********".'),
  extensions: Type.Array(Type.String()),
  revision: Type.Integer({ description: "From 1; each change adds one. The ETag is made of it." }),
  created_at: Time("When the job was created."),
  updated_at: Time("Last change of the definition."),
  latest_run: nullable(RunSummarySchema),
  active_runs: Type.Integer({ description: "Runs that have not ended." }),
};

export const JobSchema = answerObject(compact, { description: "A durable definition of work." });

const Graph = answerObject({
  nodes: Type.Array(
    answerObject({ node_id: Type.String(), agent_type: Type.String(), role: nullable(Type.String()) }),
  ),
  edges: Type.Array(
    answerObject({
      edge_id: nullable(Type.String()),
      from_node: Type.String(),
      to_node: Type.String(),
      message_type: nullable(Type.String({ description: "Null: every message." })),
    }),
  ),
  entrypoints: Type.Array(Type.String()),
});

export const JobDetailSchema = answerObject(
  {
    ...compact,
    manifest: Type.Optional(JsonObjectSchema("view=full: the bundle's manifest.")),
    graph: Type.Optional(Graph),
    recent_runs: Type.Optional(Type.Array(RunSummarySchema)),
    recent_events: Type.Optional(
      Type.Array(JsonObjectSchema("An event of the latest run.", { id: 1, type: "job_pending" }), {
        description: "view=full: of the latest run, newest first.",
      }),
    ),
    services: Type.Optional(
      Type.Array(JsonObjectSchema("A service that the manifest, or a node of it, declares."), {
        description: "view=full. What open runs offer is at GET /services.",
      }),
    ),
    ...latestRunEvidence,
  },
  {
    description:
      "A job with the summary of its latest run; with view=full also its manifest, graph, recent runs and events, and services.",
  },
);

export const JobPageSchema = pageOf(JobSchema, "jobs, newest first");

const Name = Type.String({ minLength: 1, maxLength: 200, description: "For people." });
const Configuration = JsonObjectSchema(
  'Laid over the bundle\'s own. Values under keys that look like secrets are stored sealed; {"$env": "NAME"} is read from the runtime\'s environment at launch.',
  { language: "en" },
);

export const CreateJobBody = strictObject(
  {
    bundle_id: Type.Optional(Type.String({ description: "An uploaded bundle." })),
    blueprint_id: Type.Optional(Type.String({ description: "A catalog blueprint, in place of bundle_id." })),
    name: Type.Optional(Name),
    resolved_configuration: Type.Optional(Configuration),
  },
  { examples: [{ bundle_id: "bundle_3f1c0a9d2b7e4856", resolved_configuration: { language: "en" } }] },
);

export const UpdateJobBody = strictObject(
  {
    name: Type.Optional(Name),
    resolved_configuration: Type.Optional(nullable(Configuration)),
  },
  {
    description:
      'A JSON merge patch (RFC 7396): null takes a key away, "********" keeps the secret that is stored.',
    examples: [{ name: "Weekly digest", resolved_configuration: { language: null } }],
  },
);

export const JobViewQuery = strictObject({
  view: Type.Optional(
    Type.Union([Type.Literal("compact"), Type.Literal("full")], {
      description:
        "compact, the default, or full, which adds manifest, graph, recent runs and events, and services.",
    }),
  ),
  include: Type.Optional(
    Type.Union([Type.Literal("compact"), Type.Literal("full")], { description: "The same as view." }),
  ),
});

export const JobsQuery = strictObject({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, description: "Most items of the whole walk, over all its pages." }),
  ),
  include_terminal: Type.Optional(
    Type.Boolean({ default: true, description: "false leaves out jobs whose latest run has ended." }),
  ),
  blueprint_id: Type.Optional(Type.String({ description: "Jobs made from this blueprint only." })),
  ...pageQuery,
});

export const DeleteJobQuery = strictObject({
  force: Type.Optional(Type.Boolean({ default: false, description: "Cancels open runs first." })),
});

export const JobControlSchema = answerObject({
  job_id: Type.String(),
  runs: Type.Array(answerObject({ run_id: Type.String(), status: RunStatus }), {
    description: "Every run that had not ended, oldest first, and what it comes to by this request.",
  }),
});
