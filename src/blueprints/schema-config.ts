// JSON Schemas of config/default.json and of a catalog folder's index.json, for editors. Beside what is named here a
// configuration holds whatever the package's workers read.

import { webUiAdapters } from "./package-description.ts";
import { identityFields } from "./schema-package.ts";
import {
  choice,
  closed,
  document,
  dottedPath,
  either,
  extensions,
  flag,
  list,
  open,
  plainPath,
  relativePath,
  type Schema,
  schemaReference,
  text,
} from "./schema-parts.ts";

const folder = closed(
  "A folder of the user's that is copied into the payload of a run.",
  {
    config_path: dottedPath("Where the configuration holds the folder's path."),
    payload_path: plainPath("Where it is copied to, inside what a node uploads."),
    runtime_path: plainPath("What the worker reads, relative to the node's workdir."),
    allowed_extensions: extensions("Files with other endings are left out."),
    linked_config_paths: list("Further places that get the runtime_path.", dottedPath("A place."), {
      maxItems: 100,
    }),
  },
  ["config_path", "payload_path", "runtime_path"],
);

const output: Schema = {
  ...closed("What it shows.", {
    adapter: choice(
      "dashboard: made by Troupe. static_html: a page of payloads/.",
      webUiAdapters,
      "dashboard",
    ),
    title: text("Its title. Default: the blueprint's name."),
    page: plainPath("static_html: the page."),
  }),
  if: { required: ["adapter"], properties: { adapter: { const: "static_html" } } },
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
  then: { required: ["page"] },
};

export const configSchema: Schema = document(
  "Troupe configuration",
  open("What workers find in SVC_BLUEPRINT_CONFIG_JSON, with what Troupe itself reads.", {
    $schema: schemaReference,
    identity: closed("Who the package is; wins over the manifest's metadata.", identityFields),
    local_inputs: closed("What a run takes from its user's machine.", {
      folders: list("Folders.", folder, { maxItems: 100 }),
    }),
    web_ui: closed("The web interface of a run.", {
      enabled: flag("Whether there is one.", false),
      output,
    }),
  }),
);

const indexed = relativePath("A folder beside index.json.");

export const indexSchema: Schema = document(
  "Troupe catalog index",
  open(
    "Which folders of a catalog folder are blueprints, in their order.",
    {
      $schema: schemaReference,
      blueprints: list(
        "The folders.",
        either("A path, or an object with it.", indexed, open("A folder.", { path: indexed }, ["path"])),
        { maxItems: 1_000 },
      ),
    },
    ["blueprints"],
  ),
);
