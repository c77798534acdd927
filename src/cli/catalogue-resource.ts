// The commands about the machines' resources and their limits.

import { command, operated, option, remote, withOperated, withServer } from "./catalogue-options.ts";
import type { CommandGroup } from "./command.ts";

export const resource: CommandGroup = {
  name: "resource",
  summary: "See what the machines have, and limit what commands may have of it.",
  commands: [
    command({
      usage: "resource show",
      summary: "Show what each machine has, what of it commands may have, what is reserved and what is used.",
      options: operated,
      load: withOperated(async () => (await import("./resource.ts")).show),
    }),
    command({
      usage: "resource set",
      summary: "Change limits, which hold for each machine of the cluster; prints what they leave.",
      details: ["An amount is 512MiB, 1.5GiB or a number of bytes; none takes a limit back."],
      options: [
        option("--cpu PERCENT", "Of the cores, such as 80%."),
        option("--memory PERCENT|AMOUNT", "Of the memory."),
        option("--disk PERCENT|AMOUNT", "Of the disk that holds SVC_HOME."),
        option("--gpus INDICES", "The GPUs that commands may have, such as 0,1; all or none of them."),
        option("--only", "Take back all limits that are not given."),
        ...operated,
      ],
      load: withOperated(async () => (await import("./resource.ts")).set),
    }),
    command({
      usage: "resource remove-volume <volume>",
      summary: "Remove a volume of the node that answers, with all that is in it.",
      options: remote,
      load: withServer(async () => (await import("./resource.ts")).removeVolume),
    }),
  ],
};
