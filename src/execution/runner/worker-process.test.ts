import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { eventually, realClock } from "../../../test/support/execution.ts";
import { FifoSupply } from "../process/pipes.ts";
import { ProcessTrees } from "../process/process-trees.ts";
import { Spawner } from "../process/spawner.ts";
import { WorkerPipes } from "../process/worker-pipes.ts";
import { WorkerProcess } from "./worker-process.ts";

/** Remembers what was taken. */
class WatchedSupply extends FifoSupply {
  readonly taken: string[] = [];

  override async take(count: number): Promise<string[]> {
    const paths = await super.take(count);
    this.taken.push(...paths);
    return paths;
  }
}

it("a worker, started or not, leaves no named pipe and no open file", async () => {
  const root = mkdtempSync(join(tmpdir(), "troupe-worker-"));
  const fifos = new WatchedSupply(join(root, "pipes"));
  const tools = { fifos, spawner: new Spawner(), trees: new ProcessTrees(root, realClock), clock: realClock };
  let stdout = "";
  const sinks = {
    stdout: (chunk: Buffer) => {
      stdout += chunk.toString();
    },
    stderr: () => {},
    events: () => {},
    backpressure: () => null,
  };
  const openPipes = () => WorkerPipes.open(fifos, realClock, join(root, `events-${fifos.taken.length}`));
  const start = (file: string, pipes: WorkerPipes) =>
    WorkerProcess.start(
      {
        file,
        args: ["-n", "1"],
        cwd: root,
        env: { PATH: process.env.PATH ?? "" },
        files: [],
        mark: tools.trees.newMark(),
        pipes,
        takesInput: true,
        memoryBytes: null,
        wrapped: null,
      },
      { tools, sinks },
    );
  const echo = async () => {
    const pipes = await openPipes();
    const worker = await start("head", pipes);
    worker.writeLine("a line");
    assert.equal((await worker.ended)?.exitCode, 0);
    await pipes.finish(async () => {});
  };
  const openFiles = () => (existsSync("/proc/self/fd") ? readdirSync("/proc/self/fd").length : 0);
  try {
    await echo();
    const before = openFiles();
    for (let i = 0; i < 5; i++) await echo();
    const unused = await openPipes();
    await assert.rejects(start("no-such-program", unused), { code: "ENOENT" });
    unused.close();
    await eventually(() => openFiles() <= before);
    assert.equal(stdout, "a line\n".repeat(6));
    assert.deepEqual(fifos.taken.filter(existsSync), []);
  } finally {
    await tools.spawner.close();
    await fifos.close();
    rmSync(root, { recursive: true });
  }
});
