// The commands about events: those of a run, and those that schedules react to.

import {
  all,
  command,
  eitherIds,
  eitherUrl,
  follow,
  help,
  jsonLines,
  limit,
  option,
  remote,
  withServer,
} from "./catalogue-options.ts";
import type { CommandGroup } from "./command.ts";

export const events: CommandGroup = {
  name: "events",
  summary: "Print a run's events; tell of events, to which schedules react (schedules create --on TYPE).",
  isFirstImplied: true,
  commands: [
    command({
      usage: "events of <id>",
      summary: "Print a run's history, oldest first; of a job, its latest run's.",
      details: [...eitherIds, "The word of may be left out: troupe events run_01m7yts816 --follow"],
      options: [follow, jsonLines, eitherUrl, help],
      load: withServer(async () => (await import("./run-records.ts")).events()),
    }),
    command({
      usage: "events list",
      summary: "List trigger events, newest first, with what they have started.",
      options: [
        option("--type TYPE", "Only events of this type."),
        option("--source SOURCE", "Only events from there."),
        limit,
        all,
        ...remote,
      ],
      load: withServer(async () => (await import("./trigger-events.ts")).list),
    }),
    command({
      usage: "events emit <type>",
      summary: "Tell of an event; prints its id, and what it has started.",
      details: ["Example: troupe events emit file.arrived --set path=/srv/in/a.pdf --id a.pdf"],
      options: [
        option("--payload FILE", "JSON file with what has happened, 256 KiB at most; - reads stdin."),
        option("--set A.B=VALUE", "One value of the payload, merged over --payload; may be repeated."),
        option("--source SOURCE", "Where it has happened."),
        option("--id ID", "The event's id: the same one again has no effect."),
        ...remote,
      ],
      load: withServer(async () => (await import("./trigger-events.ts")).emit),
    }),
    command({
      usage: "events show <event-id>",
      summary: "Show one event: its payload, and what schedules have made of it by now.",
      options: remote,
      load: withServer(async () => (await import("./trigger-events.ts")).show),
    }),
  ],
};
