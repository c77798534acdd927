// Where the runtime API is served, who is let in, and that the commands get there by themselves.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { chmod, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { closedPort, type Ended, oneCommand, start, startHere } from "../support/command-line.ts";
import { ask, call, runtimeApiOf, startGateway } from "../support/gateway-api.ts";
import { executor, graph, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

const TOKEN = "correct-horse-battery-staple-0123456789";
const OLD = "battery-staple-correct-horse-9876543210";
const prod = { SVC_ENV: "prod", SVC_API_TOKEN: TOKEN };

let folder = "";
let manifest = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe door "));
  manifest = join(folder, "hello.json");
  await writeFile(manifest, oneCommand("hello", "echo hello"));
});
after(() => rm(folder, { recursive: true, force: true }));

const socketOf = (program: Program) => join(program.home, "runtime.sock");
const troupe = (home: string, env: Record<string, string>, ...args: string[]): Promise<Ended> =>
  startHere(args, home, env).ended;

/** The code with which connecting fails; null when it does not. */
function refusedBy(target: { readonly port: number; readonly host: string } | { readonly path: string }) {
  return new Promise<string | null>((resolve) => {
    const socket = connect(target, () => resolve(null));
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.once("close", () => socket.destroy());
  });
}

async function succeeds(ended: Promise<Ended>): Promise<string> {
  const { code, out, err } = await ended;
  assert.equal(code, 0, out + err);
  return out;
}

