// The commands about the console and who may see it.

import { command, limit, option, remote, withServer } from "./catalogue-options.ts";
import type { CommandGroup } from "./command.ts";

export const console: CommandGroup = {
  name: "console",
  summary: "Open the console in a browser; share a run; see and end sessions.",
  commands: [
    command({
      usage: "console open",
      summary: "Print the console's address; where a token is needed, with what signs one browser in.",
      options: remote,
      load: withServer(async () => (await import("./console.ts")).open),
    }),
    command({
      usage: "console share <run-id>",
      summary: "Print a link that shows one run to everybody who has it, and nothing else.",
      options: [option("--days N", "How long it is good. Default: 7."), ...remote],
      load: withServer(async () => (await import("./console.ts")).share),
    }),
    command({
      usage: "console sessions",
      summary: "List the browsers that have signed in, and the links that are good.",
      options: [limit, ...remote],
      load: withServer(async () => (await import("./console.ts")).sessions),
    }),
    command({
      usage: "console end <session>",
      summary: "End a session, or a link with the sessions that it has opened.",
      options: remote,
      load: withServer(async () => (await import("./console.ts")).end),
    }),
  ],
};
