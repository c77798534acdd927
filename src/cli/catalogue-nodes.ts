// The commands about the nodes of a cluster.

import {
  command,
  help,
  json,
  operated,
  option,
  remote,
  withOperated,
  withServer,
} from "./catalogue-options.ts";
import type { CommandGroup } from "./command.ts";

const wait = option("--wait", "Follow it to its end (the default); --no-wait only starts it.");
const deadline = option("--deadline SECONDS", "How long running attempts may go on. Default: 300.");

export const node: CommandGroup = {
  name: "node",
  summary:
    "List the nodes of the cluster, add and remove them; take one out of work, and back; make their certificates.",
  commands: [
    command({
      usage: "node list",
      summary: "List the nodes by name, and how busy each is; * is the one that answers.",
      options: operated,
      load: withOperated(async () => (await import("./nodes.ts")).list),
    }),
    command({
      usage: "node add <name>",
      summary: "Expect a node: prints the token with which a program joins, once, within an hour.",
      details: ["The program is an empty one that runs on its own: `troupe node join` makes it this node."],
      options: [option("--label NAME=VALUE", "A label of the node; may be repeated."), ...remote],
      load: withServer(async () => (await import("./node-changes.ts")).add),
    }),
    command({
      usage: "node join",
      summary: "Make the program that answers, whose SVC_HOME is empty, the node that a token is for.",
      details: [
        "The program starts again in its process. What it has learnt is in cluster.json in SVC_HOME.",
      ],
      options: [
        option("--token TOKEN", "What `troupe node add` has printed."),
        option("--cluster HOST:PORT", "A node of the cluster, which tells the program its database."),
        option("--database URL", "The cluster's database, which tells the program its nodes."),
        option("--name NAME", "Another name than the node was added with."),
        option("--address HOST:PORT", "Where other nodes are to reach it, as SVC_NODE_ADDRESS."),
        wait,
        ...remote,
      ],
      load: withServer(async () => (await import("./node-changes.ts")).join),
    }),
    command({
      usage: "node remove <node>",
      summary: "Drain a node, end its program, and do not let it in again.",
      details: ["`troupe node undrain <node>` takes it back while it goes on."],
      options: [
        option("--force", "Do not drain it: other nodes take its jobs over as those of a lost node."),
        deadline,
        wait,
        ...remote,
      ],
      load: withServer(async () => (await import("./node-changes.ts")).remove),
    }),
    command({
      usage: "node leave",
      summary: "Drain the node that answers, and end its program; it may be started again.",
      details: ["`troupe node undrain <node>` takes it back while it goes on."],
      options: [deadline, wait, ...remote],
      load: withServer(async () => (await import("./node-changes.ts")).leave),
    }),
    command({
      usage: "node drain <node>",
      summary: "Take a node out of work: its jobs go to other nodes.",
      details: [
        "Running attempts may end until the deadline; then they are ended, and made again elsewhere.",
        "It returns at once; `troupe node status <node>` shows how far the node is.",
      ],
      options: [
        deadline,
        option(
          "--services-last",
          "Let services stay until no other job is left (the default); --no-services-last has them go at once.",
        ),
        ...operated,
      ],
      load: withOperated(async () => (await import("./node-drain.ts")).drain),
    }),
    command({
      usage: "node undrain <node>",
      summary: "Let a drained node work again.",
      options: operated,
      load: withOperated(async () => (await import("./node-drain.ts")).undrain),
    }),
    command({
      usage: "node maintenance <node> <on|off>",
      summary: "Keep a node without work, also when its program starts again.",
      details: [
        "A node whose maintenance begins is drained within 300 seconds, if it was not drained before.",
      ],
      options: [option("--reason TEXT", "Why, for people."), ...operated],
      load: withOperated(async () => (await import("./node-drain.ts")).maintenance),
    }),
    command({
      usage: "node status <node>",
      summary: "Show how far a node is drained.",
      options: operated,
      load: withOperated(async () => (await import("./node-drain.ts")).status),
    }),
    command({
      usage: "node reconcile <node>",
      summary: "Compare a node's processes, workspaces, ports and services with its jobs.",
      details: [
        "What is in use, or begins, is never touched. Exit code: 0 when nothing differs or all of it was fixed, else 1.",
      ],
      options: [option("--fix", "Fix what differs."), ...operated],
      load: withOperated(async () => (await import("./node-reconcile.ts")).reconcile),
    }),
    command({
      usage: "node certificates <folder>",
      summary: "Make the certificates that nodes on several machines need, here, without a server.",
      details: [
        "The folder gets an authority (ca.pem, ca.key) unless it has one, valid for ten years, and NAME.pem and NAME.key of each",
        "node, valid for two. No file is replaced: to renew a certificate, move its two files away first.",
      ],
      options: [
        option(
          "--node NAME=HOST",
          "A node, and the host of its SVC_NODE_ADDRESS; further hosts behind commas. May be given several times.",
        ),
        json,
        help,
      ],
      load: async () => (await import("./node-certificates.ts")).certificates,
    }),
  ],
};
