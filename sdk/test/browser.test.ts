// The client in a real browser, from a page of another origin; its modules are served with their types taken off.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { stripTypeScriptTypes } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { startGatewayHere } from "../../test/support/in-process.ts";
import { helloZip } from "./bundle.ts";

const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  existsSync,
);

const page = (gateway: string) => `<!doctype html><title>SDK</title><script type="module">
const tell = (body) => fetch("/told", { method: "POST", body: JSON.stringify(body) });
try {
  const { TroupeClient, TroupeProblem } = await import("/index.ts");
  const client = new TroupeClient({ baseUrl: ${JSON.stringify(gateway)}, token: "open-sesame" });
  const zip = await (await fetch("/bundle.zip")).blob();
  const { bundle_id } = await client.bundles.upload(new File([zip], "hello.zip"));
  const job = await client.jobs.create({ bundle_id });
  const { etag } = await client.jobs.update(job, { name: "from a page" });
  const run = await client.runs.startAndWait(job.job_id);
  const ids = (await Array.fromAsync(client.runs.follow(run.run_id))).map(({ id }) => id);
  const after = (await Array.fromAsync(client.runs.follow(run.run_id, { after: 2 }))).map(({ id }) => id);
  const [output] = await Array.fromAsync(client.runs.outputs(run.run_id));
  const report = await (await client.runs.download(output)).text();
  const refused = await client.runs.get("none").catch((error) => error instanceof TroupeProblem && error.code);
  await tell({ status: run.status, etag, ids, after, report, refused });
} catch (error) {
  await tell({ error: String(error.stack ?? error) });
}
</script>`;

test("a session in Chromium: upload, job, run, events, output, refusal", {
  skip: chromium === undefined ? "there is no Chromium on this machine" : false,
}, async (t) => {
  const told = Promise.withResolvers<Record<string, unknown>>();
  const zip = await helloZip();
  let gatewayUrl = "";
  const server = createServer(async (request, response) => {
    const name = request.url ?? "/";
    if (name === "/told") {
      told.resolve(JSON.parse(await text(request)));
      response.end();
    } else if (name === "/") response.setHeader("content-type", "text/html").end(page(gatewayUrl));
    else if (name === "/bundle.zip") response.end(zip);
    else if (/^\/[a-z]+\.ts$/.test(name)) {
      const source = await readFile(new URL(`../src${name}`, import.meta.url), "utf8");
      response.setHeader("content-type", "text/javascript").end(stripTypeScriptTypes(source));
    } else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await using program = await startGatewayHere({
    command: "gateway",
    env: { SVC_CORS_ORIGINS: origin, SVC_API_TOKEN: "open-sesame" },
  });
  gatewayUrl = program.url;

  const { error, ids, after, etag, ...rest } = await visit(origin, told.promise);
  assert.equal(error, undefined);
  assert.match(String(etag), /^"2-/);
  assert.deepEqual(rest, { status: "completed", report: "hello", refused: "run_not_found" });
  assert.deepEqual(
    ids,
    (ids as number[]).map((_, i) => i + 1),
  );
  assert.deepEqual(after, (ids as number[]).slice(2));
});

/** Opens a page in a browser of its own, until something has been told or the browser has ended. */
async function visit<T>(url: string, told: Promise<T>): Promise<T> {
  const profile = await mkdtemp(join(tmpdir(), "sdk-chromium-"));
  const flags = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    `--user-data-dir=${profile}`,
  ];
  const browser = spawn(chromium ?? "", [...flags, url], {
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
  });
  const output = text(browser.stderr);
  const ended = new Promise<number | null>((resolve) => browser.once("close", resolve));
  const early = ended.then(async (code) => {
    throw new Error(`the browser ended early (${code}):\n${await output}`);
  });
  early.catch(() => {});
  try {
    return await Promise.race([told, early]);
  } finally {
    const runs = browser.exitCode === null && browser.signalCode === null;
    if (browser.pid !== undefined && runs) process.kill(-browser.pid, "SIGKILL");
    await ended;
    // Its children go a moment later.
    await rm(profile, { recursive: true, force: true, maxRetries: 20 });
  }
}
