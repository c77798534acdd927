// The commands about bundles, jobs and runs, and those of the runtime API.

import {
  all,
  command,
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
  option,
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

const run = command({
  usage: "run <folder|zip|manifest.json>",
  summary: "Run a bundle from this machine and show its progress.",
  details: [
    "The bundle is uploaded to the gateway, and a job is created from it and run. If no gateway answers, this process runs one",
    "until the run ends. The run is followed to its end, live in a terminal, as plain lines elsewhere.",
    "With --runtime it is submitted to the runtime API instead, which reads a folder by its path.",
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
});

const demo = command({
  usage: "demo",
  summary: "Run the example document-digest: Python workers digest texts into a report.",
  options: [save, forceSave, ...remote],
  load: async () => (await import("./run.ts")).demo,
});

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
  command({
    usage: "job <id>",
    summary: "Show one job or run: its state, last events, result and files.",
    details: eitherIds,
    options: either,
    load: withServer(async () => (await import("./jobs.ts")).showAny),
  }),
  command({
    usage: "events <id>",
    summary: "Print a run's history, oldest first; of a job, its latest run's.",
    details: eitherIds,
    options: [follow, jsonLines, eitherUrl, help],
    load: withServer(async () => (await import("./run-records.ts")).events()),
  }),
  ...steering(),
];

const logDetails = [
  "A time is 30s, 10m, 2h or 3d, that long ago, or 2026-11-21T09:30:00Z.",
  "With --follow, it ends when the run does.",
];
const logOptions: readonly OptionSpec[] = [
  option("--level LEVEL", "The least urgent to show: trace, debug, info, warn, error or fatal."),
  option("--agent AGENT", "Only of this agent."),
  option("--text TEXT", "Only messages with this text in them, in upper or lower case."),
  option("--since TIME", "Only what was logged at this time or later."),
  option("--until TIME", "Only what was logged before this time."),
  option("--tail N", "Only the newest N."),
  follow,
  ...streamed,
];

const logs = command({
  usage: "logs <run-id|job-id>",
  summary: "Print what a run's workers logged, oldest first; of a job, its latest run's.",
  details: logDetails,
  options: logOptions,
  load: withServer(async () => (await import("./logs.ts")).logs()),
});

/** What runs need people for. */
const attention: readonly CatalogueEntry[] = [
  command({
    usage: "human [id]",
    summary: "List the open questions of runs to people.",
    details: [
      "Of one run, or of a job's latest one; without an id, of every run of the gateway.",
      ...eitherIds,
    ],
    options: either,
    load: withServer(async () => (await import("./attention.ts")).human),
  }),
  command({
    usage: "answer <id> <request-id> <decision>",
    summary: "Answer a question of a run.",
    details: ["The first answer counts. `troupe human` lists the open questions.", ...eitherIds],
    options: [
      option("--comment TEXT", "A comment for the worker."),
      option("--data JSON", "Any JSON, for the worker."),
      ...either,
    ],
    load: withServer(async () => (await import("./attention.ts")).answer),
  }),
  command({
    usage: "dead-letters <id>",
    summary: "List the messages that a run could not deliver, newest first, or send them again.",
    details: eitherIds,
    options: [
      option("--retry DEAD-LETTER", "Send this one again, as a new message."),
      option("--retry-all", "Send every open one again."),
      limit,
      all,
      ...either,
    ],
    load: withServer(async () => (await import("./attention.ts")).deadLetters()),
  }),
];

const bundles: CommandGroup = {
  name: "bundles",
  summary: "Upload, list and delete bundles.",
  commands: [
    command({
      usage: "bundles list",
      summary: "List the bundles, newest first.",
      options: [limit, all, runtime, ...remote],
      load: withServer(async () => (await import("./bundles.ts")).list),
    }),
    command({
      usage: "bundles upload <folder|zip|manifest.json>",
      summary: "Upload a bundle; the same content gets the same id.",
      details: [
        "A folder is zipped as it is sent. Left out: .git, __pycache__; at the top node_modules and .*",
      ],
      options: remote,
      load: withServer(async () => (await import("./bundles.ts")).upload),
    }),
    command({
      usage: "bundles show <bundle-id>",
      summary: "Show one bundle.",
      options: remote,
      load: withServer(async () => (await import("./bundles.ts")).show),
    }),
    command({
      usage: "bundles delete <bundle-id>",
      summary: "Delete a bundle that no job uses.",
      options: remote,
      load: withServer(async () => (await import("./bundles.ts")).remove),
    }),
  ],
};

const jobs: CommandGroup = {
  name: "jobs",
  summary: "Create, list, change and control jobs: durable definitions of work.",
  commands: [
    command({
      usage: "jobs list",
      summary: "List jobs, newest first.",
      options: [
        limit,
        all,
        option("--open", "Only those whose latest run has not ended."),
        runtime,
        ...remote,
      ],
      load: withServer(async () => (await import("./jobs.ts")).list),
    }),
    command({
      usage: "jobs create <bundle-id>",
      summary: "Create a job of an uploaded bundle.",
      details: [secretsNote],
      options: [name, config, ...remote],
      load: withServer(async () => (await import("./jobs.ts")).create),
    }),
    command({
      usage: "jobs show <job-id>",
      summary: "Show one job and its latest run.",
      options: [option("--full", "Also its graph, recent runs and recent events."), ...remote],
      load: withServer(async () => (await import("./jobs.ts")).show),
    }),
    command({
      usage: "jobs update <job-id>",
      summary: "Change a job's name or configuration; runs that have started keep theirs.",
      details: ["--config is a JSON merge patch: null removes a key, ******** keeps a stored secret."],
      options: [
        name,
        { ...config, help: "JSON file with the changes of the configuration; - reads stdin." },
        ...remote,
      ],
      load: withServer(async () => (await import("./jobs.ts")).update),
    }),
    command({
      usage: "jobs delete <job-id>",
      summary: "Delete a job with its runs, their events and their files.",
      options: [option("--force", "Cancel open runs first."), ...remote],
      load: withServer(async () => (await import("./jobs.ts")).remove),
    }),
    ...steering("job"),
    command({
      usage: "jobs events <job-id>",
      summary: "Print the history of a job's latest run, oldest first.",
      options: [follow, ...streamed],
      load: withServer(async () => (await import("./run-records.ts")).events("job")),
    }),
    command({
      usage: "jobs progress <job-id>",
      summary: "Show the progress of a job's latest run, agent by agent.",
      options: remote,
      load: withServer(async () => (await import("./jobs.ts")).progress),
    }),
    command({
      usage: "jobs dead-letters <job-id>",
      summary: "List the messages of a job's latest run that could not be delivered, newest first.",
      options: [limit, all, ...remote],
      load: withServer(async () => (await import("./attention.ts")).deadLetters("job")),
    }),
  ],
};

const runs: CommandGroup = {
  name: "runs",
  summary: "Start, list, follow and control runs; get their results and files.",
  commands: [
    command({
      usage: "runs list",
      summary: "List runs, newest first.",
      options: [
        option("--job JOB-ID", "Only those of this job."),
        option(
          "--status STATUS",
          "Only those that are pending, queued, running, paused, completed, failed or cancelled.",
        ),
        limit,
        all,
        ...remote,
      ],
      load: withServer(async () => (await import("./runs.ts")).list),
    }),
    command({
      usage: "runs start <job-id>",
      summary: "Start a run of a job; prints its id.",
      details: [runExitCodes],
      options: [
        input,
        option("--watch", "Follow the run to its end."),
        { ...save, help: "Copy the run's outputs into a folder; implies --watch." },
        forceSave,
        ...remote,
      ],
      load: withServer(async () => (await import("./runs.ts")).start),
    }),
    command({
      usage: "runs show <run-id>",
      summary: "Show one run: its state, result and files.",
      options: remote,
      load: withServer(async () => (await import("./runs.ts")).show),
    }),
    command({
      usage: "runs wait <run-id>",
      summary: "Wait until a run has ended, then show it.",
      details: [runExitCodes],
      options: remote,
      load: withServer(async () => (await import("./runs.ts")).wait),
    }),
    ...steering("run"),
    command({
      usage: "runs events <run-id>",
      summary: "Print a run's history, oldest first.",
      options: [follow, ...streamed],
      load: withServer(async () => (await import("./run-records.ts")).events("run")),
    }),
    command({
      usage: "runs logs <run-id>",
      summary: "Print what a run's workers logged, oldest first.",
      details: logDetails,
      options: logOptions,
      load: withServer(async () => (await import("./logs.ts")).logs("run")),
    }),
    command({
      usage: "runs timeline <run-id>",
      summary: "Print a run's steps, tasks and attempts, oldest first.",
      options: streamed,
      load: withServer(async () => (await import("./run-records.ts")).timeline),
    }),
    command({
      usage: "runs result <run-id>",
      summary: "Print a run's result as JSON.",
      details: ["Exit code: 0 completed, 1 failed or not ended yet, 13 cancelled."],
      options: [{ ...json, help: "Print the whole record: status, result, failure." }, url, help],
      load: withServer(async () => (await import("./run-records.ts")).result),
    }),
    command({
      usage: "runs artifacts <run-id>",
      summary: "List every file that a run's workers wrote, oldest first.",
      options: [
        option("--evidence", "Instead, the run's record, events, logs, errors and timeline as files."),
        ...remote,
      ],
      load: withServer(async () => (await import("./run-files.ts")).artifacts),
    }),
    command({
      usage: "runs outputs <run-id>",
      summary: "List the output files of a run, primary ones first.",
      options: remote,
      load: withServer(async () => (await import("./run-files.ts")).outputs),
    }),
    command({
      usage: "runs save <run-id> <folder>",
      summary: "Copy a run's outputs into a folder; its other files where it has no outputs.",
      options: [
        option("--all", "Every file, not only the outputs."),
        option(
          "--evidence",
          "Also the run's record, events, logs, errors and timeline, in a folder evidence.",
        ),
        forceSave,
        ...remote,
      ],
      load: withServer(async () => (await import("./run-files.ts")).save),
    }),
  ],
};

const gc = command({
  usage: "gc",
  summary: "Remove old runs and unreferenced files; a running server does so every hour.",
  details: [
    "Ended runs are removed when they are older than the server's SVC_RETENTION_DAYS, or beyond its SVC_RETENTION_MAX_BYTES.",
    "Open runs are never removed. --dry-run lists what would be removed; the same command without it removes just that.",
  ],
  options: [
    option("--dry-run", "Remove nothing; list what would be removed."),
    option("--confirm", "Remove unreferenced files even if they are most of SVC_HOME."),
    option(
      "--older-than AGE",
      "Instead of SVC_RETENTION_DAYS: a number with d, h or m, such as 7d; 0d: no age limit.",
    ),
    option("--max-bytes SIZE", "Instead of SVC_RETENTION_MAX_BYTES: bytes, or with K, M, G, T; 0: no limit."),
    { ...runtime, help: "Ask the runtime API; --url is then its address." },
    ...remote,
  ],
  load: withServer(async () => (await import("./gc.ts")).gc),
});

/** What only the runtime API has. */
export const runtimeEntries: readonly CatalogueEntry[] = [
  command({
    usage: "send <job-id> <agent>",
    summary: "Send a message to a sensor of a running job.",
    options: [
      option("--type TYPE", "The message's type."),
      option("--body JSON", "The message's body. Default: {}"),
      ...ofRuntime,
    ],
    load: withServer(async () => (await import("./jobs.ts")).send),
  }),
  command({
    usage: "cleanup",
    summary: "Remove the records of jobs that have ended.",
    options: [option("--all", "Running jobs too: they are cancelled first."), ...ofRuntime],
    load: withServer(async () => (await import("./jobs.ts")).cleanup),
  }),
  command({
    usage: "reload <bundle-id>",
    summary: "Read a bundle's folder again; later submissions use what it holds now.",
    options: ofRuntime,
    load: withServer(async () => (await import("./bundles.ts")).reload),
  }),
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
