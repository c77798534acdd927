// The resources of the machines, and their limits: GET, POST and PUT /resource, in both APIs.

import type { FastifyRequest } from "fastify";
import { type NodeResources, totalsShown } from "../../cluster/nodes.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { MachineTotals, MachineUse, Reserved } from "../../execution/machine-resources.ts";
import type { RemoveVolume } from "../../execution/volume-removal.ts";
import { GPU_INDEX_MAX, limitsShown } from "../../resources/limits.ts";
import type { StoredLimits } from "../../resources/records.ts";
import { nodesWithResources, type Resources } from "../../resources/resources.ts";
import { etagOf, knowsCurrent, notModified, stale } from "../core/etag.ts";
import type { JsonBody } from "../core/json-body.ts";
import { get, post, put, remove } from "../core/route.ts";
import { readBody } from "../core/runtime-query.ts";
import { Type } from "../core/type.ts";
import type { Api } from "./api.ts";
import { sendJson } from "./lists.ts";
import type { NodesParts } from "./nodes.ts";
import { idempotencyKeyHeader, ifNoneMatchHeader } from "./schemas.ts";

const percentage = (of: string) =>
  Type.Number(`Percent of ${of} of each machine.`, { minimum: 1, maximum: 100 });
const amount = (of: string) => Type.Integer(`Bytes of ${of} of each machine.`, { minimum: 1 });
const GpuIndices = Type.Array(
  Type.Integer({ minimum: 0, maximum: GPU_INDEX_MAX }),
  "The GPUs of each machine that commands may have; none: [].",
  { uniqueItems: true },
);

const limits = {
  cpu_percent: percentage("the cores"),
  memory_percent: percentage("the memory"),
  memory_bytes: amount("the memory"),
  disk_percent: percentage("the disk"),
  disk_bytes: amount("the disk"),
  gpu_indices: GpuIndices,
};

const LimitsSchema = Type.Object(
  {
    cpu_percent: Type.Optional(limits.cpu_percent),
    memory_percent: Type.Optional(limits.memory_percent),
    memory_bytes: Type.Optional(limits.memory_bytes),
    disk_percent: Type.Optional(limits.disk_percent),
    disk_bytes: Type.Optional(limits.disk_bytes),
    gpu_indices: Type.Optional(limits.gpu_indices),
  },
  "What of each machine commands may have. What has no limit is left out, and may be had whole.",
);

const LimitsInput = Type.Input({
  cpu_percent: Type.Nullable(limits.cpu_percent),
  memory_percent: Type.Nullable(limits.memory_percent),
  memory_bytes: Type.Nullable(limits.memory_bytes),
  disk_percent: Type.Nullable(limits.disk_percent),
  disk_bytes: Type.Nullable(limits.disk_bytes),
  gpu_indices: Type.Nullable(limits.gpu_indices),
});

const SetLimitsBody = Type.Input(
  { limits: LimitsInput },
  { required: ["limits"], examples: [{ limits: { cpu_percent: 80, memory_bytes: 8_589_934_592 } }] },
);

const TotalsSchema = Type.Object({
  cpu_cores: Type.Number(),
  memory_bytes: Type.Integer("Inside a container: what it may have."),
  disk_bytes: Type.Integer("Of the file system that holds SVC_HOME."),
  gpus: Type.Array(
    Type.Object({
      index: Type.Integer("On its machine."),
      name: Type.String({ examples: ["NVIDIA L4"] }),
      memory_bytes: Type.Integer(),
    }),
    "Those that nvidia-smi names.",
  ),
});

const use = { cpu_cores: Type.Number(), memory_bytes: Type.Integer(), disk_bytes: Type.Integer() };
const UseSchema = Type.Object(use, "What is used now, by whatever runs there.");

const ReservedSchema = Type.Object(
  {
    ...use,
    gpus: Type.Integer("How many."),
    ports: Type.Array(
      Type.Integer(),
      "Of one command each, on its machine; of all that is had by name the first thousand.",
    ),
    volumes: Type.Array(
      Type.Object({ name: Type.String(), read_only: Type.Boolean("Whether several may have it.") }),
      "That commands have.",
    ),
    devices: Type.Array(Type.String({ examples: ["/dev/ttyUSB0"] }), "Of one command each, on its machine."),
  },
  "What running commands have been given.",
);

const ofMachines = {
  totals: TotalsSchema,
  effective: TotalsSchema,
  reserved: ReservedSchema,
  used: UseSchema,
};

const ResourceSchema = Type.Object(
  {
    ...ofMachines,
    limits: LimitsSchema,
    nodes: Type.Array(
      Type.Object({
        node_id: Type.String(),
        name: Type.String(),
        ...ofMachines,
        volumes: Type.Array(Type.String(), "Folders in its SVC_HOME/volumes."),
      }),
      "The living nodes, by name; another one as of its last heartbeat.",
    ),
    revision: Type.Integer("Of the limits: each change adds one."),
  },
  "What the machines of all living nodes have together, and what of it commands may have.",
);

/** By the names that clients see. */
export const schemas = {
  Resource: ResourceSchema,
  ResourceTotals: TotalsSchema,
  ResourceUse: UseSchema,
  ResourceReserved: ReservedSchema,
  ResourceLimits: LimitsSchema,
  SetResourceLimits: SetLimitsBody,
};

export interface Parts extends NodesParts {
  readonly resources: Pick<Resources, "limits" | "change">;
  readonly removeVolume: RemoveVolume;
  /** Makes sure that what is used of this machine is as it is now. */
  readonly measureMachine: () => Promise<void>;
}

