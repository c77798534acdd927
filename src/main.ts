// The `troupe` command.

import { runCli } from "./cli/cli.ts";

await runCli(process.argv.slice(2));
