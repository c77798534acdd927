// The files in deploy/, by the programs that read them.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ask, startGateway } from "../support/gateway-api.ts";
import { startGatewayHere } from "../support/in-process.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const inDeploy = (name: string) => join(root, "deploy", name);

/** Why tests with a tool are skipped here, or false. */
function missing(tool: string): string | false {
  try {
    execFileSync(tool, ["--version"], { stdio: "ignore" });
    return false;
  } catch {
    return `there is no ${tool}`;
  }
}

/** Runs a tool. @returns its exit code and all that it said */
function run(tool: string, args: readonly string[], input = "", env = process.env) {
  return new Promise<{ code: unknown; said: string }>((resolve) => {
    const child = execFile(tool, args, { env, cwd: root }, (error, out, err) =>
      resolve({ code: error === null ? 0 : error.code, said: out + err }),
    );
    child.stdin?.end(input);
  });
}

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-deploy-"));
});
after(() => rm(folder, { recursive: true, force: true }));

describe("alerts.yml", { skip: missing("promtool") }, () => {
  test("is valid, and each alert fires when it must and not before", async () => {
    const check = await run("promtool", ["check", "rules", inDeploy("alerts.yml")]);
    assert.equal(check.code, 0, check.said);
    const { code, said } = await run("promtool", [
      "test",
      "rules",
      join(import.meta.dirname, "alerts.test.yml"),
    ]);
    assert.equal(code, 0, said);
  });

  test("names metrics that the program has, and promtool has nothing to say about these", async () => {
    await using program = await startGatewayHere();
    const { text } = await ask(program, "GET", "/metrics?format=prometheus");
    const { code, said } = await run("promtool", ["check", "metrics"], text);
    assert.deepEqual([code, said], [0, ""]);
    const rules = await readFile(inDeploy("alerts.yml"), "utf8");
    const names = new Set([...rules.matchAll(/\btroupe_\w+/g)].map(([name]) => name.replace(/_bucket$/, "")));
    assert.ok(names.size >= 6);
    for (const name of names) assert.match(text, new RegExp(`^# TYPE ${name} `, "m"));
    assert.match(text, /^troupe_event_loop_lag_seconds\{percentile="99"\} /m);
  });
});

describe("troupe.service", () => {
  test("is understood by systemd without a warning", { skip: missing("systemd-analyze") }, async () => {
    const unit = await readFile(inDeploy("troupe.service"), "utf8");
    // The program's place on this machine.
    const placed = unit.replace("/usr/bin/node /opt/troupe/bin/", `${process.execPath} ${root}bin/`);
    assert.notEqual(placed, unit);
    const file = join(folder, "troupe.service");
    await writeFile(file, placed);
    const { code, said } = await run("systemd-analyze", [
      "verify",
      "--man=no",
      "--recursive-errors=no",
      file,
    ]);
    assert.equal(code, 0, said);
    assert.doesNotMatch(said, /troupe/);
  });

  test("starts the program behind its token, with the runtime API at a socket", async () => {
    const unit = await readFile(inDeploy("troupe.service"), "utf8");
    const token = "the-token-that-systemd-hands-over";
    await writeFile(join(folder, "api-token"), `${token}\n`);
    const settings = [...unit.matchAll(/^Environment=(.*)$/gm)]
      .flatMap(([, line = ""]) => line.split(" "))
      .map((setting) => setting.replaceAll("%d", folder).split("="));
    const { SVC_HOME: home, ...env } = Object.fromEntries(settings) as Record<string, string>;
    assert.equal(home, "/var/lib/troupe");
    assert.match(unit, /^StateDirectory=troupe$/m);
    await using program = await startGateway({ env });
    assert.equal((await ask(program, "GET", "/jobs")).status, 401);
    const headers = { authorization: `Bearer ${token}` };
    assert.equal((await ask(program, "GET", "/jobs", { headers })).status, 200);
    assert.match(program.output(), /runtime\.sock \(for this user alone\)/);
  });
});
