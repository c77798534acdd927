// The `troupe` command.

import { runCli } from "./cli/cli.ts";

// A launcher that cannot become this process stays beside it. A signal to the process that was started is meant for this
// one: left alone, it would hold the home and the ports.
if (process.channel !== undefined && process.channel !== null) {
  process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.channel.unref();
}

await runCli(process.argv.slice(2));
