// The thread of sandbox-networks.ts: the proxies of all sandboxes, so that their traffic takes nothing of the runtime's.

import type { LookupAddress } from "node:dns";
import { lookup as resolve } from "node:dns/promises";
import { parentPort } from "node:worker_threads";
import type { Clock } from "../../../engine/ports.ts";
import { AllowList } from "./allow-list.ts";
import type { Lookup } from "./exits.ts";
import { type ClientRoom, SandboxProxy } from "./proxy.ts";
import type { NetworkReport } from "./reports.ts";

export type ThreadCommand =
  | {
      readonly kind: "open";
      readonly id: number;
      readonly socketPath: string;
      readonly allow: readonly string[];
    }
  | { readonly kind: "close"; readonly id: number };

export type ThreadMessage =
  | { readonly kind: "opened"; readonly id: number; readonly problem: string | null }
  | { readonly kind: "closed"; readonly id: number }
  | { readonly kind: "report"; readonly id: number; readonly report: NetworkReport };

/** Two files each; a program may have some ten thousand. */
const CLIENTS_MAX = 4_096;

const port = parentPort!;
const proxies = new Map<number, SandboxProxy>();
const room: ClientRoom = { left: CLIENTS_MAX };

const clock: Pick<Clock, "steadyMs" | "after"> = {
  steadyMs: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Lookups that are under way, since each takes one of the few threads that Node has for them. */
const lookups = new Map<string, Promise<LookupAddress[]>>();

const lookup: Lookup = (name) => {
  const underWay = lookups.get(name);
  if (underWay !== undefined) return underWay;
  const found = resolve(name, { all: true, order: "verbatim" }).finally(() => lookups.delete(name));
  lookups.set(name, found);
  return found;
};

const tell = (message: ThreadMessage) => port.postMessage(message);

async function open({ id, socketPath, allow }: ThreadCommand & { kind: "open" }): Promise<void> {
  const report = (report: NetworkReport) => tell({ kind: "report", id, report });
  try {
    const parts = { socketPath, allow: new AllowList(allow), lookup, clock, room, report };
    proxies.set(id, await SandboxProxy.listen(parts));
    tell({ kind: "opened", id, problem: null });
  } catch (error) {
    tell({ kind: "opened", id, problem: (error as Error).message });
  }
}

async function close(id: number): Promise<void> {
  await proxies.get(id)?.close();
  proxies.delete(id);
  tell({ kind: "closed", id });
}

port.on("message", (command: ThreadCommand) => {
  switch (command.kind) {
    case "open":
      void open(command);
      return;
    case "close":
      void close(command.id);
      return;
    default:
      command satisfies never;
  }
});
