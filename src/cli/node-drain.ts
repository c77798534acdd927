// `troupe node drain`, undrain, maintenance and status: takes a node of the cluster out of work, and tells how far it is.

import type { NodeDrain } from "../../sdk/src/index.ts";
import { printAnswer, UsageError } from "./command.ts";
import { nodeIdOf } from "./nodes.ts";
import { fieldLines } from "./record-text.ts";
import type { ServerCall } from "./session.ts";

export async function drain(call: ServerCall): Promise<number> {
  const deadline = call.text("deadline");
  const servicesLast = call.flag("services-last");
  const body = {
    ...(deadline !== null && { deadline_seconds: secondsOf(deadline) }),
    ...(servicesLast !== null && { services_last: servicesLast }),
  };
  return show(call, await call.client.system.drainNode(await nodeIdOf(call), body));
}

export async function undrain(call: ServerCall): Promise<number> {
  return show(call, await call.client.system.undrainNode(await nodeIdOf(call)));
}

export async function maintenance(call: ServerCall): Promise<number> {
  const state = call.words[1];
  if (state !== "on" && state !== "off") throw new UsageError(`Maintenance is on or off, not "${state}".`);
  const reason = call.text("reason");
  if (state === "off" && reason !== null) throw new UsageError("--reason is for maintenance that begins.");
  const body = { enabled: state === "on", ...(reason !== null && { reason }) };
  return show(call, await call.client.system.setMaintenance(await nodeIdOf(call), body));
}

export async function status(call: ServerCall): Promise<number> {
  return show(call, await call.client.system.nodeDrain(await nodeIdOf(call)));
}

export function secondsOf(text: string): number {
  const seconds = Number(text);
  if (text.trim() !== "" && Number.isSafeInteger(seconds) && seconds >= 0) return seconds;
  throw new UsageError("--deadline needs a whole number of seconds, 0 or more.");
}

function show(call: ServerCall, drain: NodeDrain): number {
  const { jobs_left: jobs, services_left: services } = drain;
  return printAnswer(call, drain, () =>
    fieldLines([
      ["node", drain.node_id],
      ["state", drain.state],
      ["reason", drain.reason],
      ["jobs left", services === 0 ? String(jobs) : `${jobs}, ${services} of them services`],
      ["attempts left", String(drain.tasks_left)],
      ["jobs moved", String(drain.moved)],
      ["deadline", drain.deadline_at],
    ]),
  );
}
