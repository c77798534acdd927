// The commands about blueprints. Those that write, check and pack one work here, without a server; the others talk to
// the gateway.

import {
  all,
  command,
  forceSave,
  help,
  input,
  json,
  limit,
  name,
  operated,
  option,
  priority,
  remote,
  runExitCodes,
  save,
  watch,
  withOperated,
  withServer,
} from "./catalogue-options.ts";
import type { CatalogueEntry, CommandGroup, CommandSpec } from "./command.ts";

const authoring: readonly CommandSpec[] = [
  command({
    usage: "blueprint new <folder>",
    summary: "Create a small working blueprint from a template.",
    details: [
      "hello: one worker. folder: an input folder with a validator. service: a long-running program.",
      "Nothing is overwritten: the folder must not exist, or be empty.",
    ],
    options: [
      option("--template NAME", "hello, folder or service. Default: hello."),
      option("--name NAME", "Its display name. Default: derived from the folder's name."),
      json,
      help,
    ],
    load: async () => (await import("./blueprint-authoring.ts")).create,
  }),
  command({
    usage: "blueprint validate <folder>",
    summary: "Check a blueprint's folder here, without a server: every problem and warning.",
    details: ["Exit code: 0 valid, with or without warnings; 1 invalid."],
    options: [json, help],
    load: async () => (await import("./blueprint-authoring.ts")).validate,
  }),
  command({
    usage: "blueprint pack <folder>",
    summary: "Pack a blueprint into a zip for `troupe bundles upload`; equal folders give equal zips.",
    options: [
      option("--output FILE", "The zip file, which must not exist yet. Default: ./<id>.zip"),
      json,
      help,
    ],
    load: async () => (await import("./blueprint-authoring.ts")).pack,
  }),
];

const running: readonly CommandSpec[] = [
  command({
    usage: "blueprint run <blueprint-id>",
    summary: "Run a blueprint of the catalog and show its progress; adds it first if needed.",
    details: [
      "A blueprint whose folder has changed since it was added runs as it was added, with a warning, unless --refresh is given.",
      "Its dashboard, if it has one, is shown as soon as it can be reached.",
      "A setting's value is JSON or a text: --set depth=3 --set documents.folder=/srv/papers. Others on this machine see it",
      'in the list of processes: give secrets in --config, or as {"$env": "NAME"}.',
      runExitCodes,
    ],
    options: [
      input,
      option("--config FILE", "JSON file that is merged over the blueprint's configuration; - reads stdin."),
      option("--set A.B=VALUE", "One setting, merged over --config; may be repeated."),
      name,
      priority,
      option("--refresh", "Add it again first, from scratch: run what its folder holds now."),
      watch,
      save,
      forceSave,
      ...remote,
    ],
    load: withServer(async () => (await import("./blueprints.ts")).run),
  }),
];

const services = command({
  usage: "services [name]",
  summary: "List the services of open runs, such as their dashboards, and whether they can be reached.",
  options: [
    option("--tag TAG", "Only those with this tag."),
    option("--run RUN-ID", "Only those of this run."),
    option("--check", "Make their checks first, now."),
    ...operated,
  ],
  load: withOperated(async () => (await import("./services.ts")).services),
});

const catalog: readonly [CommandSpec, ...CommandSpec[]] = [
  command({
    usage: "blueprint list",
    summary: "List the blueprints of the gateway's catalog.",
    options: [
      option("--category CATEGORY", "Only those of this category."),
      option("--text TEXT", "Only those with this in their id, name, description or tags."),
      ...remote,
    ],
    load: withServer(async () => (await import("./blueprints.ts")).list),
  }),
  command({
    usage: "blueprint show <blueprint-id>",
    summary: "Show one blueprint: its state, what was prepared for it, its errors and warnings.",
    options: remote,
    load: withServer(async () => (await import("./blueprints.ts")).show),
  }),
  command({
    usage: "blueprint add <blueprint-id>",
    summary: "Prepare a blueprint for runs: its package, its resources, its models.",
    details: [
      "Exit code: 0 completed, 1 failed, 130 Ctrl-C while waiting (the addition continues).",
      "`troupe blueprint run` adds a blueprint that is not added.",
    ],
    options: [
      option("--force", "Prepare everything again, including what is already there."),
      option("--wait", "Follow it to its end (the default); --no-wait only starts it."),
      ...remote,
    ],
    load: withServer(async () => (await import("./blueprints.ts")).add),
  }),
  command({
    usage: "blueprint remove <blueprint-id>",
    summary: "Delete what was prepared for a blueprint; the catalog's folder stays.",
    details: [
      "On a terminal it lists what would be removed and asks for confirmation; elsewhere it needs --yes.",
      "Its package is kept while jobs use it, and a model while another blueprint uses it.",
    ],
    options: [
      option("--dry-run", "Remove nothing; list what would be removed."),
      option("--keep-resources", "Keep its resources for the next addition."),
      option("--keep-models", "Keep its models for the next addition."),
      option("--yes", "Do not ask for confirmation."),
      option("--wait", "Follow it to its end (the default); --no-wait only starts it."),
      ...remote,
    ],
    load: withServer(async () => (await import("./blueprints.ts")).remove),
  }),
];

const operations = command({
  usage: "operations [operation-id]",
  summary: "List operations, such as additions of blueprints, newest first; or show one.",
  options: [
    option("--follow", "Of one operation: show its progress until it has ended."),
    option("--blueprint ID", "Only those about this blueprint."),
    option("--status STATUS", "Only those that are pending, running, completed or failed."),
    limit,
    all,
    ...remote,
  ],
  load: withServer(async () => (await import("./operations.ts")).operations),
});

const blueprint: CommandGroup = {
  name: "blueprint",
  summary: "Write, check, add, remove and run blueprints: packages of the catalog.",
  commands: [...catalog, ...authoring, ...running],
};

export const blueprintEntries: readonly CatalogueEntry[] = [blueprint, operations, services];
