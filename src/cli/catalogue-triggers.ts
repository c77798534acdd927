// The commands about trigger events: what has happened, and the schedules that react to it.

import { all, command, limit, option, remote, withServer } from "./catalogue-options.ts";
import type { CommandGroup } from "./command.ts";

export const triggers: CommandGroup = {
  name: "triggers",
  summary: "Tell of events, to which schedules react (schedules create --on TYPE).",
  commands: [
    command({
      usage: "triggers list",
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
      usage: "triggers emit <type>",
      summary: "Tell of an event; prints its id, and what it has started.",
      details: ["Example: troupe triggers emit file.arrived --set path=/srv/in/a.pdf --id a.pdf"],
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
      usage: "triggers show <event-id>",
      summary: "Show one event: its payload, and what schedules have made of it by now.",
      options: remote,
      load: withServer(async () => (await import("./trigger-events.ts")).show),
    }),
  ],
};
