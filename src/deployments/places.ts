// On which node an instance runs. What offers services runs on the node that launches its run, so the run is given to a node
// when it is written: the one with the fewest instances among those that have room, as far as their rows tell.

import type { NodeRecord } from "../cluster/nodes.ts";
import { type KnownNode, knownNode } from "../cluster/tasks/known-nodes.ts";
import { type ExecutorConfig, type Graph, staysWithJob } from "../engine/graph.ts";
import { hasLabels } from "../engine/labels.ts";
import { type Amounts, isThere, resourceKinds } from "../engine/resources.ts";
import { hasDevices } from "../execution/devices.ts";
import { isLive } from "./health.ts";
import type { Instance } from "./records.ts";
import type { NewInstance } from "./rollout.ts";

/** A node that could hold an instance. */
export interface Place {
  /** The name under which the node takes work on. */
  readonly owner: string;
  /** Its name. */
  readonly node: string;
  /** host:port at which other nodes reach it; null: nowhere. */
  readonly address: string | null;
  /** How many instances it has free slots and resources for. */
  readonly room: number;
}

export interface PlacedInstance extends NewInstance {
  /** Null: on this node. */
  readonly place: Place | null;
}

/** The nodes that could hold all commands of a graph that run on the node of their job. */
export function placesFor(graph: Graph, nodes: readonly NodeRecord[]): readonly Place[] {
  const commands = graph.nodes.flatMap((node) =>
    node.config.kind === "executor" && staysWithJob(graph, node) ? [node.config] : [],
  );
  const known = nodes.map((record) => ({ record, ...knownNode(record) }));
  const volumes = new Set(commands.flatMap((command) => command.volumes.map(({ name }) => name)));
  const hasAll = ({ volumes: own = [] }: KnownNode, names: readonly string[]) =>
    names.every((name) => own.includes(name));
  const made = [...volumes].filter((name) => known.some((node) => node.volumes?.includes(name)));
  return known
    .filter((node) => node.isReady && hasAll(node, made))
    .flatMap((node) => {
      const room = roomFor(commands, node);
      const { owner, name, address } = node.record;
      return room === null ? [] : [{ owner, node: name, address, room }];
    });
}

/** How many times the commands fit beside what runs there; null: the node could never hold them. */
function roomFor(commands: readonly ExecutorConfig[], node: KnownNode): number | null {
  const { pools, machine, labels } = node;
  const slots = new Map<string, number>();
  const amounts = { cpuMillis: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 };
  for (const { pool, poolSlots, nodeLabels, demand } of commands) {
    if (!hasLabels(labels, nodeLabels)) return null;
    slots.set(pool, (slots.get(pool) ?? 0) + poolSlots);
    if (demand === null) continue;
    if (machine === null || (demand.named !== undefined && !machine.givesNames)) return null;
    if (!hasDevices(demand, (path) => machine.devices?.includes(path) === true)) return null;
    for (const { name } of resourceKinds) amounts[name] += demand[name];
  }
  const rooms: number[] = [];
  for (const [pool, asked] of slots) {
    const { capacity = 0, free = 0 } = pools[pool] ?? {};
    if (capacity < asked) return null;
    rooms.push(free / asked);
  }
  if (machine !== null) {
    if (!isThere(amounts, machine.allowed)) return null;
    rooms.push(...sharesOf(amounts, machine.free.amounts));
  }
  return Math.max(0, Math.floor(Math.min(...rooms)));
}

const sharesOf = (asked: Amounts, free: Amounts) =>
  resourceKinds.flatMap(({ name }) => (asked[name] === 0 ? [] : [free[name] / asked[name]]));

/**
 * Chooses a node for each instance: of those with room, or else of all, the one with the fewest instances of its version, then
 * with the fewest of any, then with the most room.
 *
 * @param places by version
 */
export function placed<Start extends NewInstance>(
  starts: readonly Start[],
  instances: readonly Instance[],
  places: ReadonlyMap<number, readonly Place[]>,
): readonly (Start & PlacedInstance)[] {
  const all = new Counts();
  const ofVersion = new Counts();
  const chosen = new Counts();
  for (const { node, version } of instances.filter(isLive)) {
    all.add(node);
    ofVersion.add(`${version} ${node}`);
  }
  return starts.map((start) => {
    const rankOf = ({ node, room }: Place) => {
      const left = room - chosen.of(node);
      return [left > 0 ? 0 : 1, ofVersion.of(`${start.version} ${node}`), all.of(node), -left];
    };
    let best: { readonly place: Place; readonly rank: readonly number[] } | null = null;
    for (const place of places.get(start.version) ?? []) {
      const rank = rankOf(place);
      if (best === null || isBefore(rank, best.rank)) best = { place, rank };
    }
    const place = best?.place ?? null;
    if (place !== null) {
      chosen.add(place.node);
      all.add(place.node);
      ofVersion.add(`${start.version} ${place.node}`);
    }
    return { ...start, place };
  });
}

class Counts {
  readonly #counts = new Map<string | null, number>();

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  add(key: string | null): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }
}

function isBefore(a: readonly number[], b: readonly number[]): boolean {
  const differs = a.findIndex((one, i) => one !== b[i]);
  return differs >= 0 && a[differs]! < b[differs]!;
}
