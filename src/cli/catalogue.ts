// Every command of `troupe`: its words, its options, its help. The code behind a command is loaded when it runs.

import { blueprintEntries } from "./catalogue-blueprints.ts";
import { help, json } from "./catalogue-options.ts";
import { runEntries, runtimeEntries } from "./catalogue-runs.ts";
import type { CatalogueEntry, CatalogueSection, OptionSpec } from "./command.ts";

const servingOptions: readonly OptionSpec[] = [
  {
    name: "new-database",
    value: null,
    help: "Start with an empty database although SVC_HOME holds files of a lost one.",
  },
  {
    name: "new-key",
    value: null,
    help: "Make a new secret key although stored secrets need the lost one.",
  },
  {
    name: "accept-data-loss",
    value: null,
    help: "Start although acknowledged changes are missing from the database.",
  },
  json,
  help,
];

const serving: readonly CatalogueEntry[] = [
  {
    name: "up",
    words: [],
    summary: "Start Troupe and stay until Ctrl-C.",
    details: [
      "Jobs that were running when the last start ended carry on by themselves.",
      "Ctrl-C or SIGTERM stops well: running jobs are kept for the next start. A second one ends at once.",
    ],
    options: servingOptions,
    load: async () => (await import("./serve.ts")).up,
  },
  {
    name: "gateway",
    words: [],
    summary: "Start the gateway API alone, on SVC_API_PORT (default 54001).",
    options: servingOptions,
    load: async () => (await import("./serve.ts")).gateway,
  },
  {
    name: "runtime",
    words: [],
    summary: "Start the runtime API alone, on SVC_API_PORT (default 4000).",
    options: servingOptions,
    load: async () => (await import("./serve.ts")).runtime,
  },
];

const local: readonly CatalogueEntry[] = [
  {
    name: "validate",
    words: ["<folder|manifest.json>"],
    summary: "Check a bundle folder or a manifest here, without a server.",
    options: [json, help],
    load: async () => (await import("./validate.ts")).validate,
  },
  {
    name: "config",
    words: [],
    summary: "Show every setting, its value and where the value is from.",
    options: [json, help],
    load: async () => (await import("./doctor.ts")).showConfig,
  },
  {
    name: "doctor",
    words: [],
    summary: "Check this machine: store, disk, ports, tools; say how to mend what is wrong.",
    options: [json, help],
    load: async () => (await import("./doctor.ts")).doctor,
  },
  {
    name: "backup",
    words: ["<file>"],
    summary: "Write a backup of SVC_HOME into one file, also while the program runs.",
    details: [
      "Workspaces of running agents and the secret key are not in it; `troupe restore` brings back everything else.",
    ],
    options: [
      {
        name: "with-key",
        value: null,
        help: "Put secret.key into it: whoever reads the file has the secrets.",
      },
      { name: "force", value: null, help: "Replace the file if it exists." },
      json,
      help,
    ],
    load: async () => (await import("./backup.ts")).backup,
  },
  {
    name: "restore",
    words: ["<file>"],
    summary: "Restore a backup into SVC_HOME, which must be empty.",
    details: [
      "Everything is checked against the backup's hashes. Jobs that were running resume at the next start.",
    ],
    options: [json, help],
    load: async () => (await import("./backup.ts")).restore,
  },
  {
    name: "secrets",
    words: ["rotate"],
    summary: "Encrypt all stored secrets again with a new key, while the program is stopped.",
    details: [
      "With SVC_SECRET_KEY or its file: with the first key there. Else a new key is made in SVC_HOME/secret.key, and the old",
      "one removed from it at the end. If it is interrupted, run it again.",
    ],
    options: [json, help],
    load: async () => (await import("./rotate-secrets.ts")).secrets,
  },
  {
    name: "version",
    words: [],
    summary: "Print the version.",
    options: [json, help],
    load: async () => (await import("./help.ts")).version,
  },
  {
    name: "help",
    words: ["[command]", "[subcommand]"],
    summary: "Explain a command.",
    options: [help],
    load: async () => {
      const { help: explain } = await import("./help.ts");
      return (call) => explain(call, sections);
    },
  },
];

/** All commands, as `troupe help` lists them. */
export const sections: readonly CatalogueSection[] = [
  { title: "Serve", entries: serving },
  { title: "Work with the gateway", entries: [...runEntries, ...blueprintEntries] },
  { title: "Work with the runtime API", entries: runtimeEntries },
  { title: "Here", entries: local },
];