describe("with SVC_ENV=prod", () => {
  test("the runtime API is a socket of this user, no port is open, and commands find it", async () => {
    const port = await closedPort();
    await using program = await startGateway({ env: { ...prod, SVC_RUNTIME_API_PORT: String(port) } });
    const line = new RegExp(`^  runtime API  ${socketOf(program)} \\(for this user alone\\)$`, "m");
    await until("it prints the socket", () => line.test(program.output()) || null);
    assert.equal(await refusedBy({ port, host: "127.0.0.1" }), "ECONNREFUSED");
    const { mode } = await stat(socketOf(program));
    assert.equal(mode & 0o777, 0o600);
    // A person's shell may have all variables of the server, or none but the home.
    for (const env of [prod, {}]) {
      const out = await succeeds(troupe(program.home, env, "run", manifest, "--runtime"));
      const id = /^Job (\S+)/m.exec(out)?.[1] ?? assert.fail(out);
      assert.match(out, /completed/);
      assert.match(
        await succeeds(troupe(program.home, env, "events", id, "--follow")),
        /^\S+ +job +completed$/m,
      );
      assert.match(await succeeds(troupe(program.home, env, "job", id)), /hello/);
    }
    const { out } = await troupe(program.home, prod, "doctor");
    assert.match(out, /runtime API +the socket .*runtime\.sock, for this user alone/);
  });

  const isRoot = process.getuid?.() === 0;
  test("another user of the machine gets through neither the socket nor a port", {
    skip: !isRoot,
  }, async () => {
    await using program = await startGatewayHere({ env: prod });
    await chmod(program.home, 0o755);
    const script = `require("net").connect(${JSON.stringify(socketOf(program))}).on("error", (e) => console.log(e.code)).on("connect", () => console.log("in"))`;
    const other: ChildProcess = spawn(process.execPath, ["-e", script], {
      uid: 65_534,
      gid: 65_534,
      cwd: "/",
    });
    let said = "";
    other.stdout?.on("data", (chunk: Buffer) => {
      said += String(chunk);
      other.kill();
    });
    await new Promise((resolve) => other.once("close", resolve));
    assert.equal(said, "EACCES\n");
  });

  test("a run that starts a gateway of its own serves no runtime API", async () => {
    const home = await temporaryHome();
    try {
      const SVC_API_PORT = String(await closedPort());
      const gate = join(folder, "own gate");
      const held = join(folder, "held.json");
      await writeFile(
        held,
        oneCommand("held", `echo started; while [ ! -e '${gate}' ]; do sleep 0.05; done`),
      );
      const running = start(["run", held], home, { ...prod, SVC_API_PORT });
      await running.shows("work              started");
      await assert.rejects(stat(join(home, "runtime.sock")), { code: "ENOENT" });
      await writeFile(gate, "");
      const { code, out, err } = await running.ended;
      assert.equal(code, 0, out + err);
      assert.match(
        err,
        new RegExp(`This process runs one for the length of the run, at \\S+:${SVC_API_PORT}/`),
      );
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });

  test("after kill -9 the next start takes the socket again, and one at a port removes it", async () => {
    const home = await temporaryHome();
    try {
      const killed = await startGateway({ home, env: prod });
      await killed.kill();
      assert.equal(await refusedBy({ path: socketOf(killed) }), "ECONNREFUSED");
      const again = await startGateway({ home, env: prod });
      await succeeds(troupe(home, prod, "run", manifest, "--runtime"));
      await again.kill();
      const port = String(await closedPort());
      await using dev = await startGatewayHere({ home, env: { SVC_RUNTIME_API_PORT: port } });
      await assert.rejects(stat(socketOf(dev)), { code: "ENOENT" });
      await succeeds(troupe(home, { SVC_RUNTIME_API_PORT: port }, "run", manifest, "--runtime"));
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});

describe("with tokens", () => {
  test("the port asks for one of them, commands send theirs, and none is shown", async () => {
    const env = { ...prod, SVC_RUNTIME_API_TOKEN: `${TOKEN.toUpperCase()},${OLD}` };
    const port = String(await closedPort());
    await using program = await startGateway({ env: { ...env, SVC_RUNTIME_API_PORT: port } });
    const runtime = { ...program, api: `http://127.0.0.1:${port}/api/v1`, url: `http://127.0.0.1:${port}` };
    assert.match(program.output(), /^ {2}runtime API {2}http:\S+ \(asks for its token\)$/m);
    const status = async (path: string, token?: string, method = "GET") => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      return ask(runtime, method, path, { headers });
    };
    for (const token of [TOKEN.toUpperCase(), OLD]) assert.equal((await status("/jobs", token)).status, 200);
    // The gateway's token is another one.
    for (const token of [undefined, "", "wrong", TOKEN]) {
      for (const [method, path] of [
        ["GET", "/jobs"],
        ["POST", "/jobs"],
        ["GET", "/jobs/x/events/stream"],
        ["GET", "/metrics"],
        ["POST", "/bundles"],
        ["GET", "/nothing"],
        ["POST", "/health"],
      ] as const) {
        const answer = await status(path, token, method);
        assert.equal(answer.status, 401, `${method} ${path} with ${token}`);
        assert.equal(answer.headers.get("www-authenticate"), "Bearer");
        assert.deepEqual(Object.keys(answer.body), ["error"]);
      }
    }
    assert.equal((await status("/health")).status, 200);
    const known = { SVC_RUNTIME_API_PORT: port, SVC_RUNTIME_API_TOKEN: OLD };
    assert.match(await succeeds(troupe(program.home, known, "run", manifest, "--runtime")), /completed/);
    const { SVC_RUNTIME_API_TOKEN: _none, ...unknown } = known;
    const without = await troupe(program.home, unknown, "run", manifest, "--runtime");
    assert.equal(without.code, 1);
    assert.match(without.err, /\(HTTP 401\)\nSet SVC_RUNTIME_API_TOKEN/);
    const shown = await troupe(program.home, env, "config");
    assert.match(shown.out, /SVC_RUNTIME_API_TOKEN +\*{8}/);
    assert.ok(![shown.out, program.output(), without.err].join().includes(OLD));
  });
});

test("off, no runtime API is served; the gateway is, and a command that needs it names the setting", async () => {
  await using program = await startGateway({ env: { SVC_RUNTIME_API: "off" } });
  assert.match(program.output(), /^ {2}runtime API {2}off$/m);
  await assert.rejects(stat(socketOf(program)), { code: "ENOENT" });
  assert.equal((await ask(program, "GET", "/jobs")).status, 200);
  const { code, err } = await troupe(program.home, { SVC_RUNTIME_API: "off" }, "events", "x");
  assert.equal(code, 2);
  assert.match(err, /SVC_RUNTIME_API is off/);
});

test("a service's health check changes nothing at this program's own listeners", async () => {
  await using program = await startGatewayHere();
  const runtime = await runtimeApiOf(program);
  const victim = await call(runtime, "POST", "/jobs", graph("victim", [sensor("s")]));
  const targets = [
    [runtime, `/api/v1/jobs/${victim.id}/cancel`],
    [runtime, "/api/v1/jobs/cleanup?all=true"],
    [program, "/api/v1/system/gc"],
  ] as const;
  const services = targets.map(([{ url }, path], i) => ({
    name: `aim-${i}`,
    port: Number(new URL(url).port),
    checks: [{ type: "http", method: "POST", path, interval_ms: 100, timeout_ms: 60_000 }],
  }));
  const node = { ...executor("aims", ["sleep", "600"], { lifecycle: "long_lived" }), services };
  const { id } = await call(runtime, "POST", "/jobs", { ...graph("aims", [node]), type: "service" });
  for (const i of targets.keys()) {
    await until(`the check of aim-${i} is refused`, async () => {
      const { text } = await ask(runtime, "GET", `/jobs/${id}/events`);
      return text.includes(`aim-${i}`) && text.split("HTTP 403").length > 3;
    });
  }
  const { job } = (await call(runtime, "GET", `/jobs/${victim.id}`)) as {
    readonly job: { readonly status: string };
  };
  assert.equal(job.status, "running");
  await call(runtime, "POST", `/jobs/${id}/cancel`);
});
