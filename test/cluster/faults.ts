// What happens to a cluster: one fault at a time, of a kind, at a place and for a time from the seed.

import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "../simulation/random.ts";
import { until } from "../support/until.ts";
import type { Cluster, ClusterNode } from "./cluster.ts";
import type { Fault } from "./tcp-proxy.ts";

/** Causes one fault and ends it. */
type Cause = (cluster: Cluster, random: Random, lasts: () => Promise<void>) => Promise<void>;

/** One with work to lose. */
async function anyNode({ nodes }: Cluster, random: Random): Promise<ClusterNode> {
  const working = await until("commands run", () => {
    const found = nodes.filter(({ isWorking }) => isWorking);
    return found.length > 0 && found;
  });
  return random.pick(working);
}

const anyFault = (random: Random): Fault => random.pick<Fault>(["cut", "silent", 30]);

const causes: Readonly<Record<string, Cause>> = {
  async "a node is killed"(cluster, random, lasts) {
    const node = await anyNode(cluster, random);
    await node.kill();
    await lasts();
    await node.start();
  },
  async "a node is stopped and goes on"(cluster, random, lasts) {
    const node = await anyNode(cluster, random);
    node.stop();
    await lasts();
    node.goOn();
  },
  async "the database is killed"(cluster, _random, lasts) {
    const startAgain = await cluster.killDatabase();
    await lasts();
    await startAgain();
  },
  async "a node cannot reach the database"(cluster, random, lasts) {
    const { database } = await anyNode(cluster, random);
    database.fault(anyFault(random));
    await lasts();
    database.heal();
  },
  async "two nodes cannot reach each other"(cluster, random, lasts) {
    const one = await anyNode(cluster, random);
    const others = cluster.serving.filter((node) => node !== one);
    if (others.length === 0) return;
    cluster.between(one, random.pick(others), anyFault(random));
    await lasts();
    cluster.heal();
  },
  async "a machine is lost and comes back"(cluster, random, lasts) {
    const node = await anyNode(cluster, random);
    await node.lose();
    await lasts();
    await node.start();
  },
  async "a node is ended and started"(cluster, random, lasts) {
    const node = await anyNode(cluster, random);
    await node.terminate();
    await lasts();
    await node.start();
  },
};

export const faultKinds = Object.keys(causes);

/** Causes a fault of this kind, and ends it after a time that the seed knows, within a lease or beyond it: it waits for nothing. */
export async function causeFault(
  kind: string,
  cluster: Cluster,
  random: Random,
  leaseMs: number,
): Promise<void> {
  const lasts = () =>
    delay(random.chance(0.5) ? random.below(leaseMs / 5) : random.between(leaseMs, leaseMs * 1.3));
  await causes[kind]?.(cluster, random, lasts);
}
