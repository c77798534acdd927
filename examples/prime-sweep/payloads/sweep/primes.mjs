// Counts the primes of one shard: primes.mjs SHARD SHARDS, with SHARD from 0. Plain JavaScript for Node 18 or newer.
// The message says how far to go in total: {"limit": n}. Shard k of s takes k*n/s + 1 to (k+1)*n/s.

import { readFileSync } from "node:fs";

const [shard, shards] = process.argv.slice(2).map(Number);
const { limit } = JSON.parse(readFileSync(process.env.SVC_INPUT_FILE, "utf8"));
if (!Number.isSafeInteger(limit) || limit < 0) {
  console.error(`The message has to be {"limit": a whole number}, and limit is ${JSON.stringify(limit)}.`);
  process.exit(1);
}

const low = Math.max(2, Math.floor((shard * limit) / shards) + 1);
const high = Math.floor(((shard + 1) * limit) / shards);

// Cross out, in our part only, the multiples of every number up to the root of its end.
const crossed = new Uint8Array(Math.max(0, high - low + 1));
for (let base = 2; base * base <= high; base++) {
  const first = Math.max(base * base, Math.ceil(low / base) * base);
  for (let n = first; n <= high; n += base) crossed[n - low] = 1;
}
const primes = crossed.reduce((count, mark) => count + 1 - mark, 0);
const largest = primes === 0 ? null : low + crossed.lastIndexOf(0);

const result = { shard, worker: "node", from: low, to: high, primes, largest };
console.log(JSON.stringify({ complete_step: result }));
