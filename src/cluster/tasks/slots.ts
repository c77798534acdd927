// The slots of the cluster, as the engine of one node sees them: its own pools, and those of other nodes.
//
// - Each node grants its own slots in its own order, by whatever node they are asked for (src/execution/pools.ts).
// - A request waits at one node. When another one has slots for which nothing waits, a request that fits is taken back and
//   made there: of the highest priority, and of the job whose turn it is (src/execution/turns.ts).
// - A request that no living node can ever grant waits for one that can, if the cluster has had such a node, or if it asks
//   for labels; else it is unsatisfiable.
// - A request that must stay ("here") is this node's alone.
// - A request for volumes goes to the node that has them, and waits for it while it is lost. Those that no node has are made
//   where the first command that asks for them is placed.
// - A request for resources of a machine goes to nodes that could hold it within their limits, and among these to one that
//   has them free, as far as is known: what their rows say, less what was asked for since.

import type { PlacementPolicy } from "../../engine/graph.ts";
import { hasLabels, type Labels, labelsText, noLabels } from "../../engine/labels.ts";
import { type Grant, type NodeNeeds, noNeeds, type Slots } from "../../engine/ports.ts";
import { type Amounts, type Demand, demandText, isThere } from "../../engine/resources.ts";
import { plainShare, priorities, type Share } from "../../engine/share.ts";
import type { Lease } from "../../engine/task-port.ts";
import { type Free, freeBehind, isFree, missingText } from "../../execution/allotment.ts";
import { hasDevices } from "../../execution/devices.ts";
import { Competition, Line, levelOf } from "../../execution/turns.ts";
import { type KnownMachine, type KnownNode, type KnownPool, mayHold } from "./known-nodes.ts";
import type { PeerSlots, TaskPeers } from "./peers.ts";
import { type Candidate, choose } from "./placement.ts";
import { VolumePlaces, type VolumePlacesParts } from "./volume-places.ts";

/** This node's slots and resources as they stand now. */
export interface OwnSlots extends Slots {
  readonly allowed: Amounts;
  /** The pools by their names. */
  snapshot(): Readonly<Record<string, unknown>>;
  spare(pool: string): KnownPool | null;
  spareResources(): Free;
  hasDevices(demand: Demand): boolean;
}

export interface ClusterSlotsParts extends VolumePlacesParts {
  readonly labels: Labels;
  readonly own: OwnSlots;
  readonly peers: Pick<TaskPeers, "know" | "request" | "release">;
  /** When nothing runs elsewhere any more, on the steady clock, that was begun before this node got its present name. */
  readonly formerEndMs: () => number;
}

type Where = PlacementPolicy | "here";

interface Request {
  readonly key: string;
  readonly pool: string;
  readonly slots: number;
  readonly placement: Where;
  readonly needs: NodeNeeds;
  readonly share: Share;
  readonly order: number;
  /** Where it waits, or has its slots; null while no node can grant it. */
  nodeId: string | null;
  /** Whether its node had so many free slots when it was asked: the grant is under way, if no other node was faster. */
  isExpected: boolean;
  /** What it waits for there beside slots. */
  hint: string | undefined;
  /** Whether it waits and may be moved. */
  isMovable: boolean;
  previous: Request | null;
  next: Request | null;
}

interface Estimate {
  capacity: number;
  /** Less than 0 when more was asked for than is free. */
  free: number;
}

interface Other {
  readonly isReady: boolean;
  readonly labels: Labels;
  readonly pools: ReadonlyMap<string, Estimate>;
  readonly machine: (KnownMachine & { free: Free }) | null;
}

export class ClusterSlots implements Slots, PeerSlots {
  onGranted: (key: string, lease: Lease) => void = () => {};
  readonly #parts: ClusterSlotsParts;
  readonly #requests = new Map<string, Request>();
  /** Those that may be moved, by pool: lines of the priorities, the highest first. */
  readonly #movable = new Map<string, readonly Line<Request>[]>();
  /** The other nodes, those that were asked longest ago first: they are chosen among equals. */
  readonly #nodes = new Map<string, Other>();
  readonly #volumes: VolumePlaces;

  #turns = 0;
  #orders = 0;

  constructor(parts: ClusterSlotsParts) {
    this.#parts = parts;
    this.#volumes = new VolumePlaces(parts);
  }

