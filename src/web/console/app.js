// @ts-check
// The console around its views: where one can go, the view of the address, and what is over it.

import { html, signal, useEffect } from "./html.js";
import { Keys } from "./keys.js";
import { connection } from "./live.js";
import { tellNews } from "./news.js";
import { pages } from "./page-list.js";
import { lazily } from "./parts/lazily.js";
import { Time } from "./parts/time.js";
import { matched, place, to } from "./router.js";
import { isGuest, session, signInShown, signOut } from "./session.js";
import { nextTheme, theme } from "./theme.js";

const SignIn = lazily(async () => (await import("./sign-in.js")).SignIn);
const views = new Map(
  pages.map((page) => [page, lazily(async () => (await page.load()).Page, page.name ?? "Console")]),
);
const isDrawerOpen = signal(false);

export function App() {
  useEffect(tellNews, []);
  return html`<a class="skip" href="#main">Skip to the page</a>
    <${Rail} />
    <main id="main" tabindex="-1"><${View} /></main>
    <${Keys} />
    ${signInShown.value && html`<${SignIn} />`}`;
}

function Rail() {
  const { path } = place.value;
  useEffect(() => {
    isDrawerOpen.value = false;
  }, [path]);
  const groups = isGuest() ? [] : pages.filter(({ name }) => name !== undefined);
  return html`<header class="rail" data-open=${isDrawerOpen.value ? "" : undefined}>
    <div class="rail-top">
      <a class="brand" href=${to([])}><img src="/console/assets/console/icon.svg" alt="" width="24" height="24" />Troupe</a>
      <button type="button" class="drawer" aria-expanded=${isDrawerOpen.value} aria-controls="rail-nav" onClick=${() => (isDrawerOpen.value = !isDrawerOpen.value)}>Menu</button>
    </div>
    <nav id="rail-nav" aria-label="Console">
      <ul class="plain">${groups.map(({ name, pattern }) => {
        const href = pattern === "/" ? to([]) : `${to([])}${pattern}`;
        const isHere = pattern === "/" ? path === href : path === href || path.startsWith(`${href}/`);
        return html`<li key=${pattern}><a href=${href} aria-current=${isHere ? "page" : undefined}>${name}</a></li>`;
      })}</ul>
      <ul class="plain aside">
        <${Fresh} />
        ${!isGuest() && html`<li><a href="/docs">API</a></li>`}
        <li><button type="button" class="flat" onClick=${nextTheme}>Theme: ${theme.value}</button></li>
        ${session.value.needs_token && session.value.signed_in && html`<li><button type="button" class="flat" onClick=${() => void signOut()}>Sign out</button></li>`}
      </ul>
    </nav>
  </header>`;
}

/** How fresh lists are. */
function Fresh() {
  const { state, sinceMs } = connection.value;
  const words = new Map([
    ["live", "Live"],
    ["none", "Read again every few seconds"],
    [
      "reconnecting",
      sinceMs === null
        ? "Connecting…"
        : html`As of <${Time} at=${new Date(sinceMs).toISOString()} />, reconnecting…`,
    ],
  ]);
  return html`<li><span class="muted fresh" role="status" data-lists=${state}>${words.get(state)}</span></li>`;
}

function View() {
  const { path } = place.value;
  for (const page of pages) {
    const parameters = matched(path, page.pattern);
    if (parameters !== null) {
      const key = `${page.pattern} ${parameters.id ?? ""}`;
      return html`<${views.get(page)} key=${key} ...${parameters} />`;
    }
  }
  return html`<h1>There is no such page</h1><p>The console has nothing at this address. <a href=${to([])}>Go to the start</a>.</p>`;
}
