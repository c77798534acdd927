// Every command of `troupe`: its words, its options, its help. The code behind a command is loaded when it runs.

import { blueprintEntries } from "./blueprint-catalogue.ts";
import {
  type CatalogueEntry,
  forceSaveOption,
  helpOption as help,
  jsonOption as json,
  type OptionSpec,
} from "./command.ts";
import { gatewayEntries } from "./gateway-catalogue.ts";

const url: OptionSpec = {
  name: "url",
  value: "URL",
  help: "The runtime API to talk to. Default: its socket in SVC_HOME if there is one, else http://127.0.0.1:<SVC_RUNTIME_API_PORT>/api/v1",
};
const remote = [url, json, help];

/** For commands that take the ids of both APIs. */
const eitherUrl: OptionSpec = {
  name: "url",
  value: "URL",
  help: "The API to talk to. Default: for run_… and job_… the gateway on SVC_API_PORT, else the runtime on SVC_RUNTIME_API_PORT.",
};
const either = [eitherUrl, json, help];
const eitherIds = ["Ids that begin with run_ or job_ are the gateway's, all others the runtime's."];

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

/** What runs need people for. */
const attentionEntries: readonly CatalogueEntry[] = [
  {
    name: "human",
    words: ["[id]"],
    summary: "List what runs ask people and nobody has answered yet.",
    details: [
      "Of one run, or of a job's latest one; without an id of every run of the gateway.",
      ...eitherIds,
    ],
    options: either,
    load: async () => (await import("./attention.ts")).human,
  },
  {
    name: "answer",
    words: ["<id>", "<request-id>", "<decision>"],
    summary: "Answer what a run asks a person.",
    details: ["The first answer stands. `troupe human` lists what is asked.", ...eitherIds],
    options: [
      { name: "comment", value: "TEXT", help: "For the worker, in your own words." },
      { name: "data", value: "JSON", help: "For the worker: any JSON." },
      ...either,
    ],
    load: async () => (await import("./attention.ts")).answer,
  },
  {
    name: "dead-letters",
    words: ["<id>"],
    summary: "List the messages that a run gave up, newest first, or send them again.",
    details: eitherIds,
    options: [
      { name: "retry", value: "DEAD-LETTER", help: "Send this one again, as a new message." },
      { name: "retry-all", value: null, help: "Send every open one again." },
      { name: "limit", value: "N", help: "How many at most. Default: 20." },
      { name: "all", value: null, help: "All of them." },
      ...either,
    ],
    load: async () => (await import("./attention.ts")).deadLetters,
  },
];

const runtimeEntries: readonly CatalogueEntry[] = [
  {
    name: "run",
    words: ["<folder|manifest.json>"],
    summary: "Run a bundle folder or a manifest, and show how it goes.",
    details: [
      "If no runtime answers, one is started in this process for the length of the run.",
      "In a terminal the run is watched; elsewhere only with --watch, or when the runtime is this process.",
      "Exit code: 0 completed, 1 failed, 13 cancelled, 130 Ctrl-C while watching (the job goes on).",
    ],
    options: [
      { name: "input", value: "FILE", help: "JSON file with the body for the entrypoints; - reads stdin." },
      { name: "config", value: "FILE", help: "JSON file that is merged over the bundle's configuration." },
      { name: "watch", value: null, help: "Follow the run to its end; --no-watch only submits it." },
      { name: "save", value: "FOLDER", help: "Copy the run's outputs into a folder." },
      forceSaveOption,
      ...remote,
    ],
    load: async () => (await import("./run.ts")).run,
  },
  {
    name: "demo",
    words: [],
    summary: "Run the example document-digest: Python workers digest texts into a report.",
    options: [
      { name: "save", value: "FOLDER", help: "Copy the report into a folder." },
      forceSaveOption,
      ...remote,
    ],
    load: async () => (await import("./run.ts")).demo,
  },
  {
    name: "job",
    words: ["<id>"],
    summary: "Show one job: its agents, last events, result and files.",
    details: eitherIds,
    options: either,
    load: async () => (await import("./either.ts")).job,
  },
  {
    name: "events",
    words: ["<id>"],
    summary: "Print a job's history, oldest first.",
    details: eitherIds,
    options: [
      { name: "follow", value: null, help: "Wait for more until the job ends." },
      { ...json, help: "Print one JSON object per line." },
      eitherUrl,
      help,
    ],
    load: async () => (await import("./either.ts")).events,
  },
  ...(["cancel", "pause", "resume"] as const).map((action) => ({
    name: action,
    words: ["<id>"],
    summary: {
      cancel: "Cancel a job; its commands are ended.",
      pause: "Pause a job; a command that runs may finish.",
      resume: "Resume a paused job.",
    }[action],
    details: eitherIds,
    options: either,
    load: async () => (await import("./either.ts")).control(action),
  })),
  {
    name: "send",
    words: ["<job-id>", "<agent>"],
    summary: "Send a message to a sensor of a running job.",
    options: [
      { name: "type", value: "TYPE", help: "The message's type." },
      { name: "body", value: "JSON", help: "The message's body. Default: {}" },
      ...remote,
    ],
    load: async () => (await import("./control.ts")).send,
  },
  {
    name: "cleanup",
    words: [],
    summary: "Remove the records of jobs that have ended.",
    options: [{ name: "all", value: null, help: "Running jobs too: they are cancelled first." }, ...remote],
    load: async () => (await import("./control.ts")).cleanup,
  },
  {
    name: "reload",
    words: ["<bundle-id>"],
    summary: "Read a bundle's folder again; later submissions use what it holds now.",
    options: remote,
    load: async () => (await import("./runtime-bundles.ts")).reload,
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
    load: async () => (await import("./show-config.ts")).showConfig,
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
    load: async () => (await import("./help.ts")).help,
  },
];

/** All commands, as `troupe help` lists them. */
export const sections: readonly { readonly title: string; readonly entries: readonly CatalogueEntry[] }[] = [
  { title: "Serve", entries: serving },
  { title: "Work with the gateway", entries: [...gatewayEntries, ...attentionEntries, ...blueprintEntries] },
  { title: "Work with the runtime API", entries: runtimeEntries },
  { title: "Here", entries: local },
];
