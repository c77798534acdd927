// The commands about the nodes of a cluster.

import { drainCommands } from "./catalogue-node-drain.ts";
import { command, remote, withServer } from "./catalogue-options.ts";
import type { CommandGroup } from "./command.ts";

export const node: CommandGroup = {
  name: "node",
  summary: "List the nodes of the cluster; take one out of work, and back.",
  commands: [
    command({
      usage: "node list",
      summary: "List the nodes by name, and how busy each is; * is the one that answers.",
      options: remote,
      load: withServer(async () => (await import("./nodes.ts")).list),
    }),
    ...drainCommands,
  ],
};
