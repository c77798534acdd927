// JSON Schema of manifest.json, for editors: what parseManifest refuses for its shape, this refuses too.

import { RUNNER_PATTERN } from "../engine/graph.ts";
import { limits } from "../engine/limits.ts";
import {
  CPU_RANGE,
  DEVICE,
  DEVICES_MAX,
  GPU_RANGE,
  MEBIBYTES_RANGE,
  VOLUME_NAME,
  VOLUMES_MAX,
} from "../engine/manifest/resources.ts";
import { llmSchema } from "./schema-llm.ts";
import { packageFields } from "./schema-package.ts";
import {
  anyObject,
  choice,
  commandList,
  document,
  either,
  flag,
  integer,
  list,
  name,
  number,
  open,
  orNull,
  path,
  relativePath,
  type Schema,
  schemaReference,
  text,
} from "./schema-parts.ts";
import { sandboxSchema } from "./schema-sandbox.ts";
import { nodePortsSchema, requiredServicesSchema, servicesSchema } from "./schema-services.ts";

const SECONDS_MAX = 1_000_000_000;
const MILLISECONDS_MAX = 1_000_000_000_000;

const attempts = {
  timeout_seconds: number("How long one attempt may take; 0: no limit.", 0, SECONDS_MAX),
  max_attempts: integer("Attempts per message.", 1, 1_000_000, 1),
  retry_backoff_ms: number(
    "Delay before the second attempt; it doubles after each.",
    0,
    MILLISECONDS_MAX,
    500,
  ),
};

const router = open("Hands messages on.", {
  emit_type: name("The type they leave with; absent: the one they came with."),
});

const aggregator = open("Collects messages.", {
  complete_after: integer("Forms its result at this many messages.", 1, limits.collectedMessagesMax),
  complete_on_message: flag("Forms a result at each message.", false),
  output_message_type: name("Sends the result on with this type, in place of ending the run with it."),
  complete_run: flag("Whether a result that is not sent on ends the run.", true),
});

const sensor = open("Waits for something outside: a message, a time, a file.", {
  output_message_type: name("The type of what it sends.", { default: "sensor_ready" }),
  complete_after: orNull(
    integer("Observations until it is done; null: until the job ends.", 1, Number.MAX_SAFE_INTEGER, 1),
  ),
  interval_ms: number("Observes each time this has passed.", 1, MILLISECONDS_MAX),
  run_at: text("Observes once at this time.", { examples: ["2030-01-31T09:00:00Z"] }),
  file: path("Observes when this file appears: absolute, or one of the payload."),
});

/** They may be in the node itself too; config wins. */
const runner = {
  command: either(
    "A list is started as it is; a string goes through the shell. {node} is the Node that Troupe runs on.",
    commandList("A program and its arguments."),
    { type: "string", pattern: "\\S", description: "A line for the shell." },
  ),
  upload_path: relativePath("File or folder of payloads/ that is copied into the workspace."),
  upload_as: relativePath("Its name there; the last part of the path, when absent."),
  workdir: path("Where the command starts, relative to its workspace."),
  sandbox_upload_path: path("The path that stands for the workspace in command and workdir."),
  runner_module: name("HostLocal, or Sandbox: how it is run; the last part of a dotted name counts.", {
    pattern: RUNNER_PATTERN,
    default: "HostLocal",
  }),
  idempotent: flag("false: never run again what may have run.", true),
  safe_to_retry: flag("false: never run again what may have run.", true),
};

const upload = either(
  "A path, or a path and a name.",
  relativePath("File or folder of payloads/."),
  open(
    "A path and the name that it gets.",
    { path: relativePath("File or folder of payloads/."), as: relativePath("Its name in the workspace.") },
    ["path"],
  ),
);

const uploadPaths = list("Files and folders of payloads/ that are copied into the workspace.", upload);

/** The pool and the nodes that a command may run on. */
const placement = {
  pool: name("The pool it takes slots from.", { default: "default" }),
  pool_slots: integer("How many.", 1, 1_000_000, 1),
  node_labels: {
    type: "object",
    description: "Labels of the nodes that may run it (SVC_NODE_LABELS); all of them.",
    examples: [{ zone: "a" }],
    maxProperties: 64,
    propertyNames: { pattern: "^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$" },
    additionalProperties: { type: "string", pattern: "^[A-Za-z0-9._-]{0,63}$" },
  },
};

const policy = {
  sandbox: sandboxSchema,
  policy: relativePath("File of payloads/ with the fields of sandbox, in its place."),
};

