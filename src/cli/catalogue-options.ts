// What the entries of the catalogue share: options, and how a command that talks to a server is loaded.

import type { CommandSpec, OptionSpec } from "./command.ts";
import type { ServerCall } from "./session.ts";

/** @param usage as the help shows it: `--limit N`, or `--all` for a switch */
export function option(usage: string, help: string): OptionSpec {
  const [name = "", value = null] = usage.slice("--".length).split(" ");
  return { name, value, help };
}

/** @param spec.usage the command's name and its words, as the help shows them: `runs save <run-id> <folder>` */
export function command({
  usage,
  ...spec
}: Omit<CommandSpec, "name" | "words"> & { readonly usage: string }): CommandSpec {
  const [name = "", ...words] = usage.split(/ (?=[<[]|$)/);
  return { name, words, ...spec };
}

export const json = option("--json", "Print JSON, for programs.");
export const help = option("--help", "Show this help (also -h).");
export const url = option(
  "--url URL",
  "The gateway to talk to. Default: http://127.0.0.1:<SVC_API_PORT>/api/v1",
);

/** Of commands that talk to the gateway. */
export const remote = [url, json, help];
export const jsonLines: OptionSpec = { ...json, help: "Print one JSON object per line." };
export const streamed = [jsonLines, url, help];

const runtimeUrl =
  "The runtime API to talk to. Default: its socket in SVC_HOME if there is one, else http://127.0.0.1:<SVC_RUNTIME_API_PORT>/api/v1";
/** Of commands that talk to the runtime API. */
export const ofRuntime = [{ ...url, help: runtimeUrl }, json, help];

/** Of commands that take the ids of both. */
export const eitherUrl: OptionSpec = {
  ...url,
  help: "The API to talk to. Default: for run_… and job_… the gateway on SVC_API_PORT, else the runtime on SVC_RUNTIME_API_PORT.",
};
export const either = [eitherUrl, json, help];
export const eitherIds = ["Ids that begin with run_ or job_ are the gateway's, all others the runtime's."];

export const limit = option("--limit N", "How many at most. Default: 20.");
export const all = option("--all", "All of them.");
export const runtime = option("--runtime", "Those of the runtime API; --url is then its address.");
export const input = option("--input FILE", "JSON file with the body for the entrypoints; - reads stdin.");
export const config = option(
  "--config FILE",
  "JSON file that is merged over the bundle's configuration; - reads stdin.",
);
export const name = option("--name NAME", "The job's display name.");
export const watch = option("--watch", "Follow the run to its end (the default); --no-watch only starts it.");
export const save = option("--save FOLDER", "Copy the run's outputs into a folder.");
export const forceSave = option(
  "--force",
  "Save into a folder that is not empty; files of the same names are replaced.",
);
export const follow = option("--follow", "Wait for more until the run ends.");

export const runExitCodes =
  "Exit code: 0 completed, 1 failed, 13 cancelled, 130 Ctrl-C while waiting (the run continues).";

/** Loads a command that talks to a server. */
export const withServer =
  (load: () => Promise<(call: ServerCall) => Promise<number>>): CommandSpec["load"] =>
  async () => {
    const [session, work] = await Promise.all([import("./session.ts"), load()]);
    return (call) => session.withServer(call, work);
  };
