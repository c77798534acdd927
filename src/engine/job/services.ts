// The services of a job in its history: that they were registered and deregistered. What their checks find out is the
// board's to report (service-port.ts).
//
// - A service begins and ends in the same cut as what it lives with: the job, or an attempt of its agent. Those of the
//   job outlive a restart; those of an attempt do not.
// - Every service that was registered is deregistered before the terminal event, once.
// - Between the two, and at no other time, the history says that it is passing or critical.
// - A graph without services pays one look at a boolean.

import type { GraphNode } from "../graph.ts";
import { portsByLabel } from "../resources.ts";
import { type ServiceSpec, serviceId } from "../service.ts";
import type { ServiceChange } from "../service-port.ts";
import type { Lease } from "../task-port.ts";
import { addEvent } from "./history.ts";
import type { AgentState, Job } from "./state.ts";

/** A new job: its own services are there from now on. */
export function jobStarted(job: Job): void {
  if (!job.hasServices) return;
  tellOpened(job);
  for (const service of job.graph.services) registered(job, null, service);
}

/** A job that was taken over: nothing new in its history, but this process has to look after it. */
export function jobTakenOver(job: Job): void {
  if (job.hasServices) tellOpened(job);
}

function tellOpened(job: Job): void {
  const { jobId, runId, graph, insert } = job;
  const { definitionId, bundleFingerprint, hasOwnPayload } = insert;
  job.draft.effects.services.push({
    kind: "job_opened",
    jobId,
    job: { jobId, runId, definitionId, bundleFingerprint, hasOwnPayload, graph },
  });
}

/** The job ends; those of its running attempts have been deregistered with them. */
export function jobEnded(job: Job): void {
  if (!job.hasServices) return;
  for (const service of job.graph.services) deregistered(job, null, service, "the job has ended");
  job.draft.effects.services.push({ kind: "job_closed", jobId: job.jobId });
}

/** An attempt of the agent's command begins. */
export function attemptBegan(job: Job, { node }: AgentState, lease: Lease | null): void {
  if (node.services.length === 0) return;
  const services = withPorts(node, lease);
  for (const service of services) registered(job, node.nodeId, service);
  job.draft.effects.services.push({
    kind: "agent_started",
    jobId: job.jobId,
    node: { ...node, services },
  });
}

/** The services at the ports that this attempt was given. */
function withPorts({ config, services }: GraphNode, lease: Lease | null): readonly ServiceSpec[] {
  if (config.kind !== "executor" || lease?.ports === undefined) return services;
  const ports = portsByLabel(config.ports, lease.ports);
  return services.map((service) => ({
    ...service,
    port: service.port ?? ports.get(service.portLabel ?? "") ?? null,
  }));
}

/** An attempt that had begun is over, for whatever reason. */
export function attemptEnded(job: Job, { node }: AgentState): void {
  for (const service of node.services)
    deregistered(job, node.nodeId, service, "the agent's command has ended");
}

/** @returns whether the service lives, and the change is in the history */
export function serviceChanged(job: Job, change: ServiceChange): boolean {
  const { type, agentId, serviceId: id, name, reason } = change;
  if (agentId !== null) {
    const index = job.graph.indexOf.get(agentId);
    if (index === undefined || job.agents[index]?.task?.state.kind !== "running") return false;
  }
  addEvent(job, type, agentId, { service_id: id, name, reason });
  return true;
}

function registered(job: Job, agentId: string | null, service: ServiceSpec): void {
  const { name, port, portLabel, address, publicUrl, tags } = service;
  addEvent(job, "service_registered", agentId, {
    service_id: serviceId(job.runId, agentId, service),
    name,
    ...(address !== null && { address }),
    port,
    ...(portLabel !== null && { port_label: portLabel }),
    public_url: publicUrl,
    tags,
  });
}

function deregistered(job: Job, agentId: string | null, service: ServiceSpec, reason: string): void {
  const { name } = service;
  addEvent(job, "service_deregistered", agentId, {
    service_id: serviceId(job.runId, agentId, service),
    name,
    reason,
  });
}
