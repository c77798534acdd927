// The interactive documentation as a person uses it: signed in once, every request that the page sends is let in, and says
// nothing that the person has not said.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { launchChromium, noChromium, openPage } from "../support/chromium.ts";
import { startGateway } from "../support/gateway-api.ts";
import type { Program } from "../support/program.ts";

const TOKEN = "correct-horse-battery-staple-in-the-docs";

describe("the documentation's page", { skip: noChromium }, () => {
  let program: Program;
  let browser: Browser;
  before(async () => {
    [program, browser] = await Promise.all([
      startGateway({ args: ["gateway"], env: { SVC_API_TOKEN: TOKEN } }),
      launchChromium(),
    ]);
  });
  after(async () => {
    await browser.close();
    await program.stop();
  });

  test("sends a change at the first click, with the password of the sign-in and without example values", async () => {
    const httpCredentials = { username: "me", password: TOKEN };
    const { page } = await openPage(browser, `${program.url}/docs`, { httpCredentials });
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
    await page.context().close();
  });
});
