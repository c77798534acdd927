// Volumes as commands find them: kept over attempts and runs, in the working folder while a command runs, and safe from what
// commands do there.

import assert from "node:assert/strict";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { commandOf, RunnerFixture } from "../../../test/support/execution.ts";
import { isObject } from "../../engine/json.ts";
import type { VolumeNeed } from "../../engine/resources.ts";
import type { TaskOutcome } from "../../engine/task-port.ts";
import { Volumes } from "../volumes.ts";
import { agentFolders } from "./paths.ts";

const MiB = 1024 ** 2;
const volume = (name: string, more: Partial<VolumeNeed> = {}): VolumeNeed => ({
  name,
  path: name,
  isReadOnly: false,
  bytesMax: null,
  ...more,
});
const demand = { cpuMillis: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 };
const having = (...volumes: readonly VolumeNeed[]) => ({ demand, volumes });

const warningsOf = ({ listener }: RunnerFixture) =>
  listener.events.flatMap(({ type, payload }) =>
    type === "log" && isObject(payload) && payload.level === "warn" ? [String(payload.message)] : [],
  );

function failureOf(outcome: TaskOutcome): readonly [string, string] {
  assert.ok(outcome.kind === "failed", JSON.stringify(outcome));
  return [outcome.code, outcome.message];
}

test("what a command writes to a volume is there for the commands of other runs, at the path that each asks for", async () => {
  await using fixture = new RunnerFixture();
  const first = await fixture.sh("echo kept > data/file; ls -A", having(volume("data")), { runId: "run_1" });
  assert.equal(commandOf(first).stdout, "data\n");
  const nested = having(volume("data", { path: "in/here", isReadOnly: true }));
  const script = "cat in/here/file; printenv SVC_ALLOCATION_JSON";
  const second = await fixture.sh(script, nested, { runId: "run_2" });
  const [text, allocation = ""] = commandOf(second).stdout.split("\n");
  assert.equal(text, "kept");
  const path = join(fixture.home, "volumes", "data");
  assert.deepEqual(JSON.parse(allocation).volumes, { data: path });
  assert.equal(readFileSync(join(path, "file"), "utf8"), "kept\n");
  assert.equal(lstatSync(path).mode & 0o777, 0o700);
  assert.deepEqual(fixture.runner.volumes.names, ["data"]);
});

test("a volume whose folders are nested too deep to be measured counts as full", async () => {
  await using fixture = new RunnerFixture();
  const deep = having(volume("deep", { bytesMax: 100 * MiB }));
  const nest = 'cd deep; for i in $(seq 300); do mkdir d && cd d; done; echo x > "file"';
  assert.equal((await fixture.sh(nest, deep, { runId: "run_1" })).kind, "succeeded");
  assert.match(warningsOf(fixture).join(), /Volume "deep" holds more now/);
  const [code, message] = failureOf(await fixture.sh("true", deep, { runId: "run_2" }));
  assert.equal(code, "resource.volume_full");
  assert.match(message, /cannot be measured for its size_mb: it has folders nested deeper than 200/);
});

test("nothing of a volume is left in the working folder once the command has ended", async () => {
  await using fixture = new RunnerFixture();
  const { work } = agentFolders(fixture.home, "run_1", "worker");
  const run = { runId: "run_1", agentId: "worker" };
  const outcome = await fixture.sh("touch own data/theirs", having(volume("data")), run);
  assert.equal(outcome.kind, "succeeded");
  assert.deepEqual(readdirSync(work), ["own"]);
  const again = await fixture.sh("ls; ls data", having(volume("data")), run);
  assert.equal(commandOf(again).stdout, "data\nown\ntheirs\n");
});

test("a volume takes the place of a link that is left there, and of nothing else", async () => {
  await using fixture = new RunnerFixture();
  const run = { runId: "run_1", agentId: "worker" };
  await fixture.sh("ln -s /nowhere data; mkdir other; touch other/file; ln -s / away", {}, run);
  assert.equal((await fixture.sh("touch data/file", having(volume("data")), run)).kind, "succeeded");
  const [code, message] = failureOf(await fixture.sh("true", having(volume("data"), volume("other")), run));
  assert.equal(code, "executor.staging_failed");
  assert.match(message, /Volume "other" cannot be at "other" in the working folder: something else is there/);
  const { work } = agentFolders(fixture.home, "run_1", "worker");
  assert.deepEqual(readdirSync(work).sort(), ["away", "other"], "no volume is left there");
  const through = having(volume("data", { path: "away/tmp/data" }));
  assert.equal(failureOf(await fixture.sh("true", through, run))[0], "executor.staging_failed");
});

