// A Firefox for tests that click, type and look: the machine's own, through WebDriver BiDi by Puppeteer. Playwright has a
// Firefox of its own, and does not speak with Debian's.

import puppeteer, { type Browser, type ElementHandle, type Page } from "puppeteer-core";
import { axeSource, problemsOf, RUN_AXE } from "./axe.ts";
import { LIMIT_MS } from "./chromium.ts";
import { findProgram } from "./find-program.ts";

/** Mutations of a text alone would not be seen otherwise. */
const POLL_MS = 50;
const executablePath = findProgram(["firefox-esr", "firefox"]);

/** Why tests of pages are skipped here, or false. */
export const noFirefox: string | false = executablePath === undefined && "there is no Firefox";

export function launchFirefox(): Promise<Browser> {
  return puppeteer.launch({
    browser: "firefox",
    executablePath: executablePath ?? "",
    timeout: LIMIT_MS,
    protocolTimeout: LIMIT_MS,
    defaultViewport: { width: 1280, height: 900 },
    // Nothing moves, as in the Chromium of these tests.
    extraPrefsFirefox: { "ui.prefersReducedMotion": 1 },
  });
}

export interface WatchedPage {
  readonly page: Page;
  /** Uncaught errors, and errors that the page or the browser wrote, such as violations of the content policy. */
  readonly complaints: readonly string[];
  /** Every URL that was asked for. */
  readonly requested: readonly string[];
}

/** Opens a page that shares no cookie, storage or worker with others; a test closes it with `page.browserContext().close()`. */
export async function openPage(browser: Browser, url: string): Promise<WatchedPage> {
  const page = await (await browser.createBrowserContext()).newPage();
  page.setDefaultTimeout(LIMIT_MS);
  const complaints: string[] = [];
  const requested: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("request", (request) => requested.push(request.url()));
  await page.goto(url);
  return { page, complaints, requested };
}

/** Waits until an element shows this text. @param selector CSS; the whole page when absent */
export async function shows(page: Page, text: string, selector = "body"): Promise<void> {
  await page.waitForFunction(
    `[...document.querySelectorAll(${JSON.stringify(selector)})].some((one) => one.innerText.includes(${JSON.stringify(text)}))`,
    { polling: POLL_MS },
  );
}

/** Clicks what is there by a role and a name, as assistive technology sees them. */
export async function press(page: Page, role: "button" | "link", name: string): Promise<void> {
  // A page behind another one is drawn once a second.
  await page.bringToFront();
  const found = await page.waitForSelector(`::-p-aria([role="${role}"][name="${name}"])`);
  await found?.click();
}

/** Types in place of what the field of a label holds. */
export async function fill(page: Page, label: string, text: string): Promise<void> {
  await page.bringToFront();
  const found = await page.waitForFunction(
    `[...document.querySelectorAll("label")].find((one) => one.innerText.trim() === ${JSON.stringify(label)})?.control`,
    { polling: POLL_MS },
  );
  const field = found as ElementHandle;
  await field.evaluate((one) => (one as never as { select(): void }).select());
  await field.type(text);
}

/** What axe finds wrong with the page as it is now, as lines. */
export async function accessibilityProblems(page: Page): Promise<readonly string[]> {
  await page.evaluate(await axeSource());
  return problemsOf(await page.evaluate(RUN_AXE));
}
