// The commands about bundles, jobs and runs, and those of the runtime API.

import {
  all,
  config,
  either,
  eitherIds,
  eitherUrl,
  follow,
  forceSave,
  help,
  input,
  json,
  jsonLines,
  limit,
  name,
  ofRuntime,
  remote,
  runExitCodes,
  runtime,
  save,
  streamed,
  url,
  watch,
  withServer,
} from "./catalogue-options.ts";
import type { CatalogueEntry, CommandGroup, CommandSpec, OptionSpec } from "./command.ts";

const secretsNote =
  "Values under keys that look like secrets are stored encrypted; the gateway shows them as ********.";

const run: CommandSpec = {
  name: "run",
  words: ["<folder|zip|manifest.json>"],
  summary: "Run a bundle of this machine, and show how it goes.",
  details: [
    "It is uploaded to the gateway, a job is created of it and run. If no gateway answers, one is started in this process for",
    "the length of the run. The run is followed to its end, live in a terminal, as plain lines elsewhere.",
    "With --runtime it is submitted to a runtime that is served without a gateway, which reads a folder by its path.",
    runExitCodes,
  ],
  options: [
    input,
    config,
    name,
    watch,
    save,
    forceSave,
    { ...runtime, help: "Submit it to the runtime API; --url is then its address." },
    ...remote,
  ],
  load: async () => (await import("./run.ts")).run,
};

const demo: CommandSpec = {
  name: "demo",
  words: [],
  summary: "Run the example document-digest: Python workers digest texts into a report.",
  options: [save, forceSave, ...remote],
  load: async () => (await import("./run.ts")).demo,
};

/** Commands that ask for one change of state. @param only the kind of id they take, in its group; any kind when absent */
function steering(only?: "job" | "run"): readonly CommandSpec[] {
  const summaries = {
    job: {
      pause: "Pause every open run of a job; a command that runs may finish.",
      resume: "Resume every paused run of a job.",
      cancel: "Cancel every open run of a job; their commands are ended.",
    },
    run: {
      pause: "Pause a run; a command that runs may finish.",
      resume: "Resume a paused run.",
      cancel: "Cancel a run; its commands are ended.",
    },
    any: {
      pause: "Pause a run, or every open run of a job; a command that runs may finish.",
      resume: "Resume a paused run, or every paused run of a job.",
      cancel: "Cancel a run, or every open run of a job; their commands are ended.",
    },
  }[only ?? "any"];
  return (["pause", "resume", "cancel"] as const).map((action) => ({
    name: only === undefined ? action : `${only}s ${action}`,
    words: [only === undefined ? "<id>" : `<${only}-id>`],
    summary: summaries[action],
    ...(only === undefined && { details: eitherIds }),
    options: only === undefined ? either : remote,
    load: withServer(async () => (await import("./control.ts")).control(action, only)),
  }));
}

/** Of a run, a job, or a job of the runtime. */
const ofAny: readonly CommandSpec[] = [
  {
    name: "job",
    words: ["<id>"],
    summary: "Show one job or run: its state, last events, result and files.",
    details: eitherIds,
    options: either,
    load: withServer(async () => (await import("./jobs.ts")).showAny),
  },
  {
    name: "events",
    words: ["<id>"],
    summary: "Print a run's history, oldest first; of a job, its latest run's.",
    details: eitherIds,
    options: [follow, jsonLines, eitherUrl, help],
    load: withServer(async () => (await import("./run-records.ts")).events()),
  },
  ...steering(),
];

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
  follow,
  ...streamed,
];

const logs: CommandSpec = {
  name: "logs",
  words: ["<run-id|job-id>"],
  summary: "Print what a run's workers logged, oldest first; of a job, its latest run's.",
  details: logDetails,
  options: logOptions,
  load: withServer(async () => (await import("./logs.ts")).logs()),
};

/** What runs need people for. */
const attention: readonly CatalogueEntry[] = [
  {
    name: "human",
    words: ["[id]"],
    summary: "List what runs ask people and nobody has answered yet.",
    details: [
      "Of one run, or of a job's latest one; without an id of every run of the gateway.",
      ...eitherIds,
    ],
    options: either,
    load: withServer(async () => (await import("./attention.ts")).human),
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
    load: withServer(async () => (await import("./attention.ts")).answer),
  },
  {
    name: "dead-letters",
    words: ["<id>"],
    summary: "List the messages that a run could not deliver, newest first, or send them again.",
    details: eitherIds,
    options: [
      { name: "retry", value: "DEAD-LETTER", help: "Send this one again, as a new message." },
      { name: "retry-all", value: null, help: "Send every open one again." },
      limit,
      all,
      ...either,
    ],
    load: withServer(async () => (await import("./attention.ts")).deadLetters()),
  },
];

