// The commands about deployments: instances of services that are kept running and replaced.

import { all, command, limit, option, remote, withServer } from "./catalogue-options.ts";
import type { CommandGroup, CommandSpec } from "./command.ts";

const detach = option("--detach", "Print the id, and do not follow the rollout.");

export const deploy: CommandSpec = command({
  usage: "deploy <source>",
  summary: "Keep instances of a service running, or roll out a new version; follows the rollout.",
  details: [
    'SOURCE is the folder of a bundle, a zip of it, a manifest, or the id of a bundle or a blueprint; its graph has "type": "service".',
    "Ctrl-C ends the view; the rollout goes on. The exit code is 1 when it has failed or was rolled back.",
    "Example: troupe deploy ./search --count 3 --strategy canary",
  ],
  options: [
    option("--update DEPLOYMENT-ID", "Roll it out as a new version of this deployment."),
    option("--name NAME", "Display name. Default: the source."),
    option("--count N", "How many instances there are to be. Default: 1."),
    option("--config FILE", "JSON file that is laid over the source's configuration; - reads stdin."),
    option("--set A.B=VALUE", "One setting, merged over --config; may be repeated."),
    option("--strategy KIND", "rolling (the default), canary or blue_green."),
    option("--max-parallel N", "Instances beyond --count at a time. Default: 1."),
    option("--canaries N", "Instances of the new version that serve first. Default: 1."),
    option("--min-healthy SECONDS", "How long an instance is healthy before it serves. Default: 10."),
    option(
      "--healthy-deadline SECONDS",
      "An instance that is not healthy by then fails the rollout. Default: 300.",
    ),
    option(
      "--progress-deadline SECONDS",
      "So long without a further healthy instance fails it, too. Default: 600.",
    ),
    option("--drain SECONDS", "How long an old instance goes on once it is not found any more. Default: 10."),
    option("--auto-promote", "Go on behind the canaries or the second set without a promotion."),
    option(
      "--on-failure ACTION",
      "If the rollout fails: rollback to the version before (the default), or stay.",
    ),
    detach,
    ...remote,
  ],
  load: withServer(async () => (await import("./deployments.ts")).deploy),
});

export const deployments: CommandGroup = {
  name: "deployments",
  summary: "Instances of services that are kept running: what they do, and what becomes of a rollout.",
  commands: [
    command({
      usage: "deployments list",
      summary: "List the deployments, newest first.",
      options: [option("--status STATUS", "Only those in this status."), limit, all, ...remote],
      load: withServer(async () => (await import("./deployments.ts")).list),
    }),
    command({
      usage: "deployments show <deployment-id>",
      summary: "Show one deployment: its version, its instances, its last failure.",
      options: remote,
      load: withServer(async () => (await import("./deployments.ts")).show),
    }),
    command({
      usage: "deployments watch <deployment-id>",
      summary: "Follow a rollout until it is over, or waits for you.",
      options: remote,
      load: withServer(async () => (await import("./deployments.ts")).watch),
    }),
    command({
      usage: "deployments promote <deployment-id>",
      summary: "Let a rollout go on behind its canaries, or its second set.",
      options: remote,
      load: withServer(async () => (await import("./deployments.ts")).promote),
    }),
    command({
      usage: "deployments rollback <deployment-id>",
      summary: "Go back to the version before, or to any that is kept.",
      options: [
        option("--version N", "The version. Default: the last one before that had succeeded."),
        ...remote,
      ],
      load: withServer(async () => (await import("./deployments.ts")).rollback),
    }),
    command({
      usage: "deployments pause <deployment-id>",
      summary: "Stop a rollout between two steps.",
      options: remote,
      load: withServer(async () => (await import("./deployments.ts")).pause),
    }),
    command({
      usage: "deployments resume <deployment-id>",
      summary: "Let a paused rollout go on.",
      options: remote,
      load: withServer(async () => (await import("./deployments.ts")).resume),
    }),
    command({
      usage: "deployments fail <deployment-id>",
      summary: "Stop a rollout as failed.",
      options: [option("--rollback", "And go back to the version before."), ...remote],
      load: withServer(async () => (await import("./deployments.ts")).fail),
    }),
    command({
      usage: "deployments delete <deployment-id>",
      summary: "Delete a deployment: its instances are drained and stopped.",
      options: remote,
      load: withServer(async () => (await import("./deployments.ts")).remove),
    }),
  ],
};