  request(
    key: string,
    pool: string,
    slots: number,
    placement: Where,
    needs: NodeNeeds = noNeeds,
    share: Share = plainShare(key),
  ): Grant {
    const known = this.#requests.get(key);
    if (known !== undefined) {
      const { own, nodeId } = this.#parts;
      return known.nodeId === nodeId
        ? own.request(key, pool, slots, "here", needs, share)
        : { kind: "queued" };
    }
    const request: Request = {
      ...{ key, pool, slots, placement, needs, share },
      order: ++this.#orders,
      nodeId: null,
      isExpected: false,
      hint: undefined,
      isMovable: false,
      previous: null,
      next: null,
    };
    if (known === undefined) {
      const reason = this.#volumes.refusal(needs, placement === "here");
      if (reason !== null) return { kind: "unsatisfiable", reason };
    }
    if (placement === "here") return this.#requestHere(request);
    const place = this.#place(request);
    if (place === null && !this.#mayCome(request)) return this.#requestHere(request);
    this.#requests.set(key, request);
    this.#setMovable(request, true);
    const lease = place === null ? null : this.#make(request, place);
    if (lease !== null) return { kind: "granted", lease };
    for (const nodeId of this.#nodes.keys()) this.#parts.peers.know(nodeId);
    if (place === null) return { kind: "queued", hint: hintOf(request, this.#volumes.nodeOf(needs)) };
    const { hint } = request;
    return hint === undefined ? { kind: "queued" } : { kind: "queued", hint };
  }

  #requestHere(request: Request): Grant {
    const { key, pool, slots, needs, share } = request;
    const grant = this.#parts.own.request(key, pool, slots, "here", needs, share);
    if (grant.kind !== "unsatisfiable") {
      const own: Request = { ...request, placement: "here", nodeId: this.#parts.nodeId };
      this.#requests.set(key, own);
      this.#volumes.note(own.needs, this.#parts.nodeId);
    }
    return grant;
  }

  /** What it will wait for at a node beside slots. */
  #hintAt(nodeId: string, { needs: { demand } }: Request): string | undefined {
    if (demand === null) return undefined;
    const free = this.#freeOf(nodeId);
    const missing = free === undefined ? null : missingText(demand, free);
    return missing === null ? undefined : `It waits for ${missing} of a machine.`;
  }

  release(key: string): void {
    const request = this.#requests.get(key);
    if (request === undefined) return;
    this.#requests.delete(key);
    this.#setMovable(request, false);
    this.#takeBack(request);
  }

  /** A node that ran it for an earlier owner has ended it soon after it lost that one. */
  endOfFormer({ node }: Lease): number {
    return node === undefined ? Number.NEGATIVE_INFINITY : this.#parts.formerEndMs();
  }

  /** The other nodes, with what is known of their pools. */
  nodesAre(nodes: readonly KnownNode[]): void {
    const turns = new Map(Array.from(this.#nodes.keys(), (nodeId, turn) => [nodeId, turn]));
    const turnOf = ({ nodeId }: KnownNode) => turns.get(nodeId) ?? turns.size;
    this.#nodes.clear();
    this.#volumes.rowsAre(nodes);
    for (const { needs, nodeId } of this.#requests.values())
      if (nodeId !== null) this.#volumes.note(needs, nodeId);
    for (const { nodeId, isReady, labels, pools, machine } of [...nodes].sort(
      (a, b) => turnOf(a) - turnOf(b),
    )) {
      const estimates = Object.entries(pools).map(([name, pool]) => [name, { ...pool }] as const);
      const resources = machine === null ? null : { ...machine };
      this.#nodes.set(nodeId, { isReady, labels, pools: new Map(estimates), machine: resources });
    }
    for (const request of this.#requests.values()) request.isExpected = false;
    for (const [nodeId, { pools }] of this.#nodes) for (const pool of pools.keys()) this.#fill(nodeId, pool);
    // Resources of this machine may be free without slots of the same pool having become free.
    for (const pool of this.#movable.keys()) this.#fill(this.#parts.nodeId, pool);
  }

  /** Slots of this node's own pool are free, and nothing waits for them. */
  ownFree(pool: string): void {
    this.#fill(this.#parts.nodeId, pool);
  }

  /** A request was granted by the node at which it waits. */
  granted(key: string, lease: Lease): void {
    const request = this.#requests.get(key);
    if (request === undefined) return;
    this.#setMovable(request, false);
    this.onGranted(key, lease);
  }

  /** The node's pools are others than it was known to have. */
  refused(nodeId: string, key: string): void {
    const request = this.#requests.get(key);
    if (request?.nodeId !== nodeId) return;
    const node = this.#nodes.get(nodeId);
    const pool = node?.pools.get(request.pool);
    if (pool !== undefined && request.needs.demand === null) pool.capacity = 0;
    // It may have the slots: until its row is read again, it is asked for no resources.
    if (node !== undefined && request.needs.demand !== null)
      this.#nodes.set(nodeId, { ...node, machine: null });
    this.#again(request);
  }

  free(nodeId: string, pools: Readonly<Record<string, number>>): void {
    for (const [name, free] of Object.entries(pools)) {
      const pool = this.#poolAt(nodeId, name);
      if (pool === undefined) continue;
      pool.free = free;
      this.#fill(nodeId, name);
    }
  }

  lost(nodeId: string, keys: readonly string[]): void {
    for (const pool of this.#nodes.get(nodeId)?.pools.values() ?? []) pool.free = 0;
    for (const key of keys) {
      const request = this.#requests.get(key);
      if (request?.nodeId === nodeId) this.#again(request);
    }
  }

  /** Places a request anew that waits at its node no more. */
  #again(request: Request): void {
    request.nodeId = null;
    const place = this.#place(request);
    const lease = place === null ? null : this.#make(request, place);
    if (lease !== null) this.onGranted(request.key, lease);
  }

  /** Makes the request at a node. @returns its lease, when it is granted at once */
  #make(request: Request, nodeId: string): Lease | null {
    const { key, pool, slots, needs, share } = request;
    const { demand } = needs;
    request.nodeId = nodeId;
    this.#volumes.note(needs, nodeId);
    if (nodeId !== this.#parts.nodeId) {
      request.hint = this.#hintAt(nodeId, request);
      const node = this.#nodes.get(nodeId);
      if (node !== undefined) {
        this.#nodes.delete(nodeId);
        this.#nodes.set(nodeId, node);
      }
      const known = node?.pools.get(pool);
      request.isExpected = known !== undefined && known.free >= slots && this.#hasResources(nodeId, request);
      if (known !== undefined) known.free -= slots;
      if (node?.machine != null && demand !== null)
        node.machine.free = freeBehind(node.machine.free, demand, 1);
      this.#parts.peers.request(nodeId, key, { pool, slots, demand, share });
      return null;
    }
    request.isExpected = false;
    const grant = this.#parts.own.request(key, pool, slots, "here", needs, share);
    request.hint = grant.kind === "queued" ? grant.hint : undefined;
    if (grant.kind !== "granted") return null;
    this.#setMovable(request, false);
    return grant.lease;
  }

  #takeBack({ nodeId, key }: Request): void {
    if (nodeId === this.#parts.nodeId) this.#parts.own.release(key);
    else if (nodeId !== null) this.#parts.peers.release(nodeId, key);
  }

  /** Takes requests that wait elsewhere to a node that has slots for which nothing waits. */
  #fill(nodeId: string, pool: string): void {
    let free = this.#freeAt(nodeId, pool);
    for (const line of this.#movable.get(pool) ?? []) {
      while (free > 0) {
        const request = line.find((one) => this.#canMove(one, nodeId));
        if (request === null) break;
        if (request.slots > free) return;
        line.charge(request);
        this.#takeBack(request);
        const lease = this.#make(request, nodeId);
        if (lease !== null) this.onGranted(request.key, lease);
        free = this.#freeAt(nodeId, pool);
      }
    }
  }

  #canMove(request: Request, nodeId: string): boolean {
    if (request.nodeId === nodeId || request.isExpected) return false;
    return this.#hasResources(nodeId, request) && this.#couldHold(nodeId, request);
  }

  #freeAt(nodeId: string, pool: string): number {
    if (nodeId === this.#parts.nodeId) return this.#parts.own.spare(pool)?.free ?? 0;
    return this.#nodes.get(nodeId)?.isReady === true ? (this.#poolAt(nodeId, pool)?.free ?? 0) : 0;
  }

  #poolAt(nodeId: string, pool: string): Estimate | undefined {
    return this.#nodes.get(nodeId)?.pools.get(pool);
  }

  /** Whether the node has the labels that the request asks for, and its machine so much in all. */
  #couldHold(nodeId: string, { needs }: Request): boolean {
    const { nodeLabels, demand } = needs;
    const { own, labels, nodeId: ownId } = this.#parts;
    const isOwn = nodeId === ownId;
    const node = this.#nodes.get(nodeId);
    if (!hasLabels((isOwn ? labels : node?.labels) ?? noLabels, nodeLabels)) return false;
    if (demand === null) return true;
    const allowed = isOwn ? own.allowed : node?.machine?.allowed;
    if (!isOwn && demand.named !== undefined && node?.machine?.givesNames !== true) return false;
    const volumeNode = this.#volumes.nodeOf(needs);
    if (volumeNode !== null && volumeNode !== nodeId) return false;
    const { devices = [] } = node?.machine ?? {};
    if (!(isOwn ? own.hasDevices(demand) : hasDevices(demand, (path) => devices.includes(path))))
      return false;
    return allowed !== undefined && isThere(demand, allowed);
  }

  /** Whether what the request asks for beside slots is free there, as far as is known. */
  #hasResources(nodeId: string, { needs: { demand } }: Request): boolean {
    if (demand === null) return true;
    const free = this.#freeOf(nodeId);
    return free !== undefined && isFree(demand, free);
  }

  /** What is free of a machine. */
  #freeOf(nodeId: string): Free | undefined {
    const { own, nodeId: ownId } = this.#parts;
    return nodeId === ownId ? own.spareResources() : this.#nodes.get(nodeId)?.machine?.free;
  }

  /** @returns null when no node that is ready has the labels, and so many slots and resources in all */
  #place(request: Request): string | null {
    const { pool, slots, placement } = request;
    const { nodeId } = this.#parts;
    const own = this.#parts.own.spare(pool);
    const candidates: Candidate[] = [];
    if (own !== null && own.capacity >= slots && this.#couldHold(nodeId, request)) {
      candidates.push({ nodeId, isOwn: true, ...own, hasResources: this.#hasResources(nodeId, request) });
    }
    for (const [other, { isReady, pools }] of this.#nodes) {
      const known = pools.get(pool);
      if (!isReady || known === undefined || known.capacity < slots || !this.#couldHold(other, request))
        continue;
      const hasResources = this.#hasResources(other, request);
      candidates.push({ nodeId: other, isOwn: false, ...known, hasResources });
    }
    const [first, ...others] = candidates;
    if (first === undefined || placement === "here") return null;
    return choose(placement, slots, [first, ...others]).nodeId;
  }

  /** A node with the labels may join at any time, a known one may be ready again, and limits may be raised. */
  #mayCome({ pool, slots, needs }: Request): boolean {
    const { nodeLabels, demand } = needs;
    if (Object.keys(nodeLabels).length > 0) return true;
    const volumeNode = this.#volumes.nodeOf(needs);
    if (volumeNode !== null) return volumeNode !== this.#parts.nodeId;
    return [...this.#nodes.values()].some(
      ({ pools, machine }) =>
        (pools.get(pool)?.capacity ?? 0) >= slots &&
        (demand === null || (machine !== null && mayHold(machine, demand))),
    );
  }

  #setMovable(request: Request, isMovable: boolean): void {
    if (request.isMovable === isMovable) return;
    request.isMovable = isMovable;
    const { pool, share } = request;
    let lines = this.#movable.get(pool);
    if (lines === undefined) {
      const competition = (level: number) => new Competition(level, () => ++this.#turns);
      lines = priorities.map((_, level) => new Line<Request>(competition(level))).reverse();
      this.#movable.set(pool, lines);
    }
    const line = lines.at(-1 - levelOf(share))!;
    if (isMovable) line.add(request);
    else line.remove(request);
  }
}

function hintOf({ pool, slots, needs: { nodeLabels, demand } }: Request, volumeNode: string | null): string {
  const what = `${slots === 1 ? "a slot" : `${slots} slots`} of pool "${pool}"`;
  const where = Object.keys(nodeLabels).length === 0 ? "" : ` and ${labelsText(nodeLabels)}`;
  const which = demand === null ? "" : ` and ${demandText(demand)} for commands`;
  if (volumeNode !== null)
    return `The node ${volumeNode}, which has the volume, is not ready or has not ${what}${where}${which}. It waits for that.`;
  return `No node that is ready has ${what}${where}${which}. It waits for one that has.`;
}