const executor = open("Runs a command for each message.", {
  ...runner,
  ...attempts,
  upload_paths: uploadPaths,
  environment: {
    type: "object",
    description: "Variables for the command.",
    propertyNames: { pattern: "^[^=]+$" },
    additionalProperties: { type: ["string", "number", "boolean"] },
  },
  ...policy,
  pass_env: list(
    "Names of the runtime's own variables that the command gets.",
    name("A variable.", { pattern: "^[^=]+$" }),
  ),
  ...placement,
  output_message_type: orNull(
    name("The type of its answer; null: no answer.", { default: "executor_result" }),
  ),
  lifecycle: text("long_lived: one process as long as the job.", { examples: ["long_lived"] }),
  llm: llmSchema("The model that it may ask; also in the node itself. null: none."),
  run_events: flag("Whether it is told where to read the live events of its run.", false),
  optional: flag("Whether the run goes on, whole, when it fails for good.", false),
});

const moduleAgent: Schema = {
  ...open(
    "Calls a function of the bundle. Fields of one's own are for the function.",
    {
      module: relativePath("ES module in payloads/ that exports handle(message, context)."),
      isolation: choice(
        "process: in a process of its own, in a sandbox. thread: in a thread, with the runtime's rights.",
        ["thread", "process"],
        "thread",
      ),
      ...attempts,
    },
    ["module"],
  ),
  additionalProperties: true,
  if: { required: ["isolation"], properties: { isolation: { const: "process" } } },
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
  then: {
    properties: {
      ...policy,
      upload_path: runner.upload_path,
      upload_as: runner.upload_as,
      upload_paths: uploadPaths,
      ...placement,
    },
  },
};

const configs: Readonly<Record<string, Schema>> = {
  router,
  aggregator,
  sensor,
  executor,
  module: moduleAgent,
};

const hasCommand: Schema = {
  anyOf: [
    { required: ["command"] },
    { required: ["config"], properties: { config: { required: ["command"] } } },
  ],
};

const ofType = (agentType: string, config: Schema): Schema => ({
  if: { required: ["agent_type"], properties: { agent_type: { const: agentType } } },
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
  then: {
    properties: { config },
    ...(agentType === "module" && { required: ["config"] }),
    ...(agentType === "executor" && { properties: { config, ...runner }, ...hasCommand }),
  },
});

const nodeResources = open(
  "What an executor's command has of the machine for itself, while it runs; and ports.",
  {
    cpu: number("Cores, in thousandths at least.", CPU_RANGE.min, CPU_RANGE.max),
    memory_mb: integer("Memory in MiB.", MEBIBYTES_RANGE.min, MEBIBYTES_RANGE.max),
    disk_mb: integer("Disk in MiB.", MEBIBYTES_RANGE.min, MEBIBYTES_RANGE.max),
    gpu: integer("GPUs.", GPU_RANGE.min, GPU_RANGE.max),
    ports: nodePortsSchema,
    volumes: list(
      "Folders of the machine that are kept over runs.",
      open(
        "A volume.",
        {
          name: text("The same name is the same volume for all jobs.", { pattern: VOLUME_NAME.source }),
          path: relativePath("Where it is in the command's working folder."),
          read_only: flag("Whether others that only read may have it, too.", false),
          size_mb: integer(
            "A command that writes does not start while more MiB are in it.",
            MEBIBYTES_RANGE.min,
            MEBIBYTES_RANGE.max,
          ),
        },
        ["name", "path"],
      ),
      { maxItems: VOLUMES_MAX },
    ),
    devices: list(
      "Devices that the command has for itself, by their paths.",
      text("A device.", { pattern: DEVICE.source, examples: ["/dev/ttyUSB0"] }),
      { maxItems: DEVICES_MAX },
    ),
  },
);

const nodeSchema: Schema = {
  ...open(
    "An agent of the graph.",
    {
      node_id: name("Its own, by which edges and entrypoints name it."),
      agent_type: choice("What it is.", Object.keys(configs)),
      type: text("stream: a command that lives as long as the job and feeds it.", { examples: ["stream"] }),
      role: text("What it is there for, for people."),
      config: anyObject("What it is told."),
      resources: either("What its command needs of the machine.", nodeResources, { type: "array" }),
      services: servicesSchema,
      llm: llmSchema("The model that its command may ask. null: none."),
    },
    ["node_id", "agent_type"],
  ),
  allOf: Object.entries(configs).map(([agentType, config]) => ofType(agentType, config)),
};

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
      llm: llmSchema("The model that all commands may ask that name none."),
      policies,
      outputs: list("The files that the run is for.", either("A path, or more.", outputPath, output)),
      extensions: {
        description:
          "Names that the record of a job lists: svc.response makes it answer questions; others are for programs of your own.",
      },
      services: servicesSchema,
      required_services: requiredServicesSchema,
      ...packageFields,
    },
    ["manifest_version", "graph_id", "entrypoints", "nodes"],
  ),
);
