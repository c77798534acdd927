// `troupe logs` as people use it: against the real program, of a run that is still open.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startHere } from "../support/command-line.ts";
import { createJob, ended, happens, startRun } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

describe("troupe logs", () => {
  let folder = "";
  let program: Program;
  let jobId = "";
  let runId = "";
  const gate = () => join(folder, "gate");

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "troupe-cli-logs-"));
    program = await startGatewayHere();
    // 250 lines, so that the newest of them need more than one page; then it waits, and says one thing more.
    const script = `seq -f 'line %g' 1 250; echo 'WARN It is Odd' >&2; while [ ! -e '${gate()}' ]; do sleep 0.05; done; echo last`;
    jobId = await createJob(program, graph("talks", [executor("work", script)]));
    runId = await startRun(program, jobId);
    // Of the two streams either may be read first.
    for (const last of ["line 250", "WARN It is Odd"]) {
      await happens(program, runId, ({ type, payload }) => type === "log" && payload.message === last);
    }
  });
  after(async () => {
    await program.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const troupe = (...args: string[]) => startHere([...args, "--url", program.api], program.home);
  /** The messages that a command prints; it must succeed. */
  const shown = async (...args: string[]): Promise<string[]> => {
    const { code, out, err } = await troupe(...args, "--json").ended;
    assert.equal(code, 0, `troupe ${args.join(" ")}:\n${out}${err}`);
    const lines = out.split("\n").filter((line) => line !== "");
    return lines.map((line) => String((JSON.parse(line) as { message: unknown }).message));
  };
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, i) => `line ${from + i}`);

  test("prints all of it, the newest of it, or what has a text; of a run, and of a job's latest one", async () => {
    const stdout = (messages: readonly string[]) =>
      messages.filter((message) => message !== "WARN It is Odd");
    assert.deepEqual(stdout(await shown("logs", runId)), lines(1, 250));
    assert.deepEqual(await shown("logs", runId, "--text", "is odd"), ["WARN It is Odd"]);
    assert.deepEqual(await shown("logs", jobId, "--text", "LINE 25"), ["line 25", "line 250"]);
    assert.deepEqual(await shown("runs", "logs", runId, "--text", "line", "--tail", "210"), lines(41, 250));
    assert.deepEqual(await shown("logs", runId, "--text", "line", "--tail", "3"), lines(248, 250));
    assert.deepEqual(await shown("logs", runId, "--level", "warn"), ["WARN It is Odd"]);
    assert.deepEqual(await shown("logs", runId, "--agent", "nobody"), []);
    const plain = await troupe("logs", runId, "--tail", "1", "--text", "line").ended;
    assert.match(plain.out, /^\d\d:\d\d:\d\d\.\d{3} {2}work +line 250 \{.*\}\n$|work +line 250\n$/);
  });

  test("takes times, and how long ago they were", async () => {
    assert.equal((await shown("logs", runId, "--since", "1h")).length, 251);
    assert.deepEqual(await shown("logs", runId, "--until", "1h"), []);
    assert.deepEqual(await shown("logs", runId, "--since", "2999-01-01"), []);
    assert.equal((await shown("logs", runId, "--until", "2999-01-01T00:00:00Z", "--tail", "5")).length, 5);
  });

  test("rejects wrong values, and tells what is allowed", async () => {
    for (const [args, message] of [
      [["--since", "yesterday"], /--since: "yesterday" is not a time\. Use 30s/],
      [["--until", "9x"], /--until/],
      [["--tail", "0"], /--tail needs a whole number from 1/],
      [["--tail", "many"], /--tail needs/],
      [["--text", "x".repeat(201)], /--text takes 200/],
      [["--level", "loud"], /--level: "loud" is not one of trace/],
    ] as const) {
      const { code, err } = await troupe("logs", runId, ...args).ended;
      assert.equal(code, 2, err);
      assert.match(err, message);
    }
  });

  test("follows: all, from the newest on, and with filters that leave the end out; and ends with the run", async () => {
    const followed = [
      shown("logs", runId, "--follow"),
      shown("logs", runId, "--follow", "--tail", "2", "--text", "l"),
      shown("logs", jobId, "--follow", "--level", "warn"),
    ];
    // Whether a command has begun to follow or not: what comes is the same.
    await writeFile(gate(), "");
    await ended(program, runId);
    const [all = [], newest, warnings] = await Promise.all(followed);
    assert.deepEqual(all.toSorted(), ["WARN It is Odd", ...lines(1, 250), "last"].toSorted());
    assert.deepEqual(newest?.at(-1), "last");
    assert.ok(newest !== undefined && newest.length >= 2 && newest.length <= 3);
    assert.deepEqual(warnings, ["WARN It is Odd"]);
    assert.deepEqual(await shown("logs", runId, "--follow", "--tail", "1"), ["last"]);
  });
});
