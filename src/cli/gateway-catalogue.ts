// The commands that talk to the gateway: launch, bundles, jobs, runs.

import {
  type CatalogueEntry,
  type CommandGroup,
  type CommandSpec,
  forceSaveOption as force,
  helpOption as help,
  jsonOption as json,
  type OptionSpec,
} from "./command.ts";
import { url } from "./url-option.ts";

const remote = [url, json, help];
const streamed = [{ ...json, help: "Print one JSON object per line." }, url, help];

const limit: OptionSpec = { name: "limit", value: "N", help: "How many at most. Default: 20." };
const all: OptionSpec = { name: "all", value: null, help: "All of them." };
const ofRuntime: OptionSpec = {
  name: "runtime",
  value: null,
  help: "Those of the runtime API; --url is then its address.",
};
const input: OptionSpec = {
  name: "input",
  value: "FILE",
  help: "JSON file with the body for the entrypoints; - reads stdin.",
};
const config: OptionSpec = {
  name: "config",
  value: "FILE",
  help: "JSON file that is laid over the bundle's configuration; - reads stdin.",
};
const name: OptionSpec = { name: "name", value: "NAME", help: "The job's name, for people." };
const save: OptionSpec = { name: "save", value: "FOLDER", help: "Copy the run's outputs into a folder." };
const followed =
  "Exit code: 0 completed, 1 failed, 13 cancelled, 130 Ctrl-C while waiting (the run goes on).";
const secretsNote =
  "Values under keys that look like secrets are stored sealed; the gateway shows them as ********.";

const launch: CommandSpec = {
  name: "launch",
  words: ["<folder|zip>"],
  summary: "Upload a bundle, create a job of it, run it, and show how it goes.",
  details: [
    "The run is followed to its end, live in a terminal, as plain lines elsewhere; --no-watch only starts it.",
    followed,
  ],
  options: [
    input,
    config,
    name,
    { name: "watch", value: null, help: "Follow the run to its end, as it is; --no-watch only starts it." },
    save,
    force,
    ...remote,
  ],
  load: async () => (await import("./launch.ts")).launch,
};

const logDetails = [
  "A time is 30s, 10m, 2h or 3d, that long ago, or 2026-11-21T09:30:00Z.",
  "With --follow, it ends when the run does.",
];
const logOptions: readonly OptionSpec[] = [
  {
    name: "level",
    value: "LEVEL",
    help: "The least urgent to show: trace, debug, info, warn, error or fatal.",
  },
  { name: "agent", value: "AGENT", help: "Only of this agent." },
  { name: "text", value: "TEXT", help: "Only messages with this text in them, whatever its case." },
  { name: "since", value: "TIME", help: "Only what was logged at this time or later." },
  { name: "until", value: "TIME", help: "Only what was logged before this time." },
  { name: "tail", value: "N", help: "Only the newest N." },
  { name: "follow", value: null, help: "Wait for more until the run ends." },
  ...streamed,
];

const logs: CommandSpec = {
  name: "logs",
  words: ["<run-id|job-id>"],
  summary: "Print what a run's workers logged, oldest first; of a job, its latest run's.",
  details: logDetails,
  options: logOptions,
  load: async () => (await import("./run-logs.ts")).logs,
};

const bundles: CommandGroup = {
  name: "bundles",
  summary: "Upload, list and delete bundles.",
  commands: [
    {
      name: "bundles list",
      words: [],
      summary: "List the bundles, newest first.",
      options: [limit, all, ofRuntime, ...remote],
      load: async () => (await import("./bundles.ts")).list,
    },
    {
      name: "bundles upload",
      words: ["<folder|zip>"],
      summary: "Upload a bundle; the same content gets the same id.",
      details: [
        "A folder is zipped as it is sent. Left out: .git, __pycache__; at the top node_modules and .*",
      ],
      options: remote,
      load: async () => (await import("./bundles.ts")).upload,
    },
    {
      name: "bundles show",
      words: ["<bundle-id>"],
      summary: "Show one bundle.",
      options: remote,
      load: async () => (await import("./bundles.ts")).show,
    },
    {
      name: "bundles delete",
      words: ["<bundle-id>"],
      summary: "Delete a bundle that no job uses.",
      options: remote,
      load: async () => (await import("./bundles.ts")).remove,
    },
  ],
};

