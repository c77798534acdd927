// The pages against the program: every route of the gateway that they name is served, and the examples of
// docs/gateway-api.md run as they are, one after the other.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { startGatewayHere } from "../support/in-process.ts";
import { openApiOf } from "../support/openapi.ts";
import type { Program } from "../support/program.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
let program: Program;
let guide = "";
before(async () => {
  program = await startGatewayHere({ command: "gateway" });
  guide = await readFile(new URL("../../docs/gateway-api.md", import.meta.url), "utf8");
});
after(() => program.stop());

/** A path without the names of its parameters: the pages may abbreviate them. */
const shapeOf = (path: string): string => path.replace("/api/v1", "").replaceAll(/\{\w+\}/g, "{}");

test("every route of the gateway that a page names is served", async () => {
  const { paths } = await openApiOf(program);
  const served = new Set(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${shapeOf(path)}`),
    ),
  );
  const unknown: string[] = [];
  let seen = 0;
  for (const page of ["README.md", ...globSync("docs/*.md", { cwd: root })]) {
    // Its routes are the other API's.
    if (page === "docs/runtime-api.md") continue;
    const text = await readFile(join(root, page), "utf8");
    for (const [, method, path = ""] of text.matchAll(/\b(GET|POST|PUT|PATCH|DELETE) (\/[\w{}:/-]+)/g)) {
      seen++;
      // Below the origin, not below /api/v1.
      if (/^\/(?:openapi|healthz)/.test(path)) continue;
      if (!served.has(`${method} ${shapeOf(path)}`)) unknown.push(`${page}: ${method} ${path}`);
    }
  }
  assert.ok(seen > 20, `${seen} routes were found`);
  assert.deepEqual(unknown, []);
});

test("every metric that docs/operating.md names is served", async () => {
  const text = await readFile(join(root, "docs/operating.md"), "utf8");
  const answer = await fetch(`${program.url}/api/v1/metrics?format=prometheus`);
  const metrics = await answer.text();
  const names = new Set([...text.matchAll(/`(troupe_\w+)`/g)].map(([, name = ""]) => name));
  assert.ok(names.size > 20, `${names.size} metrics were found`);
  for (const name of names) assert.match(metrics, new RegExp(`^# TYPE ${name} `, "m"));
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
