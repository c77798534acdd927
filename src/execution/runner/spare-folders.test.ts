// What commands find and leave when their folders are used again: real commands, one after the other in one run.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { commandOf, executorConfig, RunnerFixture } from "../../../test/support/execution.ts";
import { makeGates } from "../../../test/support/gates.ts";
import type { TaskOutcome } from "../../engine/task-port.ts";

const linuxOnly = { skip: process.platform === "linux" ? false : "needs Linux" };
const gates = await makeGates();
after(() => gates.remove());

/** Prints all that is in the agent's folder, with kinds, modes and numbers of links. */
const LIST = `cd "$SVC_WORKDIR/.." && find . -printf '%y %m %n %p\\n' | sed 's#attempts/[0-9-]*#attempts/N#' | sort`;
const OUT_INODE = 'stat -c %i "$SVC_OUTPUT_DIR"';
const ATTEMPT = '"$SVC_OUTPUT_DIR/.."';

const printed = (outcome: TaskOutcome) => commandOf(outcome).stdout;

/** Runs a script as an agent of its own. */
function runAs(fixture: RunnerFixture, agentId: string, script: string, runId = "run_1", body = {}) {
  return fixture.sh(script, {}, { agentId, runId, body });
}

function artifactsOf(outcome: TaskOutcome): readonly string[] {
  assert.equal(outcome.kind, "succeeded", JSON.stringify(outcome));
  return outcome.kind === "succeeded" ? outcome.artifacts.map(({ name }) => name) : [];
}

function left(fixture: RunnerFixture, runId = "run_1"): string[] {
  return readdirSync(join(fixture.home, "runs", runId, "agents"), { recursive: true }) as string[];
}

