// /docs: the parts of the interactive documentation. test/browser/docs.test.ts sees it in a browser.

import assert from "node:assert/strict";
import { request } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

const TOKEN = "correct-horse-battery-staple-in-the-docs";

let open: Program;
let closed: Program;
before(async () => {
  [open, closed] = await Promise.all([
    startGatewayHere({ command: "gateway" }),
    startGatewayHere({ command: "gateway", env: { SVC_API_TOKEN: TOKEN } }),
  ]);
});
after(() => Promise.all([open.stop(), closed.stop()]));

describe("the page", () => {
  test("names nothing outside this server, runs no inline script, and forbids both", async () => {
    const answer = await fetch(`${open.url}/docs`);
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get("content-type") ?? "", /^text\/html/);
    const page = await answer.text();
    assert.doesNotMatch(page, /https?:\/\/|"\/\//);
    for (const [, attributes, content] of page.matchAll(/<script([^>]*)>([^<]*)<\/script>/g)) {
      assert.ok(/src="\/docs\//.test(attributes ?? "") || /type="application\/json"/.test(attributes ?? ""));
      assert.equal(content, "");
    }
    const policy = answer.headers.get("content-security-policy")?.split("; ") ?? [];
    assert.ok(policy.includes("default-src 'none'") && policy.includes("script-src 'self'"));
    assert.ok(policy.includes("connect-src 'self'") && policy.includes("frame-ancestors 'none'"));
    assert.doesNotMatch(policy.join(), /https?:|\*|unsafe-eval/);
  });

  test("is found with a slash behind it too", async () => {
    const answer = await fetch(`${open.url}/docs/`, { redirect: "manual" });
    assert.deepEqual([answer.status, answer.headers.get("location")], [308, "/docs"]);
  });

  test("its script comes compressed to those who take that, and plain to others; both are the same", async () => {
    const compressed = await fetch(`${open.url}/docs/reference.js`);
    assert.equal(compressed.headers.get("content-encoding"), "gzip");
    assert.match(compressed.headers.get("content-type") ?? "", /^text\/javascript/);
    const script = await compressed.text();
    assert.ok(script.length > 1_000_000);
    assert.equal(await plain("/docs/reference.js"), script);
    const etag = compressed.headers.get("etag") ?? "";
    const again = await fetch(`${open.url}/docs/reference.js`, { headers: { "if-none-match": etag } });
    assert.deepEqual([again.status, await again.text()], [304, ""]);
  });

  test("wants the token like everything else, and asks a browser for it", async () => {
    for (const path of ["/docs", "/docs/reference.js", "/openapi.json"]) {
      const answer = await fetch(closed.url + path, { headers: { accept: "text/html" } });
      assert.equal(answer.status, 401, path);
      assert.match(answer.headers.get("www-authenticate") ?? "", /Basic realm=/);
    }
    const basic = `Basic ${Buffer.from(`anyone:${TOKEN}`).toString("base64")}`;
    const answer = await fetch(`${closed.url}/docs`, { headers: { authorization: basic } });
    assert.equal(answer.status, 200);
    await answer.text();
  });
});

/** A request without Accept-Encoding, which fetch always sends. */
async function plain(path: string): Promise<string> {
  const asked = request(`${open.url}${path}`);
  const answered = new Promise<string>((resolve, reject) => {
    asked.once("error", reject);
    asked.once("response", (response) => {
      assert.equal(response.headers["content-encoding"], undefined);
      textOf(response).then(resolve, reject);
    });
  });
  asked.end();
  return answered;
}

describe("the server's root", () => {
  const get = (program: Program, headers: Record<string, string>) =>
    fetch(program.url, { headers, redirect: "manual" });

  test("leads a browser to the console, and tells a program what there is", async () => {
    const browser = await get(open, { accept: "text/html,application/xhtml+xml,*/*;q=0.8" });
    assert.deepEqual([browser.status, browser.headers.get("location")], [302, "/console"]);
    const program = await get(open, {});
    assert.equal(program.status, 200);
    const { name, version, links } = (await program.json()) as {
      readonly name: string;
      readonly version: string;
      readonly links: Readonly<Record<string, string>>;
    };
    assert.equal(name, "troupe");
    assert.match(version, /^\d+\.\d+\.\d+/);
    for (const link of Object.values(links)) assert.equal((await fetch(open.url + link)).status, 200, link);
  });

  test("asks for the token, but leads a browser to the console, which asks for it with a form", async () => {
    const browser = await get(closed, { accept: "text/html" });
    assert.deepEqual([browser.status, browser.headers.get("location")], [302, "/console"]);
    assert.equal((await get(closed, {})).status, 401);
  });
});

test("editors read the schemas without the token; what lies beside them is not open", async () => {
  for (const name of ["manifest.json", "config.json", "index.json"]) {
    const answer = await fetch(`${closed.url}/schemas/${name}`);
    assert.equal(answer.status, 200, name);
    await answer.text();
  }
  for (const path of [
    "/schemas",
    "/schemas/../api/v1/jobs",
    "//schemas/manifest.json",
    "/Schemas/index.json",
  ]) {
    const asked = request(closed.url + path, { path });
    const status = await new Promise((resolve) => {
      asked.once("response", (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      asked.end();
    });
    assert.ok(status === 401 || status === 404, `${path}: ${status}`);
  }
  assert.equal((await fetch(`${closed.url}/schemas/manifest.json`, { method: "POST" })).status, 401);
});

test("the API's description gives optional parameters no values that a page would send for everybody", async () => {
  const { paths } = (await (await fetch(`${open.url}/openapi.json`)).json()) as {
    readonly paths: Readonly<
      Record<string, Readonly<Record<string, { parameters?: readonly Record<string, unknown>[] }>>>
    >;
  };
  const parameters = Object.values(paths).flatMap((item) =>
    Object.values(item).flatMap(({ parameters = [] }) => parameters),
  );
  assert.ok(parameters.some(({ name }) => name === "Idempotency-Key"));
  for (const parameter of parameters) {
    if (parameter.required !== true) assert.equal(parameter.example, undefined, String(parameter.name));
  }
});
