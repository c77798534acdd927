// A Chromium for tests that click, type and look: Playwright's, with the machine's own browser.

import { accessSync, constants } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const executablePath = findChromium();

/** Why tests of pages are skipped here, or false. */
export const noChromium: string | false = executablePath === undefined && "there is no Chromium";

/** How long a page that does not come can hold up a test run; no test asserts on it. */
const LIMIT_MS = 90_000;

export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    timeout: LIMIT_MS,
    executablePath: executablePath ?? "",
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"],
  });
}

/** @returns the path of a Chromium on this machine */
function findChromium(): string | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return ["chromium", "chromium-browser", "google-chrome"]
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
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

const axePath = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

interface AxeResults {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

/** What axe finds wrong with the page as it is now, as lines: WCAG 2.2 A and AA, and best practices. */
export async function accessibilityProblems(page: Page): Promise<readonly string[]> {
  // As the debugger does it: the page's own policy forbids other scripts.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: await readFile(axePath, "utf8") });
  await session.detach();
  const results = (await page.evaluate("axe.run({ iframes: false })")) as AxeResults;
  return results.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`),
  );
}
