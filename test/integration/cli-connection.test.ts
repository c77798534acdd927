// The gateway's commands and their connection: a token, an unreachable gateway, a gateway that dies while it is followed;
// against the real program.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { writeFolder } from "../support/bundle-files.ts";
import { closedPort, oneCommand, startHere } from "../support/command-line.ts";
import { happens, startGateway } from "../support/gateway-api.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { temporaryHome } from "../support/program.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe cli connection "));
});
after(() => rm(folder, { recursive: true, force: true }));

/** A bundle's folder with one command in it. @returns its path */
const bundle = (name: string, command: string): Promise<string> =>
  writeFolder(join(folder, name), { "manifest.json": oneCommand(name, command) });

test("a token is taken from SVC_API_TOKEN, and missed with words", async () => {
  const token = "correct-horse-battery-staple";
  await using program = await startGatewayHere({ env: { SVC_API_TOKEN: token } });
  const troupe = (env: Record<string, string>, ...args: string[]) =>
    startHere([...args, "--url", program.api], program.home, env).ended;
  const command = `echo made > "$SVC_OUTPUT_DIR/final_artifact.txt"`;
  const target = await bundle("guarded", command);
  const saved = join(folder, "guarded saved");
  const launched = await troupe({ SVC_API_TOKEN: token }, "launch", target, "--save", saved);
  assert.equal(launched.code, 0, launched.out + launched.err);
  assert.equal(await readFile(join(saved, "final_artifact.txt"), "utf8"), "made\n");
  const without = await troupe({}, "launch", target);
  assert.equal(without.code, 1);
  assert.match(without.err, /\(HTTP 401\)\nSet SVC_API_TOKEN to the token/);
  const wrong = await troupe({ SVC_API_TOKEN: "wrong-horse-battery-staple" }, "runs");
  assert.equal(wrong.code, 1);
  assert.match(wrong.err, /SVC_API_TOKEN is set here, but the gateway has another token/);
  assert.ok(!(without.err + wrong.err + launched.out).includes("horse"));
});

test("links to the console are printed, listed and ended; one that was opened is good no more", async () => {
  const token = "correct-horse-battery-staple";
  await using program = await startGatewayHere({ env: { SVC_API_TOKEN: token } });
  const troupe = async (...args: string[]) => {
    const { code, out, err } = await startHere(["console", ...args, "--url", program.api], program.home, {
      SVC_API_TOKEN: token,
    }).ended;
    return { code, out: out.trim(), err };
  };
  const opened = await troupe();
  assert.match(opened.out, /^http:\/\/127\.0\.0\.1:\d+\/console#link=[\w-]{43}$/);
  assert.match(opened.err, /^It signs one browser in, within a minute\.$/m);
  const [url = "", link] = opened.out.split("#link=");
  const signIn = () => fetch(`${url}/session`, { method: "POST", body: JSON.stringify({ link }), headers });
  const headers = { "content-type": "application/json" };
  assert.deepEqual([(await signIn()).status, (await signIn()).status], [200, 401]);
  const listed = await troupe("sessions");
  const [id = ""] = /session_\w+/.exec(listed.out) ?? [];
  assert.match(listed.out, new RegExp(`${id} +session +everything `));
  assert.equal((await troupe("end", id)).out, `Ended ${id}.`);
  const again = await troupe("end", id);
  assert.equal(again.code, 1);
  assert.match(again.err, /was not found, or has ended/);
  assert.equal((await troupe("sessions")).err, "Nobody has signed in, and there are no links.\n");
  assert.match((await troupe("share", "run_none")).err, /Run run_none was not found/);
  assert.match(
    (await troupe("share", "run_none", "--days", "0")).err,
    /--days takes a whole number from 1 to 365/,
  );
});

test("where no token is needed, the console's address is all there is to print", async () => {
  await using program = await startGatewayHere();
  const { out } = await startHere(["console", "--url", program.api], program.home).ended;
  assert.equal(out, `${program.url}/console\n`);
});

test("without a gateway every command fails immediately, and tells what to start", async () => {
  const home = await temporaryHome();
  try {
    const port = String(await closedPort());
    const target = await bundle("alone", "true");
    for (const args of [
      ["runs"],
      ["jobs", "show", "job_1"],
      ["launch", target, "--url", `http://127.0.0.1:${port}`],
      ["events", "run_1", "--follow"],
    ]) {
      const { code, out, err } = await startHere(args, home, { SVC_API_PORT: port }).ended;
      assert.deepEqual([code, out], [1, ""], args.join(" "));
      const expected = `troupe: No Troupe gateway answers at http://127.0.0.1:${port}/api/v1.\nStart one with \`troupe up\``;
      assert.ok(err.startsWith(expected), err);
    }
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

test("a gateway that dies while it is followed is found again when it is back: no event is lost or twice", async () => {
  const home = await temporaryHome();
  const gate = join(folder, "survived gate");
  // A port of the system's choice could be anybody's by the time of the second start.
  const env = { SVC_API_PORT: String(await closedPort()) };
  const first = await startGateway({ home, env });
  const url = ["--url", first.api];
  try {
    const command = `echo started; while [ ! -e '${gate}' ]; do sleep 0.05; done`;
    const watching = startHere(["launch", await bundle("survived", command), ...url], home);
    await watching.shows("work              started");
    const id = /run_[0-9a-z]{8,}/.exec(watching.printed())?.[0] ?? assert.fail(watching.printed());
    const following = startHere(["runs", "events", id, "--follow", "--json", ...url], home);
    await following.shows('"message":"started"');
    await first.kill();
    await using second = await startGatewayHere({ home, env });
    await happens(second, id, "job_recovered");
    await writeFile(gate, "");
    const watched = await watching.ended;
    assert.equal(watched.code, 0, watched.err);
    assert.match(watched.out, /job recovered.*run_\S+ completed\n/s);
    const followed = await following.ended;
    assert.equal(followed.code, 0, followed.err);
    const lines = followed.out.trim().split("\n");
    const ids = lines.map((line) => JSON.parse(line).id);
    assert.deepEqual(
      ids,
      ids.map((_, i) => i + 1),
    );
  } finally {
    await first.kill();
    await rm(home, { recursive: true, force: true });
  }
});
