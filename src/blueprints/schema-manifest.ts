// JSON Schema of manifest.json, for editors: what parseManifest refuses for its shape, this refuses too.

import { limits } from "../engine/limits.ts";
import { nodeSchema } from "./schema-nodes.ts";
import { packageFields } from "./schema-package.ts";
import {
  anyObject,
  choice,
  document,
  either,
  flag,
  list,
  name,
  number,
  open,
  relativePath,
  type Schema,
  schemaReference,
  text,
} from "./schema-parts.ts";
import { requiredServicesSchema, servicesSchema } from "./schema-services.ts";

const edge = open(
  "Carries messages from one node to another.",
  {
    edge_id: name("A name for people."),
    from_node: name("Who sends."),
    to_node: name("Who receives."),
    message_type: name("Carries messages of this type only; absent: all."),
  },
  ["from_node", "to_node"],
);

const recovery = ["local_restart", "cluster_recover", "manual_recover"];

const policies = open("What to do when something goes wrong.", {
  failure_policy: choice(
    "fail_run: the first agent that fails for good fails the run. continue: its message becomes a dead letter.",
    ["fail_run", "continue"],
    "fail_run",
  ),
  timeout_seconds: number("How long the whole job may take.", 0.001, 1_000_000_000),
  placement_policy: choice("Where a cluster runs its commands.", ["local", "spread", "binpack"], "local"),
  recovery_mode: choice("Who carries the job on after a crash.", recovery, "local_restart"),
  recovery_policy: choice("Another name for recovery_mode.", recovery),
});

const outputPath = relativePath("A file that workers leave in SVC_OUTPUT_DIR.");

const output = open(
  "A file that the run is for.",
  {
    path: outputPath,
    title: text("For people."),
    primary: flag("Whether it is shown first.", false),
  },
  ["path"],
);

export const manifestSchema: Schema = document(
  "Troupe manifest",
  open(
    "A graph of agents, what its package needs and brings along.",
    {
      $schema: schemaReference,
      manifest_version: { const: "1.0", description: "The version of this format." },
      graph_id: name("Names the graph, and begins the id of each job.", {
        pattern: "^(?!\\.+$)[A-Za-z0-9._-]+$",
      }),
      job_name: text("The job's name, for people."),
      type: choice(
        "batch ends when nothing is left to do; service when it is stopped.",
        ["batch", "service"],
        "batch",
      ),
      entrypoints: list("The nodes that get the first messages.", name("A node_id."), {
        minItems: 1,
        uniqueItems: true,
      }),
      initial_inputs: anyObject("First messages by entrypoint: a list of bodies, or one body."),
      nodes: list("The agents.", nodeSchema, { minItems: 1, maxItems: limits.nodesMax }),
      edges: list("Who sends to whom.", edge, { maxItems: limits.edgesMax }),
      policies,
      outputs: list("The files that the run is for.", either("A path, or more.", outputPath, output)),
      extensions: { description: "Names that the record of a job lists, for programs of your own." },
      services: servicesSchema,
      required_services: requiredServicesSchema,
      ...packageFields,
    },
    ["manifest_version", "graph_id", "entrypoints", "nodes"],
  ),
);
