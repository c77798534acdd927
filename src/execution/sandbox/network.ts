// The network of a sandbox: the proxy's socket that it is given, and what the run's history says of its connections.

import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxPolicy } from "../../engine/sandbox.ts";
import type { TaskStart } from "../../engine/task-port.ts";
import { OpenFolder } from "../../lib/open-folder.ts";
import { logEvent } from "../output/event-stream.ts";
import { AttemptFailure, type AttemptReport } from "../runner/attempt.ts";
import { folder as folderInside, readOnly, type Shown, type Words, writable } from "./mounts.ts";
import { AllowList, allowListProblems } from "./network/allow-list.ts";
import { destinationText } from "./network/hosts.ts";
import { proxyVariables, relayFile, withRelay } from "./network/relay-words.ts";
import type { NetworkReport } from "./network/reports.ts";
import type { SandboxNetworks } from "./network/sandbox-networks.ts";
import { inside } from "./places.ts";

export interface NetworkOfSandbox extends AsyncDisposable {
  readonly mounts: readonly Shown[];
  /** For the worker, unless its node says otherwise. */
  readonly variables: Readonly<Record<string, string>>;
  wrap: (command: { readonly file: string; readonly args: Words }) => {
    readonly file: string;
    readonly args: Words;
  };
}

export interface NetworkAsked {
  readonly task: TaskStart;
  readonly policy: SandboxPolicy;
  readonly report: AttemptReport;
}

/**
 * Opens the door to the hosts that a policy allows.
 *
 * @param folder closed to everybody else, and empty when the runtime starts
 * @throws AttemptFailure; Error when the socket cannot be made
 */
export async function openNetwork(
  networks: Pick<SandboxNetworks, "open">,
  folder: string,
  { task: { ref, sandboxName }, policy: { network }, report }: NetworkAsked,
): Promise<NetworkOfSandbox> {
  // The manifest has looked at how they are written, and not whether an IPv6 address is one.
  const [problem] = allowListProblems(network.allow);
  if (problem !== undefined) {
    const entry = JSON.stringify(network.allow[problem.index]);
    throw new AttemptFailure(
      "sandbox.policy_invalid",
      `${entry} in network.allow is no host: ${problem.message}`,
    );
  }
  const name = `${sandboxName}-${ref.jobId}`.replaceAll(/[^\w.-]/g, "_").slice(-100);
  await using open = new AsyncDisposableStack();
  // By an open folder, because the path of a socket must be short.
  const opened = open.use(OpenFolder.open(folder));
  open.defer(() => rm(join(folder, name), { force: true }));
  const door = await networks.open({
    socketPath: opened.path(name),
    allow: network.allow,
    onReport: (one) => report.events(eventsOf(one, ref.attempt)),
    onLost: (reason) => report.events([logEvent("error", "worker", reason, ref.attempt)]),
  });
  open.defer(() => door.close());
  const hosts = network.check ? new AllowList(network.allow).destinations().map(destinationText) : [];
  const kept = open.move();
  return {
    mounts: [
      folderInside("/sandbox/network"),
      readOnly(relayFile, inside.relay),
      writable(join(folder, name), inside.socket),
    ],
    variables: proxyVariables(network.allow),
    wrap: (command) => withRelay(command, inside, hosts),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

function eventsOf(report: NetworkReport, attempt: number) {
  const { kind, ...fields } = report;
  switch (kind) {
    // Its end says all of it.
    case "opened":
      return [];
    case "closed":
      return [{ type: "sandbox_connection", payload: { attempt, ...fields } }];
    case "denied":
      return [{ type: "sandbox_network_denied", payload: { attempt, ...fields } }];
    case "totals": {
      const { unreported = 0 } = report as Extract<NetworkReport, { kind: "totals" }>;
      const text = `${unreported} more connections, or refusals of them, are not in the history.`;
      return unreported === 0 ? [] : [logEvent("warn", "worker", text, attempt)];
    }
    default:
      return kind satisfies never;
  }
}
