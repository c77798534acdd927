// The client in a real browser, from a page of another origin; its modules are served with their types taken off.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { stripTypeScriptTypes } from "node:module";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { launchChromium, noChromium, openPage } from "../../test/support/chromium.ts";
import { startGatewayHere } from "../../test/support/in-process.ts";
import { helloZip } from "./bundle.ts";

const pageFor = (gateway: string) => `<!doctype html><title>SDK</title><script type="module">
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
  globalThis.told = { status: run.status, etag, ids, after, report, refused };
} catch (error) {
  globalThis.told = { error: String(error.stack ?? error) };
}
</script>`;

test("a session in Chromium: upload, job, run, events, output, refusal", {
  skip: noChromium,
}, async (t) => {
  const zip = await helloZip();
  let gatewayUrl = "";
  const server = createServer(async (request, response) => {
    const name = request.url ?? "/";
    if (name === "/") response.setHeader("content-type", "text/html").end(pageFor(gatewayUrl));
    else if (name === "/bundle.zip") response.end(zip);
    else if (/^\/[a-z-]+\.ts$/.test(name)) {
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

  await using browser = await launchChromium();
  const { page } = await openPage(browser, origin);
  const told = await page.waitForFunction("globalThis.told");
  const { error, ids, after, etag, ...rest } = (await told.jsonValue()) as Record<string, unknown>;
  assert.equal(error, undefined);
  assert.match(String(etag), /^"2-/);
  assert.deepEqual(rest, { status: "completed", report: "hello", refused: "run_not_found" });
  assert.deepEqual(
    ids,
    (ids as number[]).map((_, i) => i + 1),
  );
  assert.deepEqual(after, (ids as number[]).slice(2));
});
