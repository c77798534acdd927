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
  option,
  remote,
  runExitCodes,
  save,
  watch,
  withServer,
} from "./catalogue-options.ts";
import type { CatalogueEntry, CommandGroup, CommandSpec } from "./command.ts";

const authoring: readonly CommandSpec[] = [
  command({
    usage: "blueprint new <folder>",
    summary: "Write a small blueprint that runs, to begin with.",
    details: [
      "hello: one worker. folder: a folder of the user's documents, with a validator. service: a program that stays.",
      "Nothing is overwritten: the folder must not exist, or be empty.",
    ],
    options: [
      option("--template NAME", "hello, folder or service. Default: hello."),
      option("--name NAME", "Its name, for people. Default: made of the folder's name."),
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
    summary: "Make the zip of a blueprint that `troupe bundles upload` takes; equal folders make equal zips.",
    options: [option("--output FILE", "The zip; it must not exist. Default: <id>.zip, here."), json, help],
    load: async () => (await import("./blueprint-authoring.ts")).pack,
  }),
];

const running: readonly CommandSpec[] = [
  command({
    usage: "blueprint run <blueprint-id>",
    summary: "Run a blueprint of the catalog, and show how it goes; it is added first when it is not yet.",
    details: [
      "A blueprint whose folder has changed since it was added runs as it was added, and says so, unless --refresh is given.",
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
      option("--refresh", "Add it again first, everything anew: run what its folder holds."),
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
  summary:
    "List the services that open runs offer, such as their dashboards, and whether they can be reached.",
  options: [
    option("--tag TAG", "Only those with this tag."),
    option("--run RUN-ID", "Only those of this run."),
    ...remote,
  ],
  load: withServer(async () => (await import("./services.ts")).services),
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
    summary: "Show one blueprint: its state, what was prepared for it, and what is wrong with it.",
    options: remote,
    load: withServer(async () => (await import("./blueprints.ts")).show),
  }),
  command({
    usage: "blueprint add <blueprint-id>",
    summary: "Prepare a blueprint for runs: its package, its resources, its models.",
    details: [
      "Exit code: 0 completed, 1 failed, 130 Ctrl-C while waiting (the addition goes on).",
      "`troupe blueprint run` adds a blueprint that is not added.",
    ],
    options: [
      option("--force", "Make everything anew, also what is there already."),
      option("--wait", "Follow it to its end, as it is; --no-wait only begins it."),
      ...remote,
    ],
    load: withServer(async () => (await import("./blueprints.ts")).add),
  }),
  command({
    usage: "blueprint remove <blueprint-id>",
    summary: "Delete what was prepared for a blueprint; the catalog's folder stays.",
    details: [
      "On a terminal it shows what would go and asks; elsewhere it needs --yes.",
      "Its package stays while jobs have it, a model while another blueprint has it.",
    ],
    options: [
      option("--dry-run", "Remove nothing; say what would go."),
      option("--keep-resources", "Keep its resources for the next addition."),
      option("--keep-models", "Keep its models for the next addition."),
      option("--yes", "Do not ask."),
      option("--wait", "Follow it to its end, as it is; --no-wait only begins it."),
      ...remote,
    ],
    load: withServer(async () => (await import("./blueprints.ts")).remove),
  }),
];

const operations = command({
  usage: "operations [operation-id]",
  summary: "List operations, such as additions of blueprints, newest first; or show one.",
  options: [
    option("--follow", "Of one: show it as it goes, until it has ended."),
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
