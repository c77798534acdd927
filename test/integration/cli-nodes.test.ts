// `troupe node list` against the real program.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startHere } from "../support/command-line.ts";
import { startGatewayHere, unlessOnPostgres } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

let program: Program;
before(async () => {
  program = await startGatewayHere({
    command: "gateway",
    env: {
      SVC_EXECUTOR_POOL_CAPACITIES: "default=3,gpu=1",
      SVC_NODE_NAME: "here",
      SVC_NODE_LABELS: "zone=a,disk=fast",
    },
  });
});
after(() => program.stop());

async function done(...args: string[]): Promise<{ readonly out: string; readonly err: string }> {
  const running = startHere(["node", ...args, "--url", program.api], program.home);
  const { code, out, err } = await running.ended;
  assert.equal(code, 0, out + err);
  return { out, err };
}

test("the list has a line for each node, with what it does", async () => {
  const [head, line, ...others] = (await done("list")).out.trimEnd().split("\n");
  assert.match(
    head ?? "",
    /^NODE +NAME +STATUS +ADDRESS +SLOTS IN USE +JOBS +TASKS +VERSION +LAST SEEN +LABELS$/,
  );
  assert.match(
    line ?? "",
    /^\S+ +here \* +ready +\S+ +default 0\/3, gpu 0\/1 +0 +0 +\d\S+ +.+ ago +zone=a,disk=fast\S*$/,
  );
  assert.deepEqual(others, []);
});

test(
  "without a shared database it says why there is one node, but not to programs",
  unlessOnPostgres,
  async () => {
    assert.match((await done("list")).err, /only node.*SVC_DATABASE_URL/);
    assert.equal((await done("list", "--json")).err, "");
  },
);

test("--json is the records", async () => {
  const [node, ...others] = JSON.parse((await done("--json")).out) as Record<string, unknown>[];
  assert.deepEqual([node?.name, node?.self, others], ["here", true, []]);
});
