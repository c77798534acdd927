// A Chromium for tests that click, type and look: Playwright's, with the machine's own browser.

import assert from "node:assert/strict";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";
import { axeSource, problemsOf, RUN_AXE } from "./axe.ts";
import { findProgram } from "./find-program.ts";
import { sized } from "./long.ts";

const executablePath = findProgram(["chromium", "chromium-browser", "google-chrome"]);

/** Why tests of pages are skipped here, or false. */
export const noChromium: string | false = executablePath === undefined && "there is no Chromium";

/** How long a page that does not come can hold up a test run; no test asserts on it. */
export const LIMIT_MS = 90_000;

export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    timeout: LIMIT_MS,
    executablePath: executablePath ?? "",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      // Two processes less, and a tenth of the processor's time.
      "--in-process-gpu",
      "--enable-features=NetworkServiceInProcess2",
    ],
  });
}

export interface WatchedPage {
  readonly page: Page;
  /** Violations of the content policy, uncaught errors, dialogs; not requests that failed. */
  readonly complaints: readonly string[];
  /** Every URL that was asked for. */
  readonly requested: readonly string[];
}

/** Nothing moves: drawing animations takes a seventh of the browser's time. */
const STILL: BrowserContextOptions = { viewport: { width: 1280, height: 900 }, reducedMotion: "reduce" };

/** Opens a page that shares no cookie, storage or worker with others; a test closes it with `page.context().close()`. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  return watched(await browser.newContext({ ...STILL, ...options }), url);
}

/** What the tabs of a browser share. */
interface Tabs {
  readonly context: BrowserContext;
  /** By their hosts: pages that stay open, and so their process, with all that it has loaded and compiled. */
  readonly kept: Map<string, Promise<Page>>;
}
const tabsOf = new WeakMap<Browser, Promise<Tabs>>();

/**
 * Opens a tab, which shares cookies, storage and workers with the other tabs of its browser: it takes two fifths of the
 * processor's time of a page by itself. `closeTabs` closes it.
 */
export async function openTab(browser: Browser, url: string): Promise<WatchedPage> {
  const opening =
    tabsOf.get(browser) ?? browser.newContext(STILL).then((context) => ({ context, kept: new Map() }));
  tabsOf.set(browser, opening);
  const { context, kept } = await opening;
  const { origin, hostname } = new URL(url);
  const staying = kept.get(hostname) ?? keep(context, origin);
  kept.set(hostname, staying);
  await staying;
  return watched(context, url);
}

async function keep(context: BrowserContext, origin: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${origin}/console/assets/console/icon.svg`);
  return page;
}

/** Closes all tabs, also those that a failed test has left open, and which would go on asking. */
export async function closeTabs(browser: Browser): Promise<void> {
  const tabs = await tabsOf.get(browser);
  if (tabs === undefined) return;
  const kept = await Promise.all(tabs.kept.values());
  await Promise.all(tabs.context.pages().map((page) => kept.includes(page) || page.close()));
}

async function watched(context: BrowserContext, url: string): Promise<WatchedPage> {
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
  if ((await page.evaluate("typeof axe")) === "undefined") {
    // As the debugger does it: the page's own policy forbids other scripts.
    const session = await page.context().newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: await axeSource() });
    await session.detach();
  }
  return problemsOf(await page.evaluate(RUN_AXE));
}

const [WIDE, NARROW] = [
  { width: 1280, height: 900 },
  { width: 360, height: 780 },
];
const LOOKS = [
  { colorScheme: "light", viewport: WIDE },
  { colorScheme: "dark", viewport: NARROW },
  ...sized([], [{ colorScheme: "dark", viewport: WIDE } as const]),
  ...sized([], [{ colorScheme: "light", viewport: NARROW } as const]),
] as const;

/** A tab as it is now has nothing wrong for axe, and is not too wide: in light, in dark, on a wide screen and on a phone. */
export async function assertAccessible(page: Page): Promise<void> {
  for (const { viewport, colorScheme } of LOOKS) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    await assertAccessibleHere(page, `${colorScheme}, ${viewport.width} px`);
  }
  await page.setViewportSize(WIDE);
  await page.emulateMedia({ colorScheme: "light" });
}

/** The same as it is shown just now. @param where for the message */
export async function assertAccessibleHere(page: Page, where: string): Promise<void> {
  assert.deepEqual(await accessibilityProblems(page), [], where);
  const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
  assert.ok(Number(overflow) <= 0, `${overflow} px too wide: ${where}`);
}
