// The interactive documentation as a person uses it: it asks nobody but the gateway for anything; signed in once, every
// request that the page sends is let in, and says nothing that the person has not said.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { launchChromium, noChromium, openPage } from "../support/chromium.ts";
import { startGatewayHere } from "../support/in-process.ts";

const TOKEN = "correct-horse-battery-staple-in-the-docs";

describe("the documentation's page", { skip: noChromium }, () => {
  let browser: Browser;
  before(async () => {
    browser = await launchChromium();
  });
  after(() => browser.close());

  test("with the token as password is shown, asks nobody else for anything, breaks no rule of its policy, and sends a change at the first click, signed in and without example values", async () => {
    await using closed = await startGatewayHere({ command: "gateway", env: { SVC_API_TOKEN: TOKEN } });
    const httpCredentials = { username: "me", password: TOKEN };
    const url = `${closed.url}/docs`;
    const { page, requested, complaints } = await openPage(browser, url, { httpCredentials });
    await page.getByText("Upload a bundle").first().waitFor();
    await page.getByText("Troupe gateway").first().waitFor();
    for (const one of requested) assert.ok(one.startsWith(closed.url) || one.startsWith("data:"), one);
    assert.deepEqual(
      requested.filter((one) => one.startsWith("http")),
      ["/docs", "/docs/reference.js", "/openapi.json"].map((path) => closed.url + path),
    );
    // The first operation of the page: what lies further down is drawn when somebody scrolls there.
    await page.locator("button", { hasText: "Test Request" }).first().click();
    const answered = page.waitForResponse((answer) => answer.url().endsWith("/api/v1/bundles"));
    await page
      .locator("button", { hasText: /^\s*Send/ })
      .first()
      .click();
    const answer = await answered;
    const headers = await answer.request().allHeaders();
    assert.equal(answer.request().method(), "POST");
    // Let in, and then told that there is no file in it.
    assert.equal(answer.status(), 422, JSON.stringify(headers));
    assert.match(headers.authorization ?? "", /^Basic /);
    assert.equal(headers["idempotency-key"], undefined);
    assert.deepEqual(complaints, []);
    await page.context().close();
  });
});
