// The gateway's answers about a job of many agents are made in pieces, and everything else has its turn between them.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fan } from "../../bench/manifests.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import { call, createJob, startGateway } from "../support/gateway-api.ts";
import { countsTurns, turnsOf } from "../support/loop-turns.ts";
import type { Program } from "../support/program.ts";

const AGENTS = 2_000;
/** An answer's pieces have no more items than this. */
const ITEMS_MAX = 50;
const manifest = fan(AGENTS, 1) as JsonObject & {
  readonly nodes: JsonObject[];
  readonly edges: JsonObject[];
};
let program: Program;
let path: string;
before(async () => {
  program = await startGateway({ env: countsTurns });
  path = `/jobs/${await createJob(program, manifest)}`;
  // What is read once is read now.
  await call(program, "GET", `${path}?view=full`);
});
after(() => program.stop());

async function answerIn(turns: number, of: string): Promise<JsonObject> {
  const first = await turnsOf(program);
  const answer = await call(program, "GET", of);
  const taken = (await turnsOf(program)) - first;
  assert.ok(taken >= turns, `${taken} turns, not ${turns}`);
  return answer;
}

test("the full view, which has every node and edge once and in order", async () => {
  const items = 2 * (manifest.nodes.length + manifest.edges.length);
  const full = await answerIn(items / ITEMS_MAX, `${path}?view=full`);
  assert.deepEqual(full.manifest, manifest);
  const { nodes, edges } = full.graph as { nodes: readonly JsonObject[]; edges: readonly JsonObject[] };
  const ids = (list: readonly JsonObject[]) => list.map(({ node_id }) => node_id);
  const ends = (list: readonly JsonObject[]) => list.map(({ from_node, to_node }) => [from_node, to_node]);
  assert.deepEqual(ids(nodes), ids(manifest.nodes));
  assert.deepEqual(ends(edges), ends(manifest.edges));
});

test("workflow progress, which shows the first thousand of them", async () => {
  const { steps, agents } = await answerIn(2_000 / ITEMS_MAX, `${path}/workflow-progress`);
  const ids = manifest.nodes.slice(0, 1_000).map(({ node_id }) => node_id);
  for (const list of [steps, agents] as readonly (readonly JsonObject[])[]) {
    assert.deepEqual(
      list.map(({ agent_id }) => agent_id),
      ids,
    );
  }
});
