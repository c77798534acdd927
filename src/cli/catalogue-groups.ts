// The commands about bundles, jobs and runs of the gateway, in their groups.

import {
  all,
  command,
  config,
  follow,
  forceSave,
  help,
  input,
  json,
  limit,
  logDetails,
  logOptions,
  name,
  option,
  priority,
  remote,
  runExitCodes,
  runtime,
  save,
  steering,
  streamed,
  url,
  weight,
  withServer,
} from "./catalogue-options.ts";
import type { CommandGroup } from "./command.ts";

const secretsNote =
  "Values under keys that look like secrets are stored encrypted; the gateway shows them as ********.";

export const bundles: CommandGroup = {
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

export const jobs: CommandGroup = {
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
      options: [name, config, weight, ...remote],
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
      summary: "Change a job's name, weight or configuration; runs that have started keep theirs.",
      details: ["--config is a JSON merge patch: null removes a key, ******** keeps a stored secret."],
      options: [
        name,
        { ...config, help: "JSON file with the changes of the configuration; - reads stdin." },
        weight,
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

export const runs: CommandGroup = {
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
        option(
          "--search TEXT",
          "Only those with this in their id, their job's id or name, or blueprint's id.",
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
        priority,
        option("--watch", "Follow the run to its end."),
        { ...save, help: "Copy the run's outputs into a folder; implies --watch." },
        forceSave,
        ...remote,
      ],
      load: withServer(async () => (await import("./runs.ts")).start),
    }),
    command({
      usage: "runs rerun <run-id>",
      summary: "Start a run again, of the same job; with the same inputs, or those of --input.",
      details: [runExitCodes],
      options: [
        input,
        priority,
        option("--watch", "Follow the run to its end."),
        { ...save, help: "Copy the run's outputs into a folder; implies --watch." },
        forceSave,
        ...remote,
      ],
      load: withServer(async () => (await import("./runs.ts")).rerun),
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
      usage: "runs prioritize <run-id> <priority>",
      summary: "Give a run another priority: low, normal or high. What waits of it has it at once.",
      options: remote,
      load: withServer(async () => (await import("./runs.ts")).prioritize),
    }),
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
