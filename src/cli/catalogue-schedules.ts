// The commands about schedules: rules by which runs of a job are started.

import { all, command, input, limit, option, priority, remote, withServer } from "./catalogue-options.ts";
import type { CommandGroup, OptionSpec } from "./command.ts";

/** What a schedule says, when it is made and later. */
const settings: readonly OptionSpec[] = [
  option("--cron EXPR", 'When, again and again: "30 7 * * MON-FRI", or @hourly, @daily, …; may be repeated.'),
  option("--timezone ZONE", "Whose clocks --cron means, such as Europe/Berlin. Default: UTC."),
  option("--jitter SECONDS", "Put off each start by a random time of up to so long. Default: 0."),
  option("--at TIME", "Once, at this time."),
  option("--in DURATION", "Once, so long from now."),
  option("--on TYPE", "When an event of this type comes (troupe events emit), such as run.completed."),
  option(
    "--where CONDITION",
    'Only events of --on that pass: "/payload/size gt 10", "/payload/path prefix /srv/", "/source eq a"; may be repeated.',
  ),
  option("--debounce SECONDS", "One run for the last of several events, once none has come for so long."),
  option("--throttle SECONDS", "After the start of a run, events start none for so long."),
  option("--batch N/SECONDS", "One run for N events, or for those that have come within SECONDS: 100/60."),
  option(
    "--webhook SCHEME",
    "Of --on: a path to which another program sends signed events: github, stripe or hmac-sha256. none: no path.",
  ),
  option("--webhook-secret FILE", "File with the webhook's secret; - reads stdin. Default: one is made."),
  option("--name NAME", "The schedule's display name. Default: its rule in plain English."),
  { ...input, help: "JSON file with the body that each run's entrypoints get; - reads stdin." },
  option(
    "--config FILE",
    "JSON file that is merged over the configuration of a blueprint's job in each run; - reads stdin.",
  ),
  option("--set A.B=VALUE", "One setting, merged over --config; may be repeated."),
  { ...priority, help: "Of its runs: low, normal (the default) or high." },
  option(
    "--overlap POLICY",
    "If the run before has not ended: skip (the default), allow, queue_one or cancel_previous.",
  ),
  option(
    "--missed POLICY",
    "Of times that passed while nothing ran: skip, run_once (the default) or run_all.",
  ),
  option("--catchup-limit N", "Most missed times, the latest ones, that run_all makes up for. Default: 100."),
  option("--until TIME", "No run is started later. none: no end."),
  option("--max-runs N", "The schedule is completed after so many runs. none: no limit."),
  option("--pause-after-failures N", "Pause it when so many runs in a row have failed. none: never."),
];

const times =
  "A time is 2026-12-01T07:30, by this machine's clock, or 2026-12-01T07:30:00Z. A duration is 30s, 10m, 2h or 3d.";

export const schedules: CommandGroup = {
  name: "schedules",
  summary: "Start runs of a job by a rule: again and again, once at a time, or when an event comes.",
  commands: [
    command({
      usage: "schedules list",
      summary: "List the schedules, newest first.",
      options: [
        option("--kind KIND", "Only those that are cron, delayed or event."),
        option("--status STATUS", "Only those that are active, paused, completed or failed."),
        option("--job JOB-ID", "Only those of this job."),
        limit,
        all,
        ...remote,
      ],
      load: withServer(async () => (await import("./schedules.ts")).list),
    }),
    command({
      usage: "schedules create [job-id]",
      summary: "Start runs of a job, or of a blueprint, by a rule; prints the schedule's id.",
      details: [
        times,
        "What the runs are given is checked now, as if one began.",
        'A value {"$event": "/payload/path"} in --input becomes what is there in the event.',
        "--webhook prints the URL and the secret, which is shown this once.",
        'Example: troupe schedules create job_01m7yts80q --cron "30 7 * * *" --timezone Europe/Berlin',
      ],
      options: [
        option("--blueprint ID", "In place of a job: a new job of this blueprint of the catalog."),
        ...settings,
        ...remote,
      ],
      load: withServer(async () => (await import("./schedules.ts")).create),
    }),
    command({
      usage: "schedules show <schedule-id>",
      summary: "Show one schedule: its rule in plain English, its next times, what became of the last one.",
      options: remote,
      load: withServer(async () => (await import("./schedules.ts")).show),
    }),
    command({
      usage: "schedules update <schedule-id>",
      summary: "Change a schedule; a new rule counts from now on.",
      details: [
        times,
        "--input and --config are JSON merge patches: null removes a key, ******** keeps a stored secret.",
      ],
      options: [
        ...settings,
        option("--new-webhook PART", "Make another secret or path of the webhook; the former one is void."),
        ...remote,
      ],
      load: withServer(async () => (await import("./schedules.ts")).update),
    }),
    command({
      usage: "schedules pause <schedule-id>",
      summary: "Start no runs until it is resumed; runs that were started go on.",
      options: remote,
      load: withServer(async () => (await import("./schedules.ts")).pause),
    }),
    command({
      usage: "schedules resume <schedule-id>",
      summary: "Let a paused schedule go on from now: times that passed meanwhile are not made up for.",
      options: remote,
      load: withServer(async () => (await import("./schedules.ts")).resume),
    }),
    command({
      usage: "schedules dispatch <schedule-id>",
      summary: "Start a run of a schedule now, whatever its rule and status; prints the run's id.",
      options: remote,
      load: withServer(async () => (await import("./schedules.ts")).dispatch),
    }),
    command({
      usage: "schedules delete <schedule-id>",
      summary: "Delete a schedule; its runs stay.",
      options: remote,
      load: withServer(async () => (await import("./schedules.ts")).remove),
    }),
  ],
};
