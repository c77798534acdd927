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
/** Of commands of operators, who may have the port of the runtime protocol only. */
export const operated = [
  url,
  option(
    "--address HOST:PORT",
    "The port of the runtime protocol (gRPC) to talk to, in place of the gateway.",
  ),
  option(
    "--token TOKEN",
    "With --address. Default: SVC_API_TOKEN, which other users of the machine cannot read.",
  ),
  option(
    "--client-cert FILE",
    "With --address, where SVC_TLS_CLIENT_CA is set: PEM of a certificate and its key.",
  ),
  json,
  help,
];
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
export const priority = option(
  "--priority PRIORITY",
  "low, normal (the default) or high: who goes first when several wait.",
);
export const weight = option(
  "--weight N",
  "Its part of slots that other jobs want, too: 1 (the default) to 100.",
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

/** The same for commands with the options `operated`. */
export const withOperated =
  (load: () => Promise<(call: ServerCall) => Promise<number>>): CommandSpec["load"] =>
  async () => {
    const modules = [import("./session.ts"), import("./connection.ts"), load()] as const;
    const [session, { operatedAddress: addressOf }, work] = await Promise.all(modules);
    return (call) => session.withServer(call, work, { addressOf });
  };

/** Commands that ask for one change of state. @param only the kind of id they take, in its group; any kind when absent */
export function steering(only?: "job" | "run"): readonly CommandSpec[] {
  const summaries = {
    job: {
      pause: "Pause every open run of a job; a command that runs may finish.",
      resume: "Resume every paused run of a job.",
      cancel: "Cancel every open run of a job; their commands are ended.",
    },
    run: {
      pause: "Pause a run; a command that runs may finish.",
      resume: "Resume a paused run.",
      cancel: "Cancel a run; its commands are ended.",
    },
    any: {
      pause: "Pause a run, or every open run of a job; a command that runs may finish.",
      resume: "Resume a paused run, or every paused run of a job.",
      cancel: "Cancel a run, or every open run of a job; their commands are ended.",
    },
  }[only ?? "any"];
  return (["pause", "resume", "cancel"] as const).map((action) => ({
    name: only === undefined ? action : `${only}s ${action}`,
    words: [only === undefined ? "<id>" : `<${only}-id>`],
    summary: summaries[action],
    ...(only === undefined && { details: eitherIds }),
    options: only === undefined ? either : remote,
    load: withServer(async () => (await import("./control.ts")).control(action, only)),
  }));
}

export const logDetails = [
  "A time is 30s, 10m, 2h or 3d, that long ago, or 2026-11-21T09:30:00Z.",
  "With --follow, it ends when the run does.",
];
export const logOptions: readonly OptionSpec[] = [
  option("--level LEVEL", "The least urgent to show: trace, debug, info, warn, error or fatal."),
  option("--agent AGENT", "Only of this agent."),
  option("--text TEXT", "Only messages with this text in them, in upper or lower case."),
  option("--since TIME", "Only what was logged at this time or later."),
  option("--until TIME", "Only what was logged before this time."),
  option("--tail N", "Only the newest N."),
  follow,
  ...streamed,
];