const jobs: CommandGroup = {
  name: "jobs",
  summary: "Create, list, change and steer jobs: durable definitions of work.",
  commands: [
    {
      name: "jobs list",
      words: [],
      summary: "List jobs, newest first.",
      options: [
        limit,
        all,
        { name: "open", value: null, help: "Only those whose latest run has not ended." },
        ofRuntime,
        ...remote,
      ],
      load: async () => (await import("./jobs.ts")).list,
    },
    {
      name: "jobs create",
      words: ["<bundle-id>"],
      summary: "Create a job of an uploaded bundle.",
      details: [secretsNote],
      options: [name, config, ...remote],
      load: async () => (await import("./jobs.ts")).create,
    },
    {
      name: "jobs show",
      words: ["<job-id>"],
      summary: "Show one job and its latest run.",
      options: [
        { name: "full", value: null, help: "Also its graph, recent runs and recent events." },
        ...remote,
      ],
      load: async () => (await import("./jobs.ts")).show,
    },
    {
      name: "jobs update",
      words: ["<job-id>"],
      summary: "Change a job's name or configuration; runs that have begun keep theirs.",
      details: ["--config is a JSON merge patch: null takes a key away, ******** keeps a stored secret."],
      options: [
        name,
        { ...config, help: "JSON file with the changes of the configuration; - reads stdin." },
        ...remote,
      ],
      load: async () => (await import("./jobs.ts")).update,
    },
    {
      name: "jobs delete",
      words: ["<job-id>"],
      summary: "Delete a job with its runs, their events and their files.",
      options: [{ name: "force", value: null, help: "Cancel open runs first." }, ...remote],
      load: async () => (await import("./jobs.ts")).remove,
    },
    ...(["pause", "resume", "cancel"] as const).map((action) => ({
      name: `jobs ${action}`,
      words: ["<job-id>"],
      summary: {
        pause: "Pause every open run of a job; a command that runs may finish.",
        resume: "Resume every paused run of a job.",
        cancel: "Cancel every open run of a job; their commands are ended.",
      }[action],
      options: remote,
      load: async () => (await import("./jobs.ts")).control(action),
    })),
    {
      name: "jobs events",
      words: ["<job-id>"],
      summary: "Print the history of a job's latest run, oldest first.",
      options: [{ name: "follow", value: null, help: "Wait for more until the run ends." }, ...streamed],
      load: async () => (await import("./jobs.ts")).events,
    },
    {
      name: "jobs progress",
      words: ["<job-id>"],
      summary: "Show how far a job's latest run has come, agent by agent.",
      options: remote,
      load: async () => (await import("./jobs.ts")).progress,
    },
    {
      name: "jobs dead-letters",
      words: ["<job-id>"],
      summary: "List the messages of a job's latest run that were given up, newest first.",
      options: [limit, all, ...remote],
      load: async () => (await import("./jobs.ts")).deadLetters,
    },
  ],
};

