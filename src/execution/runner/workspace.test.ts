// Workspaces through real commands: what is staged, what is refused, and what happens when others interfere.

import assert from "node:assert/strict";
import {
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { RunnerFixture, type TaskChanges } from "../../../test/support/execution.ts";
import type { ExecutorConfig, Upload } from "../../engine/graph.ts";
import type { TaskOutcome } from "../../engine/task-port.ts";

const bundle: TaskChanges = { bundleFingerprint: "f" };

function upload(path: string, as: string = path): Upload {
  return { path, as };
}

function stdout(outcome: TaskOutcome): string {
  assert.equal(outcome.kind, "succeeded", JSON.stringify(outcome));
  return outcome.kind === "succeeded" ? (outcome.command?.stdout ?? "") : "";
}

async function stagingFailure(fixture: RunnerFixture, config: Partial<ExecutorConfig>): Promise<string> {
  const outcome = await fixture.sh("true", config, { ...bundle, agentId: `agent-${Math.random()}` });
  assert.equal(outcome.kind === "failed" && outcome.code, "executor.staging_failed", JSON.stringify(outcome));
  return outcome.kind === "failed" ? outcome.message : "";
}

function workspaceOf(fixture: RunnerFixture, agentId: string): string {
  return join(fixture.home, "runs/run_1/agents", agentId, "work");
}

describe("staging", () => {
  it("copies files and folders of the payload under their names, modes kept and writable", async () => {
    await using fixture = new RunnerFixture();
    fixture.write("worker/main.sh", "#!/bin/sh\necho main\n", 0o555);
    fixture.write("worker/sub/data.txt", "data");
    fixture.write("shared/x.txt", "x");
    symlinkSync("sub/data.txt", join(fixture.payload, "worker/link.txt"));
    symlinkSync("../shared/x.txt", join(fixture.payload, "worker/x.txt"));
    const config = {
      uploadPaths: [upload("worker"), upload("shared/x.txt", "inputs/copy.txt")],
      workdir: "worker",
    };
    const script =
      "./main.sh; cat sub/data.txt link.txt x.txt ../inputs/copy.txt; echo more >> main.sh; readlink link.txt; stat -c %a main.sh; test -L x.txt || echo copied";
    assert.equal(
      stdout(await fixture.sh(script, config, bundle)),
      "main\ndatadataxxsub/data.txt\n755\ncopied\n",
    );
    // What the worker wrote is its own affair.
    assert.equal(readFileSync(join(fixture.payload, "worker/main.sh"), "utf8"), "#!/bin/sh\necho main\n");
    const copy = join(workspaceOf(fixture, "worker"), "worker/sub/data.txt");
    assert.notEqual(lstatSync(copy).ino, lstatSync(join(fixture.payload, "worker/sub/data.txt")).ino);
  });

  it("puts the content of the whole payload into the workspace itself as '.'", async () => {
    await using fixture = new RunnerFixture();
    fixture.write("a.txt", "a");
    fixture.write("b/c.txt", "c");
    const config = { uploadPaths: [upload(".", ".")], workdir: "/sandbox/job/b" };
    assert.equal(stdout(await fixture.sh("cat c.txt ../a.txt", config, bundle)), "ca");
  });

  it("starts empty without uploads, in a workspace that only this agent sees", async () => {
    await using fixture = new RunnerFixture();
    fixture.write("a.txt", "a");
    assert.equal(stdout(await fixture.sh("ls -A; pwd", {}, bundle)), `${workspaceOf(fixture, "worker")}\n`);
  });

  it("happens once per agent: what an attempt leaves is there for the next", async () => {
    await using fixture = new RunnerFixture();
    fixture.write("a.txt", "a");
    const config = { uploadPaths: [upload("a.txt")] };
    await fixture.sh("echo b >> a.txt; mkdir -p d; echo c > d/c", config, bundle);
    assert.equal(stdout(await fixture.sh("cat a.txt d/c", config, bundle)), "ab\nc\n");
    assert.deepEqual(fixture.listener.payloads("workspace_modified"), []);
  });

  it("refuses whatever leaves the payload or the workspace, and names it", async () => {
    await using fixture = new RunnerFixture();
    const outside = join(fixture.home, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "secret"), "s");
    fixture.write("a/b.txt", "b");
    fixture.write("plain.txt", "p");
    symlinkSync(outside, join(fixture.payload, "folder-out"));
    symlinkSync("../../outside/secret", join(fixture.payload, "a/file-out"));
    fixture.write("c/x", "x");
    symlinkSync("../plain.txt", join(fixture.payload, "c/ok"));
    symlinkSync("../empty", join(fixture.payload, "c/folder"));
    mkdirSync(join(fixture.payload, "empty"));
    symlinkSync("nowhere", join(fixture.payload, "dangling"));
    const cases: [Partial<ExecutorConfig>, RegExp][] = [
      [{ uploadPaths: [upload("../outside", "x")] }, /"\.\.\/outside" leaves the payload/],
      [{ uploadPaths: [upload(outside, "x")] }, /leaves the payload/],
      [{ uploadPaths: [upload("folder-out/secret", "x")] }, /through a symlink/],
      [{ uploadPaths: [upload("a")] }, /Symlink "a\/file-out" leaves the payload/],
      [{ uploadPaths: [upload("c")] }, /Symlink "c\/folder" points to a folder outside "c"/],
      [{ uploadPaths: [upload("dangling")] }, /"dangling" does not exist/],
      [{ uploadPaths: [upload("absent")] }, /"absent" does not exist/],
      [{ uploadPaths: [upload("plain.txt", "../x")] }, /upload_as "\.\.\/x" leaves/],
      [{ uploadPaths: [upload("empty", "x"), upload("plain.txt", "x")] }, /collide/],
      [{ uploadPaths: [upload("plain.txt", "x"), upload("empty", "x")] }, /collide/],
      [{ workdir: "../other" }, /workdir "\.\.\/other" is outside/],
      [{ workdir: "/tmp" }, /workdir "\/tmp" is outside/],
      [{ workdir: "/sandbox/job/../x" }, /outside/],
      [{ workdir: "absent" }, /workdir "absent" is no folder/],
      [{ uploadPaths: [upload("plain.txt")], workdir: "plain.txt" }, /is no folder/],
    ];
    for (const [config, expected] of cases) assert.match(await stagingFailure(fixture, config), expected);
    const noBundle = await fixture.sh("true", { uploadPaths: [upload("a")] }, { agentId: "none" });
    assert.match(noBundle.kind === "failed" ? noBundle.message : "", /has no bundle/);
  });

  it("refuses a workdir that became a symlink out of the workspace", async () => {
    await using fixture = new RunnerFixture();
    await fixture.sh("ln -s /tmp out");
    const outcome = await fixture.sh("true", { workdir: "out" });
    assert.match(outcome.kind === "failed" ? outcome.message : "", /through a symlink/);
  });

  it("can be tried again after it failed half-way", async () => {
    await using fixture = new RunnerFixture();
    fixture.write("a.txt", "a");
    const config = { uploadPaths: [upload("a.txt"), upload("late.txt")] };
    assert.equal((await fixture.sh("true", config, bundle)).kind, "failed");
    fixture.write("late.txt", "late");
    assert.equal(stdout(await fixture.sh("ls", config, bundle)), "a.txt\nlate.txt\n");
    assert.deepEqual(fixture.listener.payloads("workspace_modified"), []);
  });

  it("keeps agents apart whose ids only differ in letter case or in odd characters", async () => {
    await using fixture = new RunnerFixture();
    const ids = ["a", "A", "../a", "a/b", "a b", "ä"];
    for (const agentId of ids)
      assert.equal(stdout(await fixture.sh("ls -A; touch mine", {}, { agentId })), "");
    assert.equal(readdirSync(join(fixture.home, "runs/run_1/agents")).length, ids.length);
    assert.deepEqual(readdirSync(join(fixture.home, "runs")), ["run_1"]);
  });
});

