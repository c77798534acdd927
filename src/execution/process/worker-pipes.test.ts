// The pipes of one worker after the other, written to by the test itself.

import assert from "node:assert/strict";
import { closeSync, constants, existsSync, mkdtempSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { realClock } from "../../../test/support/execution.ts";
import { FifoSupply, openEnd } from "./pipes.ts";
import { WorkerPipes } from "./worker-pipes.ts";

class Fixture implements AsyncDisposable {
  readonly #root = mkdtempSync(join(tmpdir(), "troupe-worker-pipes-"));
  readonly fifos = new FifoSupply(join(this.#root, "pipes"));
  readonly events = join(this.#root, "events");
  readonly pipes = WorkerPipes.open(this.fifos, realClock, this.events);

  async [Symbol.asyncDispose](): Promise<void> {
    (await this.pipes).close();
    await this.fifos.close();
    rmSync(this.#root, { recursive: true });
  }
}

/** Writes as a worker does that ends at once. */
function write(path: string, text: string): void {
  const fd = openEnd(path, constants.O_WRONLY);
  writeSync(fd, text);
  closeSync(fd);
}

/** Listens, and gathers by stream what comes. */
function listen(pipes: WorkerPipes, backpressure: () => Promise<void> | null = () => null) {
  const got = { stdout: "", stderr: "", events: "" };
  const into = (stream: keyof typeof got) => (chunk: Buffer) => {
    got[stream] += chunk.toString();
  };
  pipes.listen({ stdout: into("stdout"), stderr: into("stderr"), events: into("events"), backpressure });
  return got;
}

describe("the pipes of a worker", () => {
  it("bring to each worker's listener all that it has written, from the first on", async () => {
    await using fixture = new Fixture();
    const pipes = await fixture.pipes;
    for (const name of ["first", "second", "third"]) {
      const got = listen(pipes);
      const long = name.repeat(10_000);
      write(pipes.stdout, long);
      write(pipes.stderr, name);
      write(fixture.events, `${name} event`);
      await pipes.drain();
      assert.deepEqual(got, { stdout: long, stderr: name, events: `${name} event` });
      assert.ok(pipes.isUsable(fixture.events));
      write(pipes.stdout, "of nobody's");
      await pipes.drain();
      assert.equal(got.stdout, long);
    }
  });

  it("hold what comes until the listener wants it, and then bring all of it in order", async () => {
    await using fixture = new Fixture();
    const pipes = await fixture.pipes;
    let got = "";
    const stdout = (chunk: Buffer) => {
      got += chunk.toString();
    };
    const room = Promise.withResolvers<void>();
    let asked = 0;
    const backpressure = () => (++asked === 1 ? room.promise : null);
    const sinks = { stdout, stderr: () => {}, events: () => {}, backpressure };
    {
      using _ = pipes.listenLater(sinks);
      write(pipes.stdout, "early ");
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
      write(pipes.stdout, "and later");
      assert.equal(got, "");
    }
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([got, asked], ["early ", 1], "a busy listener is given no more");
    room.resolve();
    await pipes.drain();
    assert.equal(got, "early and later");
  });

  it("are not drained before a busy listener has taken the rest", async () => {
    await using fixture = new Fixture();
    const pipes = await fixture.pipes;
    const room = Promise.withResolvers<void>();
    const got = listen(pipes, () => room.promise);
    write(pipes.stdout, "first ");
    while (got.stdout === "") await new Promise((resolve) => setImmediate(resolve));
    write(pipes.stdout, "second");
    let isDrained = false;
    const drained = pipes.drain().then(() => {
      isDrained = true;
    });
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isDrained, false);
    room.resolve();
    await drained;
    assert.equal(got.stdout, "first second");
  });

  it("are read to their ends and given up while somebody else has them", async () => {
    await using fixture = new Fixture();
    const pipes = await fixture.pipes;
    const got = listen(pipes);
    const held = openEnd(pipes.stdout, constants.O_WRONLY);
    writeSync(held, "last words");
    let asked = 0;
    await pipes.finish(async () => {
      asked++;
    });
    assert.deepEqual([got.stdout, asked], ["last words", 1]);
    assert.equal(pipes.isUsable(fixture.events), false);
    assert.equal(existsSync(pipes.stdout), false, "nobody gets this pipe again");
    closeSync(held);
  });
});
