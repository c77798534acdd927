// npm run bench -- --peers: Troupe and other engines, in turns. README.md says what to install.

import { printTable } from "../table.ts";
import { type Engine, type Figures, measure, median } from "./engine.ts";
import { startTroupe } from "./troupe.ts";

const PEERS = ["bullmq", "graphile-worker"];
const ROUNDS = 3;
/** Smaller is better for times. */
const isTime = (name: string) => name.endsWith(", ms");

export async function comparePeers(): Promise<void> {
  const pids = [process.pid, ...(process.env.PEERS_PIDS ?? "").split(",").filter(Boolean).map(Number)];
  for (const name of PEERS) {
    const rounds: { readonly troupe: Figures; readonly peer: Figures }[] = [];
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const troupe = await measureOne(startTroupe, pids);
        rounds.push({ troupe, peer: await measureOne(() => startPeer(name), pids) });
      }
    } catch (error) {
      console.log(`${name} is left out: ${error instanceof Error ? error.message : error}\n`);
      continue;
    }
    const figure = (of: "troupe" | "peer", key: string) =>
      median(rounds.map((round) => round[of][key] ?? Number.NaN));
    const ratios = new Map<string, string>();
    const ours = new Map<string, string>();
    const theirs = new Map<string, string>();
    for (const key of Object.keys(rounds[0]?.troupe ?? {})) {
      const [own, other] = [figure("troupe", key), figure("peer", key)];
      ours.set(key, own.toFixed(2));
      if (Number.isNaN(other)) continue;
      ratios.set(key, (isTime(key) ? other / own : own / other).toFixed(2));
      theirs.set(key, other.toFixed(2));
    }
    printTable([
      { name: "times better", figures: ratios },
      { name: "Troupe", figures: ours },
      { name, figures: theirs },
    ]);
    console.log();
  }
}

async function measureOne(start: () => Promise<Engine>, pids: readonly number[]): Promise<Figures> {
  const engine = await start();
  try {
    return await measure(engine, pids);
  } finally {
    await engine.stop();
  }
}

/** Their libraries are not installed with this project: the types would not be found. */
async function startPeer(name: string): Promise<Engine> {
  return ((await import(`./${name}.mjs`)) as { start(): Promise<Engine> }).start();
}