describe("a workspace that others changed", () => {
  const config = { uploadPaths: [upload("a.txt")] };

  it("is staged afresh between two attempts of its agent, and the changes are named", async () => {
    await using fixture = new RunnerFixture();
    fixture.write("a.txt", "a");
    await fixture.sh("echo own > own; echo gone > gone", config, bundle);
    const intrude = 'cd "$SVC_WORKDIR/../../worker/work"; echo evil > a.txt; echo new > new; rm gone';
    await fixture.sh(intrude, {}, { agentId: "intruder" });
    assert.equal(stdout(await fixture.sh("cat *", config, bundle)), "a");
    assert.deepEqual(fixture.listener.payloads("workspace_modified"), [
      { attempt: 1, changes: ["changed: a.txt", "added: new", "removed: gone"], action: "staged_afresh" },
    ]);
    await fixture.sh("true", config, bundle);
    assert.equal(fixture.listener.payloads("workspace_modified").length, 1);
  });

  it("notices a file that was replaced by one of the same size and time", async () => {
    await using fixture = new RunnerFixture();
    await fixture.sh("echo one > f; touch -d '2020-01-01' f");
    await fixture.sh(
      'cd "$SVC_WORKDIR/../../worker/work"; echo two > g; touch -d 2020-01-01 g; mv g f',
      {},
      { agentId: "x" },
    );
    assert.equal(stdout(await fixture.sh("ls -A")), "");
    assert.deepEqual(fixture.listener.payloads("workspace_modified")[0]?.changes, ["changed: f"]);
  });

  it("is staged afresh when it was there before it was first staged, or is a link or gone", async () => {
    await using fixture = new RunnerFixture();
    fixture.write("a.txt", "a");
    const plant =
      'mkdir -p "$SVC_WORKDIR/../../early/work"; echo evil > "$SVC_WORKDIR/../../early/work/evil"';
    await fixture.sh(plant, {}, { agentId: "intruder" });
    assert.equal(stdout(await fixture.sh("ls -A", config, { ...bundle, agentId: "early" })), "a.txt\n");
    const link = 'cd "$SVC_WORKDIR/../../early"; rm -r work; mkdir ../target; ln -s ../target work';
    await fixture.sh(link, {}, { agentId: "intruder" });
    assert.equal(stdout(await fixture.sh("ls -A", config, { ...bundle, agentId: "early" })), "a.txt\n");
    await fixture.sh('rm -r "$SVC_WORKDIR/../../early/work"', {}, { agentId: "intruder" });
    assert.equal(stdout(await fixture.sh("ls -A", config, { ...bundle, agentId: "early" })), "a.txt\n");
    assert.deepEqual(
      fixture.listener.payloads("workspace_modified").map(({ changes }) => changes),
      [
        ["the workspace was there before it was first staged"],
        ["the workspace is no folder"],
        ["the workspace is gone"],
      ],
    );
  });

  it("is not one that an earlier runtime of this home had staged", async () => {
    await using fixture = new RunnerFixture();
    fixture.write("a.txt", "a");
    await fixture.sh("echo kept > kept", config, bundle);
    const left = join(fixture.home, "runs/run_1/agents/worker/attempts/99-1");
    mkdirSync(left);
    await fixture.runner.drain(0);
    const successor = new RunnerFixture(fixture.home);
    assert.equal(stdout(await successor.sh("cat a.txt kept", config, bundle)), "akept\n");
    assert.deepEqual(successor.listener.payloads("workspace_modified"), []);
    assert.deepEqual(readdirSync(join(left, "..")), []);
    await successor.runner.drain(0);
  });

  it("is followed by the agent's own later state, whatever the attempt's outcome", async () => {
    await using fixture = new RunnerFixture();
    await fixture.sh("echo 1 > f; exit 1");
    await fixture.sh("echo 2 > f; kill -9 $$");
    assert.equal(stdout(await fixture.sh("cat f")), "2\n");
    assert.deepEqual(fixture.listener.payloads("workspace_modified"), []);
  });

  it("may hold hard links of the worker's own making without leading them into artifacts", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh('echo first > f; ln f "$SVC_OUTPUT_DIR/f"');
    const [artifact] = outcome.kind === "succeeded" ? outcome.artifacts : [];
    linkSync(join(workspaceOf(fixture, "worker"), "f"), join(fixture.home, "again"));
    await fixture.sh("echo other > f");
    const blob = await fixture.blobs.open(artifact?.sha256 ?? "");
    assert.equal(readFileSync(blob?.path ?? "", "utf8"), "first\n");
  });
});
