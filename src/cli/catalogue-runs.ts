// The commands that start a run and work with one, and those of the runtime API.

import { events } from "./catalogue-events.ts";
import { bundles, jobs, runs } from "./catalogue-groups.ts";
import {
  all,
  command,
  config,
  either,
  eitherIds,
  forceSave,
  input,
  limit,
  logDetails,
  logOptions,
  name,
  ofRuntime,
  option,
  priority,
  remote,
  runExitCodes,
  runtime,
  save,
  steering,
  watch,
  withServer,
} from "./catalogue-options.ts";
import type { CatalogueEntry, CommandSpec } from "./command.ts";

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
    priority,
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

/** Of a run, a job, or a job of the runtime. */
const ofAny: readonly CommandSpec[] = [
  command({
    usage: "job <id>",
    summary: "Show one job or run: its state, last events, result and files.",
    details: eitherIds,
    options: either,
    load: withServer(async () => (await import("./jobs.ts")).showAny),
  }),
  ...steering(),
];

const logs = command({
  usage: "logs <run-id|job-id>",
  summary: "Print what a run's workers logged, oldest first; of a job, its latest run's.",
  details: logDetails,
  options: logOptions,
  load: withServer(async () => (await import("./logs.ts")).logs()),
});

const ask = command({
  usage: "ask <job-id> <question>",
  summary: "Ask a job about itself and its latest run; the answer is quoted from what it has published.",
  details: ["Of jobs whose package enables the extension svc.response. It starts no run."],
  options: [
    option("--run RUN", "Ask about this run of the job."),
    option("--about IDS", "For a follow-up: ids that an earlier answer was from, separated by commas."),
    ...remote,
  ],
  load: withServer(async () => (await import("./ask.ts")).ask),
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
    usage: "dead-letters [id]",
    summary: "List the messages that runs could not deliver, newest first, or send those of a run again.",
    details: [
      "Of one run, or of a job's latest one; without an id, the open ones of every run of the gateway.",
      ...eitherIds,
    ],
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
  events,
  logs,
  ask,
  ...attention,
  bundles,
  jobs,
  runs,
  gc,
];
