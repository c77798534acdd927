// Every command of `troupe`: its words, its options, its help. The code of a command is loaded when it runs.

import { blueprintEntries } from "./catalogue-blueprints.ts";
import { console as consoleCommands } from "./catalogue-console.ts";
import { deploy, deployments } from "./catalogue-deployments.ts";
import { models } from "./catalogue-models.ts";
import { node } from "./catalogue-nodes.ts";
import { command, help, json, option } from "./catalogue-options.ts";
import { resource } from "./catalogue-resource.ts";
import { runEntries, runtimeEntries } from "./catalogue-runs.ts";
import { schedules } from "./catalogue-schedules.ts";
import type { CatalogueEntry, CatalogueSection, CommandGroup, OptionSpec } from "./command.ts";

const servingOptions: readonly OptionSpec[] = [
  option("--new-database", "Start with an empty database even if SVC_HOME holds files of a lost one."),
  option("--new-key", "Create a new secret key even if stored secrets need the lost one."),
  option("--accept-data-loss", "Start even if acknowledged changes are missing from the database."),
  json,
  help,
];

const serving: readonly CatalogueEntry[] = [
  command({
    usage: "up",
    summary: "Start Troupe and run until Ctrl-C.",
    details: [
      "Open jobs resume automatically on restart.",
      "Ctrl-C or SIGTERM shuts down gracefully: open jobs are kept for the next start. A second one exits immediately.",
    ],
    options: servingOptions,
    load: async () => (await import("./serve.ts")).up,
  }),
  command({
    usage: "gateway",
    summary: "Start the gateway API alone, on SVC_API_PORT (default 54001).",
    options: servingOptions,
    load: async () => (await import("./serve.ts")).gateway,
  }),
  command({
    usage: "runtime",
    summary: "Start the runtime API alone, on SVC_API_PORT (default 4000).",
    options: servingOptions,
    load: async () => (await import("./serve.ts")).runtime,
  }),
];

const sandbox: CommandGroup = {
  name: "sandbox",
  summary: "Try the sandboxes of a package here, without a server.",
  commands: [
    command({
      usage: "sandbox check <folder>",
      summary: "Start each sandbox of a package here, and try the hosts of its policy from inside.",
      options: [json, help],
      load: async () => (await import("./sandbox.ts")).check,
    }),
    command({
      usage: "sandbox shell <folder> <node>",
      summary: "Open a shell in the sandbox of a node, with its uploads, its policy and its limits.",
      details: [
        "It is gone, with all that was written in it, when the shell ends (exit, or Ctrl-D).",
        "Ctrl-C does not reach what runs in it.",
      ],
      options: [help],
      load: async () => (await import("./sandbox.ts")).shell,
    }),
  ],
};

const local: readonly CatalogueEntry[] = [
  command({
    usage: "validate <folder|manifest.json>",
    summary: "Check a bundle folder or a manifest here, without a server.",
    options: [json, help],
    load: async () => (await import("./validate.ts")).validate,
  }),
  command({
    usage: "config",
    summary: "Show every setting, its value and where the value is from.",
    options: [json, help],
    load: async () => (await import("./doctor.ts")).showConfig,
  }),
  command({
    usage: "doctor",
    summary: "Check this machine: store, disk, ports, tools; report how to fix what is wrong.",
    options: [json, help],
    load: async () => (await import("./doctor.ts")).doctor,
  }),
  sandbox,
  command({
    usage: "backup <file>",
    summary: "Write a backup of SVC_HOME into one file, also while the program runs.",
    details: [
      "Workspaces of running agents and the secret key are not in it; `troupe restore` brings back everything else.",
    ],
    options: [
      option("--with-key", "Include secret.key: anyone who can read the file can decrypt the secrets."),
      option("--force", "Replace the file if it exists."),
      json,
      help,
    ],
    load: async () => (await import("./backup.ts")).backup,
  }),
  command({
    usage: "restore <file>",
    summary: "Restore a backup into SVC_HOME, which must be empty.",
    details: [
      "Everything is checked against the backup's hashes. Jobs that were running resume at the next start.",
    ],
    options: [json, help],
    load: async () => (await import("./backup.ts")).restore,
  }),
  {
    name: "secrets",
    words: ["rotate"],
    summary: "Encrypt all stored secrets again with a new key, while all programs are stopped.",
    details: [
      "With SVC_SECRET_KEY or its file: with the first key there. Else a new key is made in SVC_HOME/secret.key, and the old",
      "one removed from it at the end. If it is interrupted, run it again.",
    ],
    options: [json, help],
    load: async () => (await import("./rotate-secrets.ts")).secrets,
  },
  {
    name: "store",
    words: ["copy"],
    summary:
      "Copy the SQLite database of SVC_HOME into an empty PostgreSQL database, while the program is stopped.",
    details: [
      "All of it is copied and compared, or nothing; the SQLite database stays as it is. Start with SVC_DATABASE_URL and the",
      "same SVC_HOME then. Without --to the target is SVC_DATABASE_URL, whose password no list of processes shows.",
    ],
    options: [option("--to URL", "The target: postgres://user:password@host/database."), json, help],
    load: async () => (await import("./store-copy.ts")).store,
  },
  command({
    usage: "version",
    summary: "Print the version.",
    options: [json, help],
    load: async () => (await import("./help.ts")).version,
  }),
  command({
    usage: "help [command] [subcommand]",
    summary: "Explain a command.",
    options: [help],
    load: async () => {
      const { help: explain } = await import("./help.ts");
      return (call) => explain(call, sections);
    },
  }),
];

/** All commands, as `troupe help` lists them. */
export const sections: readonly CatalogueSection[] = [
  { title: "Serve", entries: serving },
  {
    title: "Work with the gateway",
    entries: [
      ...runEntries,
      schedules,
      deploy,
      deployments,
      models,
      ...blueprintEntries,
      consoleCommands,
      node,
      resource,
    ],
  },
  { title: "Work with the runtime API", entries: runtimeEntries },
  { title: "On this machine", entries: local },
];
