// Writes manifest.json: a manifest is data, and a graph of 40 equal nodes is written by a loop.
//
//   node make-manifest.mjs            40 shards in the pool "default"
//   node make-manifest.mjs 100 sweep  100 shards in the pool "sweep"

import { writeFileSync } from "node:fs";

const COLUMNS = 110;
const [shards = "40", pool = "default"] = process.argv.slice(2);

/** Shards with an even number are counted by sh and awk, the others by Node. */
function worker(shard) {
  const isShell = shard % 2 === 0;
  const program = isShell ? ["sh", "sweep/primes.sh"] : ["node", "sweep/primes.mjs"];
  return {
    node_id: `${isShell ? "shell" : "node"}-${String(shard).padStart(2, "0")}`,
    agent_type: "executor",
    config: {
      command: [...program, String(shard), shards],
      upload_path: "sweep",
      ...(pool !== "default" && { pool }),
    },
  };
}

const workers = Array.from({ length: Number(shards) }, (_, shard) => worker(shard));
const manifest = {
  manifest_version: "1.0",
  graph_id: "prime-sweep",
  job_name: "Prime sweep",
  entrypoints: ["start"],
  initial_inputs: { start: { limit: 1_000_000 } },
  nodes: [
    { node_id: "start", agent_type: "router", role: "Hands the limit to every shard" },
    ...workers,
    {
      node_id: "gather",
      agent_type: "aggregator",
      role: "Waits for all shards",
      config: { complete_after: workers.length, output_message_type: "all_counted" },
    },
    {
      node_id: "total",
      agent_type: "module",
      role: "Adds up and ends the run",
      config: { module: "total.mjs", timeout_seconds: 10 },
    },
  ],
  edges: [
    ...workers.map(({ node_id }) => ({ from_node: "start", to_node: node_id })),
    ...workers.map(({ node_id }) => ({ from_node: node_id, to_node: "gather" })),
    { from_node: "gather", to_node: "total" },
  ],
  policies: { failure_policy: "fail_run", timeout_seconds: 600 },
  metadata: { description: "Counts primes in shards with shell and Node workers, gathered by an aggregator" },
};

/** JSON in which whatever fits on a line stands on one; objects in a list get lines of their own. */
function print(value, indent = "") {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const isList = Array.isArray(value);
  const render = (inner) =>
    Object.entries(value).map(
      ([key, item]) => (isList ? "" : `${JSON.stringify(key)}: `) + print(item, inner),
    );
  const flat = isList ? `[${render("").join(", ")}]` : `{ ${render("").join(", ")} }`;
  const holdsObjects = isList && value.some((item) => typeof item === "object");
  const room = COLUMNS - indent.length - '"initial_inputs": ,'.length;
  if (!holdsObjects && !flat.includes("\n") && flat.length <= room) return flat;
  const [open, close] = isList ? "[]" : "{}";
  return `${open}\n${render(`${indent}  `)
    .map((line) => `${indent}  ${line}`)
    .join(",\n")}\n${indent}${close}`;
}

writeFileSync(new URL("manifest.json", import.meta.url), `${print(manifest)}\n`);
console.log(`manifest.json: ${workers.length} shards in the pool "${pool}"`);