const ifMatch = {
  "if-match": Type.String(
    "The ETag that a GET answered; without it, the change is made whatever the limits are.",
  ),
};

export function routes(api: Api, parts: Parts): void {
  const { resources, removeVolume } = parts;
  const problems = ["precondition_failed", "validation_failed"] as const;

  api.add("system", [
    get("/resource", {
      operationId: "getResource",
      summary: "See the machines' resources and their limits",
      headers: ifNoneMatchHeader,
      answers: { 200: ResourceSchema, 304: Type.Null("The client has this answer already.") },
      async handle(request, reply) {
        const stored = await resources.limits();
        const body = await rendered(parts, stored);
        const etag = tagOf(stored, body);
        reply.header("etag", etag);
        return notModified(request, etag) ? reply.code(304).send() : sendJson(reply, body);
      },
    }),

    post("/resource", {
      operationId: "changeResourceLimits",
      summary: "Change some limits",
      description:
        "Limits that are not given stay as they are; null takes one back. They hold for each machine, from now on: what runs goes on.",
      headers: Type.Input({ ...idempotencyKeyHeader.properties, ...ifMatch }),
      body: SetLimitsBody,
      answers: { 200: ResourceSchema },
      problems,
      handle: (request, reply) => api.sendOnce(request, reply, () => changed(request, false)),
    }),

    remove("/resource/volumes/:volume", {
      operationId: "removeVolume",
      summary: "Remove a volume, with all that is in it",
      description:
        "On whatever node of a cluster it is. A command that asks for it later has an empty one. 409 conflict: its node does not run.",
      answers: { 204: Type.Null("The volume is gone.") },
      problems: ["volume_in_use", "conflict"],
      async handle(request, reply) {
        await removeVolume(request.params.volume);
        return reply.code(204).send();
      },
    }),

    put("/resource", {
      operationId: "setResourceLimits",
      summary: "Set all limits",
      description: "Limits that are not given are taken back. Otherwise as POST.",
      headers: Type.Input(ifMatch),
      body: SetLimitsBody,
      answers: { 200: ResourceSchema },
      problems,
      async handle(request, reply) {
        const { headers, body } = await changed(request, true);
        return sendJson(reply.headers(headers), body);
      },
    }),
  ]);

  async function changed(request: FastifyRequest, isWhole: boolean) {
    const { limits } = (
      api.name === "runtime" ? readBody(request.body as JsonBody) : request.body
    ) as JsonObject;
    const stored = await resources.change({
      limits,
      isWhole,
      requireCurrent: (before) => requireCurrent(request, before),
    });
    const body = await rendered(parts, stored);
    return { status: 200, headers: { etag: tagOf(stored, body) }, body };
  }
}

const versionOf = ({ revision }: StoredLimits) => ({ id: "resource", revision });
const tagOf = (stored: StoredLimits, body: string) => etagOf(versionOf(stored), body);

function requireCurrent(request: FastifyRequest, stored: StoredLimits): void {
  if (request.headers["if-match"] === undefined || knowsCurrent(request, versionOf(stored))) return;
  throw stale(tagOf(stored, ""));
}

/** The nodes, and together what they have. */
async function rendered(
  { nodes, measureMachine }: Parts,
  { limits, revision }: StoredLimits,
): Promise<string> {
  await measureMachine();
  const all = await nodesWithResources(nodes);
  return JSON.stringify({
    ...machinesShown(all.map(({ resources }) => resources)),
    limits: limitsShown(limits),
    nodes: all.map(({ nodeId, name, resources }) => ({
      node_id: nodeId,
      name,
      ...machinesShown([resources]),
      volumes: resources.volumes ?? [],
    })),
    revision,
  });
}

function machinesShown(machines: readonly NodeResources[]) {
  const reserved = machines.map((one) => one.reserved);
  const gpus = reserved.reduce((sum, one) => sum + one.gpus, 0);
  return {
    totals: totalsShown(together(machines.map(({ totals }) => totals))),
    effective: totalsShown(together(machines.map(({ effective }) => effective))),
    reserved: { ...useShown(reserved), gpus, ...namesShown(reserved) },
    used: useShown(machines.map(({ used }) => used)),
  };
}

function namesShown(reserved: readonly Reserved[]) {
  const claims = reserved.flatMap((one) => one.claims ?? []);
  const ports = claims.filter(({ kind }) => kind === "port").map(({ name }) => Number(name));
  const volumes = claims.filter(({ kind }) => kind === "volume");
  return {
    ports: [...new Set(ports)].sort((a, b) => a - b),
    volumes: volumes.map(({ name, isShared }) => ({ name, read_only: isShared })),
    devices: claims.filter(({ kind }) => kind === "device").map(({ name }) => name),
  };
}

function together(all: readonly MachineTotals[]): MachineTotals {
  return { ...sumOf(all), gpus: all.flatMap(({ gpus }) => gpus) };
}

function sumOf(all: readonly MachineUse[]): MachineUse {
  const sum = (value: (one: MachineUse) => number) => all.reduce((total, one) => total + value(one), 0);
  return {
    // Thousandths of cores, which would otherwise add up to something like 0.30000000000000004.
    cpuCores: Math.round(sum(({ cpuCores }) => cpuCores) * 1_000) / 1_000,
    memoryBytes: sum(({ memoryBytes }) => memoryBytes),
    diskBytes: sum(({ diskBytes }) => diskBytes),
  };
}

function useShown(all: readonly MachineUse[]) {
  const { cpuCores, memoryBytes, diskBytes } = sumOf(all);
  return { cpu_cores: cpuCores, memory_bytes: memoryBytes, disk_bytes: diskBytes };
}
