// What happens to a cluster: one fault at a time, of a kind, at a place and for a time from the seed.

import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "../simulation/random.ts";
import type { Cluster } from "./cluster.ts";
import type { Fault } from "./tcp-proxy.ts";

/** A fault lasts up to so many times a lease: within it, or far beyond. */
const LEASES_MAX = 2;

/** Causes one fault and ends it. @returns its kind */
type Cause = (cluster: Cluster, random: Random, lasts: () => Promise<void>) => Promise<void>;

const anyNode = ({ serving }: Cluster, random: Random) => random.pick(serving);
const anyFault = (random: Random): Fault => random.pick<Fault>(["cut", "silent", 30]);

const causes: Readonly<Record<string, Cause>> = {
  async "a node is killed"(cluster, random, lasts) {
    const node = anyNode(cluster, random);
    await node.kill();
    await lasts();
    await node.start();
  },
  async "a node is stopped and goes on"(cluster, random, lasts) {
    const node = anyNode(cluster, random);
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
    const { database } = anyNode(cluster, random);
    database.fault(anyFault(random));
    await lasts();
    database.heal();
  },
  async "two nodes cannot reach each other"(cluster, random, lasts) {
    const one = anyNode(cluster, random);
    const others = cluster.serving.filter((node) => node !== one);
    if (others.length === 0) return;
    cluster.between(one, random.pick(others), anyFault(random));
    await lasts();
    cluster.heal();
  },
  async "a machine is lost and comes back"(cluster, random, lasts) {
    const node = anyNode(cluster, random);
    await node.lose();
    await lasts();
    await node.start();
  },
  async "a node is ended and started"(cluster, random, lasts) {
    const node = anyNode(cluster, random);
    await node.terminate();
    await lasts();
    await node.start();
  },
};

export const faultKinds = Object.keys(causes);

/** Causes a fault of this kind, and ends it after a time that the seed knows: it waits for nothing. */
export async function causeFault(
  kind: string,
  cluster: Cluster,
  random: Random,
  leaseMs: number,
): Promise<void> {
  await causes[kind]?.(cluster, random, () => delay(random.between(0, LEASES_MAX * leaseMs)));
}
