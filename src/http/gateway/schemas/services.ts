// Services (spec packaging 11 and 12, CONTRACTS §6 "Service").

import { Type } from "../../core/type.ts";
import { answerObject, JsonObjectSchema, nullable, pageOf, pageQuery, strictObject, Time } from "./common.ts";

const Status = Type.Union([Type.Literal("passing"), Type.Literal("critical")], {
  description:
    "passing only while every check has found it reachable; critical before the first time, and after failures.",
});

const CheckSchema = answerObject({
  name: Type.String(),
  type: Type.Union(["http", "tcp", "grpc", "script"].map((type) => Type.Literal(type))),
  status: Status,
  output: Type.String({ description: "What was found, for people.", examples: ["HTTP 200"] }),
  failures: Type.Integer({ description: "Failures in a row, up to now." }),
  last_checked_at: nullable(Time("When it was made last; null before the first time.")),
});

const ofThisApi = "Null for a service of a job that was submitted to the runtime API.";

export const ServiceSchema = answerObject(
  {
    service_id: Type.String({
      description: "The same for every attempt of its agent, and after a restart.",
      examples: ["svc_4f1c08a2b97d6e35"],
    }),
    name: Type.String({ examples: ["blueprint-web-ui"] }),
    status: Status,
    tags: Type.Array(Type.String()),
    meta: JsonObjectSchema("As declared, with public_url, run_id, job_id and node."),
    address: Type.String({
      description: "The host that callers on its node use; 127.0.0.1 is that node itself.",
      examples: ["127.0.0.1"],
    }),
    port: nullable(Type.Integer({ description: "Null without one." })),
    public_url: nullable(Type.String({ description: "What a browser is given; null without one." })),
    job_id: nullable(Type.String({ description: ofThisApi })),
    run_id: nullable(Type.String({ description: ofThisApi })),
    agent_id: nullable(
      Type.String({ description: "The agent whose command offers it; null for the job as a whole." }),
    ),
    node: Type.String({ description: "The machine it runs on." }),
    checks: Type.Array(CheckSchema),
    registered_at: Time("When its job, or the command of its agent, began."),
    updated_at: Time("When its status changed last."),
  },
  { description: "A long-lived process that an open run offers, found by its name." },
);

export const ServicePageSchema = pageOf(ServiceSchema, "services, by name");

const Tags = Type.Optional(
  Type.String({
    description: "Tags that it must have, all of them: separated by commas, or the parameter repeated.",
    examples: ["blueprint,document-digest"],
  }),
);

export const ServicesQuery = strictObject({
  name: Type.Optional(Type.String({ description: "Services of this name only." })),
  tag: Tags,
  status: Type.Optional(Status),
  run_id: Type.Optional(Type.String({ description: "Services of this run." })),
  ...pageQuery,
});

export const ResolveQuery = strictObject({
  tag: Tags,
  node: Type.Optional(Type.String({ description: "The machine that it must run on." })),
});
