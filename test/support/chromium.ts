// A Chromium for tests that click, type and look: Playwright's, with the machine's own browser.

import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { axeSource, problemsOf, RUN_AXE } from "./axe.ts";
import { findProgram } from "./find-program.ts";

const executablePath = findProgram(["chromium", "chromium-browser", "google-chrome"]);

/** Why tests of pages are skipped here, or false. */
export const noChromium: string | false = executablePath === undefined && "there is no Chromium";

/** How long a page that does not come can hold up a test run; no test asserts on it. */
export const LIMIT_MS = 90_000;

export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    timeout: LIMIT_MS,
    executablePath: executablePath ?? "",
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"],
  });
}

export interface WatchedPage {
  readonly page: Page;
  /** Violations of the content policy, uncaught errors, dialogs; not requests that failed. */
  readonly complaints: readonly string[];
  /** Every URL that was asked for. */
  readonly requested: readonly string[];
}

/**
 * Opens a page in a context of its own, which a test closes with `page.context().close()`. Unless the options say otherwise
 * nothing moves on it: drawing animations takes a seventh of the browser's time.
 */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    reducedMotion: "reduce",
    ...options,
  });
  context.setDefaultTimeout(LIMIT_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  const requested: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
      complaints.push(message.text());
    }
  });
  page.on("request", (request) => requested.push(request.url()));
  await page.goto(url);
  return { page, complaints, requested };
}

/** What axe finds wrong with the page as it is now, as lines: WCAG 2.2 A and AA, and best practices. */
export async function accessibilityProblems(page: Page): Promise<readonly string[]> {
  // As the debugger does it: the page's own policy forbids other scripts.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: await axeSource() });
  await session.detach();
  return problemsOf(await page.evaluate(RUN_AXE));
}