const runs: CommandGroup = {
  name: "runs",
  summary: "Start, list, follow and steer runs; get their results and files.",
  commands: [
    {
      name: "runs list",
      words: [],
      summary: "List runs, newest first.",
      options: [
        { name: "job", value: "JOB-ID", help: "Only those of this job." },
        {
          name: "status",
          value: "STATUS",
          help: "Only those that are pending, queued, running, paused, completed, failed or cancelled.",
        },
        limit,
        all,
        ...remote,
      ],
      load: async () => (await import("./runs.ts")).list,
    },
    {
      name: "runs start",
      words: ["<job-id>"],
      summary: "Start a run of a job; prints its id.",
      details: [followed],
      options: [
        input,
        { name: "watch", value: null, help: "Follow the run to its end." },
        { ...save, help: "Copy the run's outputs into a folder; implies --watch." },
        force,
        ...remote,
      ],
      load: async () => (await import("./runs.ts")).start,
    },
    {
      name: "runs show",
      words: ["<run-id>"],
      summary: "Show one run: its state, result and files.",
      options: remote,
      load: async () => (await import("./runs.ts")).show,
    },
    {
      name: "runs wait",
      words: ["<run-id>"],
      summary: "Wait until a run has ended, then show it.",
      details: [followed],
      options: remote,
      load: async () => (await import("./runs.ts")).wait,
    },
    ...(["pause", "resume", "cancel"] as const).map((action) => ({
      name: `runs ${action}`,
      words: ["<run-id>"],
      summary: {
        pause: "Pause a run; a command that runs may finish.",
        resume: "Resume a paused run.",
        cancel: "Cancel a run; its commands are ended.",
      }[action],
      options: remote,
      load: async () => (await import("./runs.ts")).control(action),
    })),
    {
      name: "runs events",
      words: ["<run-id>"],
      summary: "Print a run's history, oldest first.",
      options: [{ name: "follow", value: null, help: "Wait for more until the run ends." }, ...streamed],
      load: async () => (await import("./run-records.ts")).events,
    },
    {
      name: "runs logs",
      words: ["<run-id>"],
      summary: "Print what a run's workers logged, oldest first.",
      details: logDetails,
      options: logOptions,
      load: async () => (await import("./run-logs.ts")).runLogs,
    },
    {
      name: "runs timeline",
      words: ["<run-id>"],
      summary: "Print a run's steps, tasks and attempts, oldest first.",
      options: streamed,
      load: async () => (await import("./run-records.ts")).timeline,
    },
    {
      name: "runs result",
      words: ["<run-id>"],
      summary: "Print what a run came to, as JSON.",
      details: ["Exit code: 0 completed, 1 failed or not ended yet, 13 cancelled."],
      options: [{ ...json, help: "Print the whole record: status, result, failure." }, url, help],
      load: async () => (await import("./run-records.ts")).result,
    },
    {
      name: "runs artifacts",
      words: ["<run-id>"],
      summary: "List every file that a run's workers left, oldest first.",
      options: [
        {
          name: "evidence",
          value: null,
          help: "Instead, the run's record, events, logs, errors and timeline as files.",
        },
        ...remote,
      ],
      load: async () => (await import("./run-files.ts")).artifacts,
    },
    {
      name: "runs outputs",
      words: ["<run-id>"],
      summary: "List the files that a run was for, primary ones first.",
      options: remote,
      load: async () => (await import("./run-files.ts")).outputs,
    },
    {
      name: "runs save",
      words: ["<run-id>", "<folder>"],
      summary: "Copy a run's outputs into a folder; its other files where it has no outputs.",
      options: [
        { name: "all", value: null, help: "Every file, not the outputs alone." },
        {
          name: "evidence",
          value: null,
          help: "Also the run's record, events, logs, errors and timeline, in a folder evidence.",
        },
        force,
        ...remote,
      ],
      load: async () => (await import("./run-files.ts")).save,
    },
  ],
};

const gc: CommandSpec = {
  name: "gc",
  words: [],
  summary: "Remove old runs, and files that belong to nothing; the program does so by itself each hour.",
  details: [
    "Ended runs go when they are older than SVC_RETENTION_DAYS of the program, or beyond its SVC_RETENTION_MAX_BYTES.",
    "Open runs are never touched. --dry-run says what would go; the same command without it removes just that.",
  ],
  options: [
    { name: "dry-run", value: null, help: "Remove nothing; say what would go." },
    {
      name: "confirm",
      value: null,
      help: "Remove what nothing names even if it is most of what SVC_HOME holds.",
    },
    {
      name: "older-than",
      value: "AGE",
      help: "In place of SVC_RETENTION_DAYS: a number with d, h or m, such as 7d; 0d: none goes for its age.",
    },
    {
      name: "max-bytes",
      value: "SIZE",
      help: "In place of SVC_RETENTION_MAX_BYTES: bytes, or with K, M, G, T; 0: no bound.",
    },
    { ...ofRuntime, help: "Ask the runtime API; --url is then its address." },
    ...remote,
  ],
  load: async () => (await import("./gc.ts")).gc,
};

export const gatewayEntries: readonly CatalogueEntry[] = [launch, logs, bundles, jobs, runs, gc];