test("a volume that holds more than it may is told after the command, and refuses the next one that writes", async () => {
  await using fixture = new RunnerFixture();
  const small = volume("small", { bytesMax: MiB });
  const fill = "head -c 700000 /dev/urandom > small/$SVC_ATTEMPT-$SVC_RUN_ID";
  await fixture.sh(fill, having(small), { runId: "run_1" });
  assert.deepEqual(warningsOf(fixture), []);
  await fixture.sh(fill, having(small), { runId: "run_2" });
  assert.match(warningsOf(fixture).join(), /Volume "small" holds more now than its size_mb/);
  const [code, message] = failureOf(await fixture.sh("true", having(small), { runId: "run_3" }));
  assert.equal(code, "resource.volume_full");
  assert.match(message, /holds more than the 1 MiB of its size_mb/);
  const reading = having({ ...small, isReadOnly: true });
  assert.equal((await fixture.sh("rm small/*run_1", reading, { runId: "run_4" })).kind, "succeeded");
  assert.equal((await fixture.sh("true", having(small), { runId: "run_5" })).kind, "succeeded");
});

test("a volume that another node has had first is not made, and is asked for again by the next command", async () => {
  await using fixture = new RunnerFixture();
  const others = ["other", null];
  const owners = { claim: async () => others.shift() ?? null, giveUp: async () => {} };
  const volumes = new Volumes(fixture.home, owners);
  await assert.rejects(volumes.prepare(volume("data")), {
    code: "resource.volume_elsewhere",
    message: /is on the node "other", which had it first/,
  });
  assert.deepEqual(volumes.names, []);
  assert.equal(await volumes.prepare(volume("data")), join(fixture.home, "volumes", "data"));
});

test("a volume is there until it is nobody's, and what is in its place can be removed after a restart, too", async () => {
  await using fixture = new RunnerFixture();
  const outages = [new Error("The database is away.")];
  const owners = {
    claim: async () => null,
    async giveUp() {
      const outage = outages.shift();
      if (outage !== undefined) throw outage;
    },
  };
  const volumes = new Volumes(fixture.home, owners);
  await volumes.prepare(volume("data"));
  await assert.rejects(volumes.remove("data"), /The database is away/);
  assert.deepEqual(volumes.names, ["data"]);
  await volumes.remove("data");
  assert.deepEqual(volumes.names, []);
  symlinkSync("/nowhere", join(fixture.home, "volumes", "data"));
  const restarted = new Volumes(fixture.home, null);
  assert.deepEqual(restarted.names, ["data"]);
  await restarted.remove("data");
  assert.deepEqual(readdirSync(join(fixture.home, "volumes")), []);
});

test("files without content count, too: a volume cannot have so many that nobody comes to an end with them", async () => {
  await using fixture = new RunnerFixture();
  const small = having(volume("small", { bytesMax: MiB }));
  const touch = "i=0; while [ $i -lt 2100 ]; do : > small/$i; i=$((i+1)); done";
  await fixture.sh(touch, small, { runId: "run_1" });
  const [code] = failureOf(await fixture.sh("true", small, { runId: "run_2" }));
  assert.equal(code, "resource.volume_full");
});

test("links in a volume are neither measured nor followed when it is removed, nor is one in its place", async () => {
  await using fixture = new RunnerFixture();
  const victim = join(fixture.home, "victim");
  mkdirSync(victim);
  writeFileSync(join(victim, "letter"), Buffer.alloc(2 * MiB));
  const small = having(volume("small", { bytesMax: MiB }));
  const run = { runId: "run_1" };
  await fixture.sh(`ln -s ${victim} small/folder; ln -s ${victim}/letter small/file`, small, run);
  assert.equal((await fixture.sh("true", small, run)).kind, "succeeded");
  await fixture.runner.volumes.remove("small");
  assert.deepEqual(fixture.runner.volumes.names, []);
  symlinkSync(victim, join(fixture.home, "volumes", "small"));
  const [code, message] = failureOf(await fixture.sh("touch small/made", small, run));
  assert.equal(code, "executor.staging_failed");
  assert.match(message, /Volume "small" cannot be given to the command: .* symlink/);
  await fixture.runner.volumes.remove("small");
  assert.deepEqual(readdirSync(victim), ["letter"]);
  assert.ok(!existsSync(join(fixture.home, "volumes", "small")));
});
