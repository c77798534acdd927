// What the entries of the catalogue share: options, and how a command that talks to a server is loaded.

import type { CommandSpec, OptionSpec } from "./command.ts";
import type { ServerCall } from "./session.ts";

export const json: OptionSpec = { name: "json", value: null, help: "Print JSON, for programs." };
export const help: OptionSpec = { name: "help", value: null, help: "Show this help (also -h)." };
export const url: OptionSpec = {
  name: "url",
  value: "URL",
  help: "The gateway to talk to. Default: http://127.0.0.1:<SVC_API_PORT>/api/v1",
};

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

export const limit: OptionSpec = { name: "limit", value: "N", help: "How many at most. Default: 20." };
export const all: OptionSpec = { name: "all", value: null, help: "All of them." };
export const runtime: OptionSpec = {
  name: "runtime",
  value: null,
  help: "Those of the runtime API; --url is then its address.",
};
export const input: OptionSpec = {
  name: "input",
  value: "FILE",
  help: "JSON file with the body for the entrypoints; - reads stdin.",
};
export const config: OptionSpec = {
  name: "config",
  value: "FILE",
  help: "JSON file that is laid over the bundle's configuration; - reads stdin.",
};
export const name: OptionSpec = { name: "name", value: "NAME", help: "The job's name, for people." };
export const watch: OptionSpec = {
  name: "watch",
  value: null,
  help: "Follow the run to its end, as it is; --no-watch only starts it.",
};
export const save: OptionSpec = {
  name: "save",
  value: "FOLDER",
  help: "Copy the run's outputs into a folder.",
};
export const forceSave: OptionSpec = {
  name: "force",
  value: null,
  help: "Save into a folder that is not empty; files of the same names are replaced.",
};
export const follow: OptionSpec = {
  name: "follow",
  value: null,
  help: "Wait for more until the run ends.",
};

export const runExitCodes =
  "Exit code: 0 completed, 1 failed, 13 cancelled, 130 Ctrl-C while waiting (the run goes on).";

/** Loads a command that talks to a server. */
export const withServer =
  (load: () => Promise<(call: ServerCall) => Promise<number>>): CommandSpec["load"] =>
  async () => {
    const [session, work] = await Promise.all([import("./session.ts"), load()]);
    return (call) => session.withServer(call, work);
  };
