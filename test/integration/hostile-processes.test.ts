// Workers whose processes do not want to end: after the job none of them is left, whatever they do to stay, and the
// jobs beside them know nothing of it.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { oneCommand } from "../support/manifests.ts";
import { processesWith, seesProcesses } from "../support/processes.ts";
import { type Program, startProgram } from "../support/program.ts";
import { call, follow, historyOf, type SeenEvent } from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

/** Starts sleepers that stay: in the group, in a session of their own, and orphaned by two forks. */
const SLEEPERS = [
  'sleep 300 > /dev/null 2>&1 & echo $! >> "$PIDS"',
  "setsid sh -c 'echo $$ >> \"$PIDS\"; exec sleep 300' > /dev/null 2>&1 &",
  'sh -c \'setsid sh -c "echo \\$\\$ >> \\"\\$PIDS\\"; exec sleep 300" & exit 0\' > /dev/null 2>&1',
  'until [ "$(wc -l < "$PIDS")" -ge 3 ]; do sleep 0.01; done',
].join("\n");
/** The same, and deaf to requests to end; sleep inherits the deafness. */
const DEAF_SLEEPERS = `trap "" TERM INT HUP\n${SLEEPERS}`;

describe("processes that stay", {
  concurrency: true,
  skip: seesProcesses ? false : "needs /proc to see processes",
}, () => {
  let program: Program;
  let folder = "";
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "troupe-pids-"));
    program = await startProgram({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "12" } });
  });
  after(async () => {
    try {
      await program.stop();
      // One that was killed a moment ago may still be on its way out; one that stays, stays for minutes.
      await until("nothing is left of any job", () => processesWith(program.home).length === 0);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  /** Submits a command that writes the pids of its processes to a file of this name. */
  async function submit(name: string, command: string, config: JsonObject = {}): Promise<string> {
    const manifest = oneCommand(name, command, { ...config, environment: { PIDS: join(folder, name) } });
    return String((await call(program, "POST", "/jobs", manifest)).id);
  }

  /** Waits until so many processes of a job have written that they are there. */
  async function started(name: string, count: number): Promise<void> {
    await until(`${count} processes of ${name} have started`, async () => {
      const text = await readFile(join(folder, name), "utf8").catch(() => "");
      return text.split("\n").length > count;
    });
  }

  /** By what they inherit and not by their ids, which others are given soon on a machine that starts very many. */
  async function allGone(name: string): Promise<void> {
    await until(`nothing is left of ${name}`, () => processesWith(join(folder, name)).length === 0);
  }

  /** A job that must run to its end while the others are at work. */
  async function besides(): Promise<void> {
    const { id } = await call(program, "POST", "/jobs", oneCommand("bystander", "echo here"));
    assert.equal((await lastOf(String(id))).type, "job_completed");
  }

  async function lastOf(jobId: string): Promise<SeenEvent> {
    const last = (await historyOf(program, jobId)).at(-1);
    assert.ok(last !== undefined);
    return last;
  }

  test("a command that leaves children behind completes, and its children are ended", async () => {
    const jobId = await submit("leaving", SLEEPERS);
    await started("leaving", 3);
    await besides();
    assert.equal((await lastOf(jobId)).type, "job_completed");
    await allGone("leaving");
  });

  test("a deaf command and all its children are ended when its job is cancelled", async () => {
    const jobId = await submit("cancelled", `${DEAF_SLEEPERS}\nwait`);
    await started("cancelled", 3);
    const answer = await call(program, "POST", `/jobs/${jobId}/cancel`);
    assert.equal(answer.status, "cancelled", "the answer does not wait for the processes");
    await besides();
    assert.equal((await lastOf(jobId)).type, "job_cancelled");
    await allGone("cancelled");
  });

  test("a deaf command and all its children are ended at its timeout, which the failure names", async () => {
    // On a busy machine its time may be over before all of them have started; whatever has is ended then.
    const jobId = await submit("late", `${DEAF_SLEEPERS}\nwait`, { timeout_seconds: 2 });
    const last = await lastOf(jobId);
    assert.equal(last.error?.code, "executor.timeout", JSON.stringify(last));
    assert.match(JSON.stringify(last.error), /after 2 s, its timeout/);
    await besides();
    await allGone("late");
  });

  test("a command whose leader ends at SIGTERM while its children are deaf leaves none of them", async () => {
    const children = "(trap '' TERM; echo started >> \"$PIDS\"; exec setsid sleep 300) &\n".repeat(3);
    const jobId = await submit("half-deaf", `${children}wait`);
    await started("half-deaf", 3);
    await call(program, "POST", `/jobs/${jobId}/cancel`);
    await allGone("half-deaf");
  });

  test("200 deaf children at once are all ended", async () => {
    const bomb = [
      'trap "" TERM',
      "i=0",
      'while [ $i -lt 200 ]; do sleep 300 & echo $! >> "$PIDS"; i=$((i+1)); done',
      "wait",
    ].join("\n");
    const jobId = await submit("bomb", bomb);
    await started("bomb", 200);
    await besides();
    await call(program, "POST", `/jobs/${jobId}/cancel`);
    await besides();
    await allGone("bomb");
  });

  test("a command that hops from process to process does not survive its cancellation", async () => {
    // Few at a time: each one starts the next and is gone. By itself it ends only when this test's folder is removed.
    const hop = '[ -e "$PIDS" ] || exit 0; setsid sh "$0" & exit 0';
    const command = `cat > hop.sh <<'EOF'\n${hop}\nEOF\necho hopping >> "$PIDS"; sh hop.sh; sleep 300`;
    const jobId = await submit("hopping", command);
    await started("hopping", 1);
    await call(program, "POST", `/jobs/${jobId}/cancel`);
    await besides();
    // One look may miss who hops meanwhile.
    let looks = 0;
    await until("nothing of it is left", () => {
      looks = processesWith(join(folder, "hopping")).length === 0 ? looks + 1 : 0;
      return looks === 10;
    });
  });

  test("a job is not held up by an escaped process that keeps its stdout open", async () => {
    const command = 'echo printed; setsid sleep 300 & echo $! >> "$PIDS"; exit 0';
    const jobId = await submit("holding", command);
    for await (const { type } of follow(program, jobId)) if (type === "sandbox_job_completed") break;
    assert.equal((await lastOf(jobId)).type, "job_completed");
    await started("holding", 1);
    await allGone("holding");
  });
});
