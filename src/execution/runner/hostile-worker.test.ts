// Workers that put symlinks and special files where the runtime reads, writes, moves and removes: nothing that is not
// the attempt's own is touched.

import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { executorConfig, failedWith, RunnerFixture, taskStart } from "../../../test/support/execution.ts";
import type { TaskOutcome } from "../../engine/task-port.ts";

/** A folder of somebody else's, and what is in it. */
class Victim {
  readonly folder = mkdtempSync(join(realpathSync(tmpdir()), "troupe-victim-"));
  readonly #before: string;

  constructor() {
    for (const way of ["out", "worker/attempts", "worker/work", "2-1/out"]) {
      mkdirSync(join(this.folder, way), { recursive: true });
      writeFileSync(join(this.folder, way, "letter.txt"), "private");
    }
    writeFileSync(join(this.folder, "letter.txt"), "private");
    this.#before = this.#shown();
  }

  #shown(): string {
    const entries = readdirSync(this.folder, { recursive: true, withFileTypes: true });
    const shown = entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return `${path} ${entry.isFile() ? readFileSync(path, "utf8") : ""}`;
    });
    return shown.sort().join("\n");
  }

  assertUntouched(): void {
    assert.equal(this.#shown(), this.#before);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function artifactsOf(outcome: TaskOutcome): string[] {
  assert.equal(outcome.kind, "succeeded", JSON.stringify(outcome));
  return outcome.kind === "succeeded" ? outcome.artifacts.map(({ name }) => name).sort() : [];
}

const ATTEMPT = '"$(dirname "$SVC_OUTPUT_DIR")"';
const AGENT = '"$SVC_WORKDIR/.."';

describe("a worker that replaces a folder by a symlink", () => {
  const places: [string, string][] = [
    ["its output folder", 'rm -r "$SVC_OUTPUT_DIR"; ln -s "$VICTIM" "$SVC_OUTPUT_DIR"'],
    ["its attempt's folder", `cd /; A=${ATTEMPT}; rm -r "$A"; ln -s "$VICTIM" "$A"`],
    ["the folder of its attempts", `cd /; A=$(dirname ${ATTEMPT}); mv "$A" "$A.moved"; ln -s "$VICTIM" "$A"`],
    [
      "its agent's folder",
      `cd /; A=$(dirname "$SVC_WORKDIR"); mv "$A" "$A.moved"; ln -s "$VICTIM/worker" "$A"`,
    ],
    ["its workspace", 'cd /; rm -r "$SVC_WORKDIR"; ln -s "$VICTIM" "$SVC_WORKDIR"'],
  ];
  for (const [what, script] of places) {
    it(`${what}: what is behind it stays as it is, and is not kept`, async () => {
      using victim = new Victim();
      await using fixture = new RunnerFixture();
      // Every victim looks like the folder that it takes the place of.
      const task = taskStart({
        config: executorConfig({
          command: ["sh", "-c", script],
          environment: { VICTIM: victim.folder },
        }),
        ref: { jobId: "graph-1", taskSeq: 2, attempt: 1 },
      });
      fixture.runner.start(task);
      const outcome = await fixture.listener.outcome(task.ref);
      assert.deepEqual(artifactsOf(outcome), []);
      const warnings = fixture.listener.logs("worker").join("\n");
      if (what !== "its workspace") assert.match(warnings, /SVC_OUTPUT_DIR cannot be read/);
      // The next attempt of the agent meets what this one has left.
      const next = await fixture.sh('echo x >"$SVC_OUTPUT_DIR/x"; echo y >y');
      if (next.kind === "failed") assert.match(failedWith(next, "executor.workspace_failed"), /symlink/);
      await fixture.runner.drain(0);
      victim.assertUntouched();
    });
  }

  it("a folder of its output: only what is below is kept", async () => {
    using victim = new Victim();
    await using fixture = new RunnerFixture();
    const script =
      'cd "$SVC_OUTPUT_DIR"; mkdir a; echo x >a/x; ln -s "$VICTIM" b; ln -s "$VICTIM/letter.txt" c; ln -s .. d';
    const outcome = await fixture.sh(script, { environment: { VICTIM: victim.folder } });
    assert.deepEqual(artifactsOf(outcome), ["a/x"]);
    assert.equal(fixture.listener.logs("worker").length, 3);
    victim.assertUntouched();
  });

  it("at any moment while its files are collected: nothing of the other folder is kept or moved", async () => {
    using victim = new Victim();
    await using fixture = new RunnerFixture();
    // It outlives the command, out of its group and with none of its pipes, and swaps folders for symlinks all the time.
    const swap = `import os
out, victim = os.environ["SVC_OUTPUT_DIR"], os.environ["VICTIM"]
for i in range(100):
    folder = os.path.join(out, "folder-%d" % i)
    os.mkdir(folder)
    with open(os.path.join(folder, "letter.txt"), "w") as file: file.write("own")
if os.fork() == 0:
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2): os.dup2(null, fd)
    while os.path.exists(out):
        for name in ["folder-%d" % i for i in range(100)]:
            path = os.path.join(out, name)
            for act in (lambda: os.rename(path, path + "~"), lambda: os.symlink(victim, path), lambda: os.unlink(path), lambda: os.rename(path + "~", path)):
                try: act()
                except OSError: pass
    os._exit(0)`;
    for (let i = 0; i < 5; i++) {
      const outcome = await fixture.run({
        config: executorConfig({ command: ["python3", "-c", swap], environment: { VICTIM: victim.folder } }),
      });
      // A file may be gone when it is its turn; then the attempt reports it.
      if (outcome.kind === "failed") failedWith(outcome, "executor.artifact_failed");
      for (const { sha256 } of outcome.kind === "interrupted" ? [] : outcome.artifacts) {
        const blob = await fixture.blobs.open(sha256);
        assert.equal(readFileSync(blob?.path ?? "", "utf8"), "own");
      }
      victim.assertUntouched();
    }
  });
});

describe("what is no plain file of its own", () => {
  it("is not kept when it is a pipe, a socket or a device, and does not hold the attempt up", async () => {
    await using fixture = new RunnerFixture();
    const script = `cd "$SVC_OUTPUT_DIR"; mkfifo pipe
      python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
      mknod device c 1 5 2>/dev/null || mkfifo device; echo x >plain`;
    assert.deepEqual(artifactsOf(await fixture.sh(script)), ["plain"]);
    const warnings = fixture.listener.logs("worker").join("\n");
    for (const name of ["pipe", "socket", "device"])
      assert.match(warnings, new RegExp(`"${name}".*special file`));
  });

  it("is copied when it is a hard link: the other name keeps its file and may write to it", async () => {
    using victim = new Victim();
    await using fixture = new RunnerFixture();
    const path = join(victim.folder, "letter.txt");
    // The victim's folder may be on another file system than the home, where no hard link leads to.
    const outcome = await fixture.sh(
      'mkdir "$SVC_RUN_DIR/own"; echo private >"$SVC_RUN_DIR/own/file"; ln "$SVC_RUN_DIR/own/file" "$SVC_OUTPUT_DIR/linked"',
    );
    assert.deepEqual(artifactsOf(outcome), ["linked"]);
    const after = await fixture.sh(
      'cat "$SVC_RUN_DIR/own/file"; stat -c %a "$SVC_RUN_DIR/own/file"; echo more >>"$SVC_RUN_DIR/own/file"',
    );
    assert.match(after.kind === "succeeded" ? (after.command?.stdout ?? "") : "", /^private\n6/);
    const sha256 = outcome.kind === "succeeded" ? (outcome.artifacts[0]?.sha256 ?? "") : "";
    assert.equal(readFileSync((await fixture.blobs.open(sha256))?.path ?? "", "utf8"), "private\n");
    assert.equal(readFileSync(path, "utf8"), "private");
  });
});

describe("a worker that makes the runtime's notes beside its workspace symlinks", () => {
  it("has nothing written through them", async () => {
    using victim = new Victim();
    await using fixture = new RunnerFixture();
    fixture.write("a.txt", "a");
    const config = { environment: { VICTIM: victim.folder }, uploadPaths: [{ path: "a.txt", as: "a.txt" }] };
    const link = `for name in staged entries.jsonl staging; do rm -rf ${AGENT}/$name; ln -s "$VICTIM/letter.txt" ${AGENT}/$name; done`;
    const changes = { bundleFingerprint: "f" };
    assert.equal((await fixture.sh(`${link}; echo x >b.txt`, config, changes)).kind, "succeeded");
    // Somebody removes the workspace, so that it is staged afresh.
    await fixture.sh(`rm -rf "$SVC_RUN_DIR/../agents/worker/work"`, {}, { agentId: "other" });
    const outcome = await fixture.sh("cat a.txt", config, changes);
    assert.equal(outcome.kind === "succeeded" && outcome.command?.stdout, "a");
    victim.assertUntouched();
  });

  it("has no answer of a person added to another file, by a hard link or through a folder on the way", async () => {
    for (const ruin of [
      'ln -f "$SVC_RUN_DIR/own" "$SVC_HUMAN_RESPONSES"',
      `cd /; A=${ATTEMPT}; mv "$A" "$A.moved"; mkdir "$SVC_RUN_DIR/folder"; ln -s "$SVC_RUN_DIR/folder" "$A"`,
    ]) {
      await using fixture = new RunnerFixture();
      const { runner, listener } = fixture;
      const script = `echo kept >"$SVC_RUN_DIR/own"; ${ruin}; echo ruined; sleep 60`;
      const task = taskStart({ config: executorConfig({ command: ["sh", "-c", script] }) });
      runner.start(task);
      await listener.until(() => listener.logs("stdout").includes("ruined"));
      runner.respond(task.ref, '{"request_id":"ship"}');
      const shared = join(fixture.home, "runs/run_1/shared");
      assert.equal(readFileSync(join(shared, "own"), "utf8"), "kept\n");
      failedWith(await listener.outcome(task.ref), "executor.workspace_failed");
      assert.ok(!existsSync(join(shared, "folder/human-responses.jsonl")));
    }
  });
});
