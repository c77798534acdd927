// The commands about blueprints. Those that write, check and pack one work here, without a server; the others talk to
// the gateway.

import {
  all,
  forceSave,
  help,
  input,
  json,
  limit,
  name,
  remote,
  runExitCodes,
  save,
  watch,
  withServer,
} from "./catalogue-options.ts";
import type { CatalogueEntry, CommandGroup, CommandSpec } from "./command.ts";

const authoring: readonly CommandSpec[] = [
  {
    name: "blueprint new",
    words: ["<folder>"],
    summary: "Write a small blueprint that runs, to begin with.",
    details: [
      "hello: one worker. folder: a folder of the user's documents, with a validator. service: a program that stays.",
      "Nothing is overwritten: the folder must not exist, or be empty.",
    ],
    options: [
      { name: "template", value: "NAME", help: "hello, folder or service. Default: hello." },
      { name: "name", value: "NAME", help: "Its name, for people. Default: made of the folder's name." },
      json,
      help,
    ],
    load: async () => (await import("./blueprint-authoring.ts")).create,
  },
  {
    name: "blueprint validate",
    words: ["<folder>"],
    summary: "Check a blueprint's folder here, without a server: every problem and warning.",
    details: ["Exit code: 0 valid, with or without warnings; 1 invalid."],
    options: [json, help],
    load: async () => (await import("./blueprint-authoring.ts")).validate,
  },
  {
    name: "blueprint pack",
    words: ["<folder>"],
    summary: "Make the zip of a blueprint that `troupe bundles upload` takes; equal folders make equal zips.",
    options: [
      { name: "output", value: "FILE", help: "The zip; it must not exist. Default: <id>.zip, here." },
      json,
      help,
    ],
    load: async () => (await import("./blueprint-authoring.ts")).pack,
  },
];

const running: readonly CommandSpec[] = [
  {
    name: "blueprint run",
    words: ["<blueprint-id>"],
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
      {
        name: "config",
        value: "FILE",
        help: "JSON file that is laid over the blueprint's configuration; - reads stdin.",
      },
      {
        name: "set",
        value: "A.B=VALUE",
        help: "One setting, laid over --config; any number of them.",
        repeats: true,
      },
      name,
      {
        name: "refresh",
        value: null,
        help: "Add it again first, everything anew: run what its folder holds.",
      },
      watch,
      save,
      forceSave,
      ...remote,
    ],
    load: withServer(async () => (await import("./blueprints.ts")).run),
  },
];

const services: CommandSpec = {
  name: "services",
  words: ["[name]"],
  summary:
    "List the services that open runs offer, such as their dashboards, and whether they can be reached.",
  options: [
    { name: "tag", value: "TAG", help: "Only those with this tag." },
    { name: "run", value: "RUN-ID", help: "Only those of this run." },
    ...remote,
  ],
  load: withServer(async () => (await import("./services.ts")).services),
};

const catalog: readonly [CommandSpec, ...CommandSpec[]] = [
  {
    name: "blueprint list",
    words: [],
    summary: "List the blueprints of the gateway's catalog.",
    options: [
      { name: "category", value: "CATEGORY", help: "Only those of this category." },
      { name: "text", value: "TEXT", help: "Only those with this in their id, name, description or tags." },
      ...remote,
    ],
    load: withServer(async () => (await import("./blueprints.ts")).list),
  },
  {
    name: "blueprint show",
    words: ["<blueprint-id>"],
    summary: "Show one blueprint: its state, what was prepared for it, and what is wrong with it.",
    options: remote,
    load: withServer(async () => (await import("./blueprints.ts")).show),
  },
  {
    name: "blueprint add",
    words: ["<blueprint-id>"],
    summary: "Prepare a blueprint for runs: its package, its resources, its models.",
    details: [
      "Exit code: 0 completed, 1 failed, 130 Ctrl-C while waiting (the addition goes on).",
      "`troupe blueprint run` adds by itself what is not added.",
    ],
    options: [
      { name: "force", value: null, help: "Make everything anew, also what is there already." },
      { name: "wait", value: null, help: "Follow it to its end, as it is; --no-wait only begins it." },
      ...remote,
    ],
    load: withServer(async () => (await import("./blueprints.ts")).add),
  },
  {
    name: "blueprint remove",
    words: ["<blueprint-id>"],
    summary: "Delete what was prepared for a blueprint; the catalog's folder stays.",
    details: [
      "On a terminal it shows what would go and asks; elsewhere it needs --yes.",
      "Its package stays while jobs have it, a model while another blueprint has it.",
    ],
    options: [
      { name: "dry-run", value: null, help: "Remove nothing; say what would go." },
      { name: "keep-resources", value: null, help: "Keep its resources for the next addition." },
      { name: "keep-models", value: null, help: "Keep its models for the next addition." },
      { name: "yes", value: null, help: "Do not ask." },
      { name: "wait", value: null, help: "Follow it to its end, as it is; --no-wait only begins it." },
      ...remote,
    ],
    load: withServer(async () => (await import("./blueprints.ts")).remove),
  },
];

const operations: CommandSpec = {
  name: "operations",
  words: ["[operation-id]"],
  summary: "List operations, such as additions of blueprints, newest first; or show one.",
  options: [
    { name: "follow", value: null, help: "Of one: show it as it goes, until it has ended." },
    { name: "blueprint", value: "ID", help: "Only those about this blueprint." },
    { name: "status", value: "STATUS", help: "Only those that are pending, running, completed or failed." },
    limit,
    all,
    ...remote,
  ],
  load: withServer(async () => (await import("./operations.ts")).operations),
};

const blueprint: CommandGroup = {
  name: "blueprint",
  summary: "Write, check, add, remove and run blueprints: packages of the catalog.",
  commands: [...catalog, ...authoring, ...running],
};

export const blueprintEntries: readonly CatalogueEntry[] = [blueprint, operations, services];
