// Edges compiled into what a message needs on its way: who receives it, and which aggregator comes first.

import { limits } from "../limits.ts";
import type { Fields } from "./fields.ts";
import { quoted } from "./problems.ts";

/** The receivers of what one node emits, each list in the order of its edges. */
export interface Routes {
  readonly toAll: readonly number[];
  readonly toByType: ReadonlyMap<string, readonly number[]>;
}

interface GrowingRoutes extends Routes {
  toAll: number[];
  toByType: Map<string, number[]>;
}

/** Shared by the many nodes that nothing leaves. */
const noRoutes: Routes = { toAll: [], toByType: new Map() };

/** Items of a manifest that are worked on in one step: some tens of microseconds. */
const ITEMS_PER_STEP = 64;

/** Works on each item; a step ends after a few. */
export function* inSteps<Item>(
  items: readonly Item[],
  work: (item: Item, index: number) => void,
): Generator<void, void> {
  for (let index = 0; index < items.length; index++) {
    if (index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
    work(items[index]!, index);
  }
}

/** Reads the manifest's edges; those with a problem are reported and left out. */
export function* readRoutes(
  manifest: Fields,
  indexOf: ReadonlyMap<string, number>,
  nodeCount: number,
): Generator<void, Routes[]> {
  const growing: (GrowingRoutes | undefined)[] = new Array(nodeCount).fill(undefined);
  yield* inSteps(manifest.list("edges", limits.edgesMax), (value, i) => {
    const fields = manifest.objectIn("edges", i, value);
    const found = fields === null ? null : edge(fields, indexOf);
    if (found === null) return;
    const { from, to, type } = found;
    growing[from] ??= { toAll: [], toByType: new Map() };
    const { toAll, toByType } = growing[from];
    const typed = type === null ? toAll : toByType.get(type);
    if (typed !== undefined) typed.push(to);
    else if (type !== null) toByType.set(type, [to]);
  });
  return growing.map((routes) => routes ?? noRoutes);
}

function edge(fields: Fields, indexOf: ReadonlyMap<string, number>) {
  fields.name("edge_id", null);
  const from = endOf(fields, "from_node", indexOf);
  const to = endOf(fields, "to_node", indexOf);
  const type = fields.name("message_type", null);
  return from === undefined || to === undefined ? null : { from, to, type };
}

function endOf(edge: Fields, name: string, indexOf: ReadonlyMap<string, number>): number | undefined {
  const given = edge.raw(name);
  const index = typeof given === "string" ? indexOf.get(given) : undefined;
  if (index !== undefined) return index;
  const nodeId = edge.requiredName(name);
  if (nodeId !== null && indexOf.size > 0) edge.report(name, "unknown_node", isNoNode(nodeId));
  return undefined;
}

/** Said of a reference to a node that does not exist. Where no node could be read, only that is reported. */
export function isNoNode(nodeId: string): string {
  return `is ${quoted(nodeId)}: no node has this node_id`;
}

/**
 * Orders the nodes so that one comes before all that it leads to; inside a circle, the node that is reached first
 * from the entrypoints comes first. This is the reverse postorder of a depth-first walk, in linear time and
 * without recursion. It depends on nothing but the manifest.
 */
export function* rankNodes(
  routes: readonly Routes[],
  entrypoints: readonly number[],
): Generator<void, readonly number[]> {
  const ranks: number[] = new Array(routes.length).fill(-1);
  const isSeen = new Uint8Array(routes.length);
  let rank = routes.length;
  let entered = 0;
  // Walked from the back, so that equals come out in the order in which the manifest names them.
  function* walk(root: number): Generator<void, void> {
    const path: { node: number; receivers: readonly number[]; left: number }[] = [];
    const enter = (node: number): void => {
      isSeen[node] = 1;
      const receivers = receiversOf(routes[node]);
      path.push({ node, receivers, left: receivers.length });
    };
    enter(root);
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      if (top.left === 0) {
        ranks[top.node] = --rank;
        path.pop();
        continue;
      }
      const next = top.receivers[--top.left]!;
      if (isSeen[next] === 1) continue;
      enter(next);
      if (++entered % ITEMS_PER_STEP === 0) yield;
    }
  }
  for (let i = entrypoints.length - 1; i >= 0; i--) {
    if (isSeen[entrypoints[i]!] !== 1) yield* walk(entrypoints[i]!);
  }
  for (let node = routes.length - 1; node >= 0; node--) if (isSeen[node] !== 1) yield* walk(node);
  return ranks;
}

function receiversOf(routes: Routes | undefined): readonly number[] {
  if (routes === undefined) return [];
  if (routes.toByType.size === 0) return routes.toAll;
  const all = [...routes.toAll];
  for (const typed of routes.toByType.values()) for (const to of typed) all.push(to);
  return all;
}
