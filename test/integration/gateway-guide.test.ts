// docs/gateway-api.md against the program: every route and every error code is in it, and its examples run as they
// stand, one after the other.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { problemCodes } from "../../src/http/core/problem-codes.ts";
import { startGateway } from "../support/gateway-api.ts";
import { openApiOf } from "../support/openapi.ts";
import type { Program } from "../support/program.ts";

let program: Program;
let guide = "";
before(async () => {
  program = await startGateway({ args: ["gateway"] });
  guide = await readFile(new URL("../../docs/gateway-api.md", import.meta.url), "utf8");
});
after(() => program.stop());

test("the tables of the guide list every route, and no other", async () => {
  const { paths } = await openApiOf(program);
  const served = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace("/api/v1", "")}`),
  );
  const listed = [...guide.matchAll(/^\| `([A-Z]+) (\/[^`]+)`((?:, `\/\w+`)*) \|/gm)].flatMap(
    ([, method, path = "", more = ""]) => {
      // `/jobs/{job_id}/pause`, `/resume`: only the end differs.
      const others = [...more.matchAll(/`(\/\w+)`/g)].map(([, end]) => path.replace(/\/\w+$/, end ?? ""));
      return [path, ...others].map((one) => `${method} ${one}`);
    },
  );
  assert.deepEqual(listed.sort(), served.sort());
});

test("the guide lists every error code with its status and meaning", () => {
  const listed = [...guide.matchAll(/^\| (\d{3}) \| `(\w+)` \| (.+) \|$/gm)].map(
    ([, status, code, meaning]) => [code, Number(status), meaning],
  );
  const codes = Object.entries(problemCodes).map(([code, { status, meaning }]) => [code, status, meaning]);
  assert.deepEqual(listed, codes);
});

const missing = ["bash", "curl", "zip", "jq"].find(
  (tool) => spawnSync(tool, ["--version"]).error !== undefined,
);

/** A proxy in the tester's environment is not asked, and what hangs is an error. */
const CAREFULLY = `curl() { command curl --noproxy '*' --max-time 120 "$@"; }\n`;

test("the guide's examples run as they stand", { skip: missing && `there is no ${missing}` }, async () => {
  const blocks = [...guide.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = ""]) => block);
  assert.ok(blocks.length >= 8);
  const script = blocks.join("\n").replaceAll("http://127.0.0.1:54001", program.url);
  const folder = await mkdtemp(join(tmpdir(), "troupe guide "));
  try {
    // An example that asks until something is so would ask for ever.
    const shell = spawn("bash", ["-euo", "pipefail"], { cwd: folder, timeout: 180_000 });
    shell.stdin.end(CAREFULLY + script);
    const [printed, complained] = await Promise.all([
      text(shell.stdout),
      text(shell.stderr),
      once(shell, "exit"),
    ]);
    assert.equal(shell.exitCode, 0, `${printed}\n${complained}`);
    assert.match(printed, /^event: job_completed$/m);
    assert.match(printed, /^hello$/m);
    assert.match(printed, /^"invalid_transition"$/m);
    assert.match(printed, /working as run_\w+\n/);
    assert.match(printed, /^troupe_http_requests_total\{/m);
    assert.doesNotMatch(printed, /s3cret-key/);
    const replays = [...printed.matchAll(/^(run_\w+)$/gm)].map(([, runId]) => runId);
    assert.equal(replays.length, 2);
    assert.equal(replays[0], replays[1], "one key, one run");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