describe("the folders of commands that leave nothing", () => {
  it("are used again within the run, and look as new ones", linuxOnly, async () => {
    await using fixture = new RunnerFixture();
    const script = `${LIST}; cat "$SVC_INPUT_FILE" "$SVC_MESSAGE_FILE" "$SVC_CONTEXT_FILE"`;
    const first = await runAs(fixture, "first", `${OUT_INODE}; ${LIST}`);
    const long = await runAs(fixture, "long", `${OUT_INODE}; ${script}`, "run_1", {
      word: "former ".repeat(1000),
    });
    const text = await fixture.sh('cat "$SVC_BODY_FILE"', {}, { agentId: "text", body: "former text" });
    assert.equal(printed(text), "former text");
    const again = await runAs(fixture, "again", `${OUT_INODE}; ${LIST}`);
    assert.equal(printed(again), printed(first), "the same folder, with the same in it");
    const last = await runAs(fixture, "last", script);
    assert.match(printed(long), /former/);
    assert.doesNotMatch(printed(last), /former/);
    const other = await runAs(fixture, "other", OUT_INODE, "run_2");
    assert.notEqual(
      printed(other),
      printed(first).split("\n")[0] ?? "",
      "another run has folders of its own",
    );
  });

  it("hold nothing of what a command was given once it has ended", linuxOnly, async () => {
    await using fixture = new RunnerFixture();
    const body = { word: "given-to-the-worker" };
    const find = `grep -rl -D skip given-to-the-worker '${fixture.home}/runs' | wc -l`;
    assert.equal(printed(await runAs(fixture, "first", find, "run_1", body)).trim(), "2");
    assert.equal(printed(await runAs(fixture, "second", find)).trim(), "0");
  });

  for (const [what, script] of [
    ["a file among the outputs", 'echo x > "$SVC_OUTPUT_DIR/former.txt"'],
    ["a link among the outputs", 'ln -s /tmp "$SVC_OUTPUT_DIR/former"'],
    ["a file beside the inputs", `echo x > ${ATTEMPT}/former.txt`],
    ["a file beside the workspace", 'echo x > "$SVC_WORKDIR/../former.txt"'],
    ["an output folder of its own", 'rmdir "$SVC_OUTPUT_DIR"; mkdir -m 755 "$SVC_OUTPUT_DIR"'],
    ["a link for the output folder", 'rmdir "$SVC_OUTPUT_DIR"; ln -s /tmp "$SVC_OUTPUT_DIR"'],
    ["a link for an input", 'rm "$SVC_INPUT_FILE"; ln -s /etc/hostname "$SVC_INPUT_FILE"'],
    ["a second name of an input", 'ln "$SVC_INPUT_FILE" "$SVC_RUN_DIR/input-$SVC_AGENT_ID"'],
    ["another event stream", 'rm "$SVC_EVENT_STREAM"; mkfifo -m 600 "$SVC_EVENT_STREAM"'],
    ["a second name of the event stream", 'ln "$SVC_EVENT_STREAM" "$SVC_RUN_DIR/events-$SVC_AGENT_ID"'],
    ["a file for the event stream", 'rm "$SVC_EVENT_STREAM"; echo x > "$SVC_EVENT_STREAM"'],
    ["other rights", 'chmod 777 "$SVC_OUTPUT_DIR" "$SVC_WORKDIR" "$SVC_INPUT_FILE"'],
    ["a pipe for an input", 'rm "$SVC_MESSAGE_FILE"; mkfifo -m 600 "$SVC_MESSAGE_FILE"'],
    ["answers of people", 'echo x >> "$SVC_HUMAN_RESPONSES"'],
    ["a link for the workspace", 'cd /; rmdir "$SVC_WORKDIR"; ln -s /tmp "$SVC_WORKDIR"'],
    [
      "its folder elsewhere",
      'own="$SVC_WORKDIR/../../$SVC_AGENT_ID"; mv "$own" "$SVC_RUN_DIR"; ln -s "$SVC_RUN_DIR/$SVC_AGENT_ID" "$SVC_RUN_DIR/../agents"',
    ],
  ] as const) {
    it(`do not show the next command ${what}`, linuxOnly, async () => {
      await using fixture = new RunnerFixture();
      const asNew = printed(await runAs(fixture, "fresh", LIST, "run_2"));
      await runAs(fixture, "bad", script);
      const report = `echo '{"type":"reported"}' 1<> "$SVC_EVENT_STREAM"`;
      const next = await runAs(fixture, "next", `${LIST}; cat "$SVC_INPUT_FILE"; ${report}`, "run_1", {
        n: 1,
      });
      assert.equal(printed(next), `${asNew}{"n":1}`);
      assert.equal(fixture.listener.events.filter(({ type }) => type === "reported").length, 1);
      assert.deepEqual(artifactsOf(next), []);
    });
  }

  it("are out of reach for a process that outlived its command", linuxOnly, async () => {
    await using fixture = new RunnerFixture();
    const [go, done] = [gates.pipe("go"), gates.pipe("done")];
    const late = `read x < '${go}'; echo late > late; echo late > ../late; echo late > "$SVC_OUTPUT_DIR/late"; echo late > '${done}'`;
    await runAs(
      fixture,
      "first",
      `cd "$SVC_OUTPUT_DIR"; echo; setsid sh -c 'echo $$ > "$SVC_RUN_DIR/pid"; ${late.replaceAll("'", `'"'"'`)}' <&- >&- 2>&- & until [ -s "$SVC_RUN_DIR/pid" ]; do sleep 0.01; done`,
    );
    const second = await runAs(
      fixture,
      "second",
      `echo > '${go}'; read x < '${done}'; echo "$x"; ls ${ATTEMPT} "$SVC_OUTPUT_DIR" | grep -c late || true`,
    );
    assert.equal(printed(second), "late\n0\n");
    assert.deepEqual(artifactsOf(second), []);
  });

  it("are gone soon, and when the runner has ended", async () => {
    await using fixture = new RunnerFixture();
    const twenty = Array.from({ length: 20 }, (_, n) => runAs(fixture, `agent-${n}`, "true"));
    for (const outcome of await Promise.all(twenty)) assert.equal(outcome.kind, "succeeded");
    await fixture.runner.drain(0);
    assert.deepEqual(left(fixture), []);
  });

  it("stay while something is in the workspace", async () => {
    await using fixture = new RunnerFixture();
    await runAs(fixture, "keeper", "echo kept > file");
    const { kind } = await fixture.run({
      agentId: "keeper",
      config: executorConfig({ command: ["rm", "file"] }),
    });
    assert.equal(kind, "succeeded");
    await runAs(fixture, "writer", "echo kept > file");
    await fixture.runner.drain(0);
    assert.deepEqual(
      left(fixture).filter((path) => path.endsWith("/file")),
      ["writer/work/file"],
    );
    assert.ok(!left(fixture).includes("keeper"));
  });
});
