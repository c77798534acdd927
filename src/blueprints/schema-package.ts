// JSON Schema of what a manifest declares beyond its graph: what the package needs, brings along, and checks.

import { blueprintIdForm, platforms, resourceName, ruleTypes, sha256Digits } from "./package-description.ts";
import {
  anyObject,
  choice,
  closed,
  commandList,
  dottedPath,
  either,
  extensions,
  flag,
  integer,
  list,
  name,
  number,
  open,
  path,
  relativePath,
  type Schema,
  text,
} from "./schema-parts.ts";
import { portsSchema, requiredServicesSchema } from "./schema-services.ts";

const bytes = (description: string) => integer(description, 1, Number.MAX_SAFE_INTEGER);
const names = (description: string, item: Schema) => list(description, item, { maxItems: 100 });

/** The same in manifest `metadata` and in config `identity`. */
export const identityFields: Schema = {
  blueprint_id: text("Its id in the catalog. Default: the folder's name.", {
    pattern: blueprintIdForm.source,
  }),
  name: text("Its name, for people."),
  description: text("What it does, for people."),
  version: text("Its version.", { examples: ["1.0.0"] }),
  category: name("The shelf of the catalog that it stands on."),
  tags: list("Words to find it by.", name("A tag."), { maxItems: 50 }),
};

const requirements = closed("What a machine must have before a run is accepted.", {
  commands: names("Programs that must be on the PATH.", name("A program.", { pattern: "^[^\\s/]+$" })),
  environment: names("Variables that must be set for Troupe.", name("A variable.", { pattern: "^[^=]+$" })),
  platforms: names("Systems of which one must be this machine's.", choice("A system.", platforms)),
  cpu_cores: number("Cores.", 0.01, 100_000),
  memory_bytes: bytes("Memory."),
  disk_bytes: bytes("Free disk space where Troupe keeps its files."),
  pools: {
    type: "object",
    description: "Slots that executor pools must have, by the pool's name.",
    additionalProperties: integer("Slots.", 1, 1_000_000),
  },
  models: names("Ids of models that must be installed.", name("A model's id.")),
  services: requiredServicesSchema,
});

const resource = closed(
  "A folder that is made once, when the blueprint is added.",
  {
    name: name("Workers find it in SVC_RESOURCES_DIR under this name.", {
      pattern: resourceName.source,
    }),
    title: text("For people."),
    from: relativePath("File or folder of payloads/ that is copied into it first."),
    prepare: commandList("A program that fills it, started in it without a shell."),
    timeout_seconds: number("How long that program may take.", 0.001, 86_400, 600),
  },
  ["name"],
);

const model = closed(
  "A model file that is installed once, when the blueprint is added.",
  {
    model_id: name("Its id."),
    path: path("A path inside payloads/, or an absolute one."),
    sha256: text("What the file must have, as 64 hex digits.", { pattern: sha256Digits.source }),
  },
  ["model_id", "path"],
);

const rule = closed(
  "One rule over a run's configuration.",
  {
    path: dottedPath("What it is about."),
    required: flag("Whether there must be a value.", false),
    type: choice("What the value must be.", ruleTypes),
    enum: list("The only good values.", {}, { minItems: 1, maxItems: 1_000 }),
    min: { type: "number", description: "The least value; of a text or list its length." },
    max: { type: "number", description: "The greatest value; of a text or list its length." },
    pattern: text("A regular expression that a text must match somewhere.", { format: "regex" }),
    exists: choice("What must be at the path that the value is.", ["file", "folder"]),
    extensions: extensions("The endings that a path may have."),
    message: text("What a person is told in place of the rule's own sentence."),
  },
  ["path"],
);

export const packageFields: Schema = {
  metadata: {
    ...open("Who the package is, and notes of one's own.", identityFields),
    additionalProperties: {},
  },
  input_schema: anyObject("JSON Schema (2020-12) of a run's inputs."),
  config_schema: anyObject("JSON Schema (2020-12) of the resolved configuration."),
  secrets: list(
    "Values of the configuration and of inputs that are secrets, beside those whose names say so.",
    dottedPath("Keys with dots between them; lists are passed through."),
    { maxItems: 1_000, uniqueItems: true },
  ),
  requirements,
  resources: either(
    "Folders that are made once for all runs; or ports alone.",
    list("Folders.", resource, { maxItems: 100 }),
    open("Ports.", { ports: portsSchema }),
  ),
  models: list("Model files that are installed once.", model, { maxItems: 100 }),
  input_validation: closed("Rules over a run's configuration.", {
    rules: list("All are told at once.", rule, { maxItems: 1_000 }),
  }),
};