const bundles: CommandGroup = {
  name: "bundles",
  summary: "Upload, list and delete bundles.",
  commands: [
    {
      name: "bundles list",
      words: [],
      summary: "List the bundles, newest first.",
      options: [limit, all, runtime, ...remote],
      load: withServer(async () => (await import("./bundles.ts")).list),
    },
    {
      name: "bundles upload",
      words: ["<folder|zip|manifest.json>"],
      summary: "Upload a bundle; the same content gets the same id.",
      details: [
        "A folder is zipped as it is sent. Left out: .git, __pycache__; at the top node_modules and .*",
      ],
      options: remote,
      load: withServer(async () => (await import("./bundles.ts")).upload),
    },
    {
      name: "bundles show",
      words: ["<bundle-id>"],
      summary: "Show one bundle.",
      options: remote,
      load: withServer(async () => (await import("./bundles.ts")).show),
    },
    {
      name: "bundles delete",
      words: ["<bundle-id>"],
      summary: "Delete a bundle that no job uses.",
      options: remote,
      load: withServer(async () => (await import("./bundles.ts")).remove),
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
        runtime,
        ...remote,
      ],
      load: withServer(async () => (await import("./jobs.ts")).list),
    },
    {
      name: "jobs create",
      words: ["<bundle-id>"],
      summary: "Create a job of an uploaded bundle.",
      details: [secretsNote],
      options: [name, config, ...remote],
      load: withServer(async () => (await import("./jobs.ts")).create),
    },
    {
      name: "jobs show",
      words: ["<job-id>"],
      summary: "Show one job and its latest run.",
      options: [
        { name: "full", value: null, help: "Also its graph, recent runs and recent events." },
        ...remote,
      ],
      load: withServer(async () => (await import("./jobs.ts")).show),
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
      load: withServer(async () => (await import("./jobs.ts")).update),
    },
    {
      name: "jobs delete",
      words: ["<job-id>"],
      summary: "Delete a job with its runs, their events and their files.",
      options: [{ name: "force", value: null, help: "Cancel open runs first." }, ...remote],
      load: withServer(async () => (await import("./jobs.ts")).remove),
    },
    ...steering("job"),
    {
      name: "jobs events",
      words: ["<job-id>"],
      summary: "Print the history of a job's latest run, oldest first.",
      options: [follow, ...streamed],
      load: withServer(async () => (await import("./run-records.ts")).events("job")),
    },
    {
      name: "jobs progress",
      words: ["<job-id>"],
      summary: "Show how far a job's latest run has come, agent by agent.",
      options: remote,
      load: withServer(async () => (await import("./jobs.ts")).progress),
    },
    {
      name: "jobs dead-letters",
      words: ["<job-id>"],
      summary: "List the messages of a job's latest run that could not be delivered, newest first.",
      options: [limit, all, ...remote],
      load: withServer(async () => (await import("./attention.ts")).deadLetters("job")),
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
      load: withServer(async () => (await import("./runs.ts")).list),
    },
    {
      name: "runs start",
      words: ["<job-id>"],
      summary: "Start a run of a job; prints its id.",
      details: [runExitCodes],
      options: [
        input,
        { name: "watch", value: null, help: "Follow the run to its end." },
        { ...save, help: "Copy the run's outputs into a folder; implies --watch." },
        forceSave,
        ...remote,
      ],
      load: withServer(async () => (await import("./runs.ts")).start),
    },
    {
      name: "runs show",
      words: ["<run-id>"],
      summary: "Show one run: its state, result and files.",
      options: remote,
      load: withServer(async () => (await import("./runs.ts")).show),
    },
    {
      name: "runs wait",
      words: ["<run-id>"],
      summary: "Wait until a run has ended, then show it.",
      details: [runExitCodes],
      options: remote,
      load: withServer(async () => (await import("./runs.ts")).wait),
    },
    ...steering("run"),
    {
      name: "runs events",
      words: ["<run-id>"],
      summary: "Print a run's history, oldest first.",
      options: [follow, ...streamed],
      load: withServer(async () => (await import("./run-records.ts")).events("run")),
    },
    {
      name: "runs logs",
      words: ["<run-id>"],
      summary: "Print what a run's workers logged, oldest first.",
      details: logDetails,
      options: logOptions,
      load: withServer(async () => (await import("./logs.ts")).logs("run")),
    },
    {
      name: "runs timeline",
      words: ["<run-id>"],
      summary: "Print a run's steps, tasks and attempts, oldest first.",
      options: streamed,
      load: withServer(async () => (await import("./run-records.ts")).timeline),
    },
    {
      name: "runs result",
      words: ["<run-id>"],
      summary: "Print what a run came to, as JSON.",
      details: ["Exit code: 0 completed, 1 failed or not ended yet, 13 cancelled."],
      options: [{ ...json, help: "Print the whole record: status, result, failure." }, url, help],
      load: withServer(async () => (await import("./run-records.ts")).result),
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
      load: withServer(async () => (await import("./run-files.ts")).artifacts),
    },
    {
      name: "runs outputs",
      words: ["<run-id>"],
      summary: "List the files that a run was for, primary ones first.",
      options: remote,
      load: withServer(async () => (await import("./run-files.ts")).outputs),
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
        forceSave,
        ...remote,
      ],
      load: withServer(async () => (await import("./run-files.ts")).save),
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
    { ...runtime, help: "Ask the runtime API; --url is then its address." },
    ...remote,
  ],
  load: withServer(async () => (await import("./gc.ts")).gc),
};

/** What only the runtime API has. */
export const runtimeEntries: readonly CatalogueEntry[] = [
  {
    name: "send",
    words: ["<job-id>", "<agent>"],
    summary: "Send a message to a sensor of a running job.",
    options: [
      { name: "type", value: "TYPE", help: "The message's type." },
      { name: "body", value: "JSON", help: "The message's body. Default: {}" },
      ...ofRuntime,
    ],
    load: withServer(async () => (await import("./jobs.ts")).send),
  },
  {
    name: "cleanup",
    words: [],
    summary: "Remove the records of jobs that have ended.",
    options: [
      { name: "all", value: null, help: "Running jobs too: they are cancelled first." },
      ...ofRuntime,
    ],
    load: withServer(async () => (await import("./jobs.ts")).cleanup),
  },
  {
    name: "reload",
    words: ["<bundle-id>"],
    summary: "Read a bundle's folder again; later submissions use what it holds now.",
    options: ofRuntime,
    load: withServer(async () => (await import("./bundles.ts")).reload),
  },
];

export const runEntries: readonly CatalogueEntry[] = [
  run,
  { ...run, name: "launch", summary: "The same as run." },
  demo,
  ...ofAny,
  logs,
  ...attention,
  bundles,
  jobs,
  runs,
  gc,
];
