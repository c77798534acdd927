// Two real programs on one PostgreSQL: commands go to the node that has their volume, and any node removes it.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { ask, call, createJob, ended, startRun } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import type { Program } from "../support/program.ts";
import { Nodes } from "../support/several-nodes.ts";
import { until } from "../support/until.ts";

test("a volume is one node's, wherever the run was started that names it", async () => {
  await using nodes = await Nodes.start(["a", "b"], { filesAreShared: true });
  const [a, b] = [nodes.of("a"), nodes.of("b")];
  const run = async (at: Program, name: string, command: string) => {
    const resources = { volumes: [{ name: "data", path: "data" }] };
    const manifest = graph(name, [{ ...executor("in", command), resources }]);
    const { status } = (await ended(at, await startRun(at, await createJob(at, manifest)))).run;
    return status;
  };
  assert.equal(await run(a, "makes", "echo of-a > data/file"), "completed");
  const volumesAt = async (at: Program) => {
    const { nodes: all } = (await call(at, "GET", "/resource")) as { nodes: readonly JsonObject[] };
    return all.map(({ name, volumes }) => [name, volumes]);
  };
  const ofA = [
    ["a", ["data"]],
    ["b", []],
  ];
  await until("b knows of it", async () => JSON.stringify(await volumesAt(b)) === JSON.stringify(ofA));
  const finds = "grep -q of-a data/file";
  await until("b has placed by it", async () => (await run(b, "finds", finds)) === "completed");

  await until(
    "b has it removed",
    async () => (await ask(b, "DELETE", "/resource/volumes/data")).status === 204,
  );
  await until("nobody has it", async () => (await volumesAt(b)).flat(2).join() === "a,b");
  assert.equal(await run(b, "anew", "test ! -e data/file && touch data/file"), "completed");
  // By then b may not have heard yet that a has it no more.
  await until("one of them has it", async () =>
    ["a,data,b", "a,b,data"].includes((await volumesAt(a)).flat(2).join()),
  );
});
