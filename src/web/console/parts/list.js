// @ts-check
// A list of the API that stays as it is at the gateway, page by page.

import { atMost } from "../../dashboard/dom.js";
import { get } from "../api.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { watch } from "../live.js";

/** Between two readings for changes. */
const GATHER_MS = 500;
const PAGE_SIZE = 50;
/** Empty pages that are read at once: of runs 2,000 each, in some 20 ms. */
const SEARCHED_PAGES_MAX = 10;
const PAGE_SIZE_MAX = 200;
/** Between two pictures of changes. */
const DRAW_MS = 250;
/** Runs are added as they start; of a list that has grown by so many, the end is no longer shown. */
const ADDED_MAX = 50;
/** In place of the token of the next page, of a list whose end is no longer shown. */
const CUT = "cut";

/**
 * @typedef {object} List
 * @property {any[] | null} items null until they are there
 * @property {boolean} hasMore
 * @property {unknown} error
 * @property {() => void} more reads the next page
 * @property {() => void} again reads all that is shown again
 */

/**
 * @param {string} path @param {Record<string, string | number | null | undefined>} query
 * @param {readonly string[]} topics whose changes change the list
 * @param {unknown} [stamp] another one: the list has changed
 * @returns {List}
 */
export function useList(path, query, topics, stamp) {
  const [state, setState] = useState({
    key: "",
    items: /** @type {any[] | null} */ (null),
    next: null,
    error: /** @type {unknown} */ (null),
  });
  const key = JSON.stringify([path, query]);
  const current = useRef(state);
  current.current = state.key === key ? state : { key, items: null, next: null, error: null };

  /** What is shown from now on; a change that comes before the next picture finds it. @param {typeof state} next */
  const show = (next) => {
    current.current = next;
    setState(next);
  };
  /** The changes that have come since each reading under way began: what it brings may be older. */
  const underWay = useRef(/** @type {Set<any[]>} */ (new Set()));
  const countRead = useRef(0);
  const isCurrent = () => current.current.key === key;

  const again = async () => {
    const before = current.current;
    const count = Math.min(PAGE_SIZE_MAX, Math.max(PAGE_SIZE, before.items?.length ?? 0));
    /** @type {any[]} */
    const since = [];
    underWay.current.add(since);
    try {
      const isFirst = before.items === null;
      const first = { ...query, page_size: count };
      const page = await (isFirst ? pageOf(path, first, isCurrent) : get(path, first));
      const now = current.current;
      // A reading that began later may have come before.
      if (now.key !== key || !underWay.current.has(since)) return;
      for (const earlier of underWay.current) {
        if (earlier === since) break;
        underWay.current.delete(earlier);
      }
      // Beyond what one request can read, pages stay as they were read.
      // Where a search finds nothing among the newest, what it has found behind them stays.
      const isBehind = !isFirst && isEmptyOne(page);
      const rest = now.items?.slice(isBehind ? 0 : count) ?? [];
      countRead.current = page.items.length + rest.length;
      const isWhole = rest.length === 0 && !isBehind;
      const next = isWhole ? page.next_page_token : now.next;
      const read = unchanged(now.items ?? [], [...page.items, ...rest]);
      const { items } = withChanges(read, since, { query, isWhole: next === null });
      show({ key, items, next, error: null });
    } catch (error) {
      if (current.current.key === key) show({ ...current.current, error });
    } finally {
      underWay.current.delete(since);
    }
  };
  const more = async () => {
    if (current.current.next === CUT) await again();
    const { items, next } = current.current;
    if (items === null || next === null || next === CUT) return;
    try {
      const page = await pageOf(path, { ...query, page_size: PAGE_SIZE, page_token: next }, isCurrent);
      if (current.current.key !== key) return;
      countRead.current += page.items.length;
      show({ key, items: [...items, ...page.items], next: page.next_page_token, error: null });
    } catch (error) {
      // A token that is too old: the list is read from its start.
      show({ ...current.current, next: null, error });
    }
  };

  const againSoon = useMemo(() => atMost(GATHER_MS, () => newest.current()), []);
  const newest = useRef(again);
  newest.current = again;
  useEffect(() => {
    void again();
    if (topics.length === 0) return undefined;
    if (path !== "/runs") return watch(topics, againSoon);
    /** @type {any[]} */
    let gathered = [];
    const draw = atMost(DRAW_MS, () => {
      const { items, next } = current.current;
      if (items === null || current.current.key !== key) return;
      const changed = withChanges(items, gathered, { query, isWhole: next === null });
      gathered = [];
      if (changed.isIncomplete) againSoon();
      if (changed.items === items) return;
      const isTooLong = changed.items.length > countRead.current + ADDED_MAX;
      const cut = { items: changed.items.slice(0, countRead.current), next: /** @type {any} */ (CUT) };
      show({ ...current.current, items: changed.items, ...(isTooLong && cut) });
    });
    return watch(topics, (changes) => {
      if (changes === null) {
        againSoon();
        return;
      }
      for (const since of underWay.current) since.push(...changes);
      gathered.push(...changes);
      draw();
    });
  }, [key, stamp]);
  const { items, next, error } = current.current;
  return { items, hasMore: next !== null, error, more: () => void more(), again: () => void again() };
}

/** Those that were read now; one that is as it was before is the same object, so that its row is not drawn again. @param {any[]} before @param {any[]} now */
function unchanged(before, now) {
  const known = new Map(before.map((item) => [JSON.stringify(item), item]));
  return now.map((item) => known.get(JSON.stringify(item)) ?? item);
}

/** What of a run a filter of the list compares. @type {Record<string, (run: any) => string | null>} */
const filtered = {
  status: ({ status }) => status,
  trigger: ({ trigger }) => trigger.kind,
  job_id: ({ job_id: id }) => id,
  blueprint_id: ({ blueprint_id: id }) => id,
  rerun_of: ({ rerun_of: id }) => id,
};

/**
 * The runs of a list, newest first, as changes leave them. One that is new is without what changes do not tell.
 *
 * @param {any[]} items @param {readonly { topic: string, id: string, changes: any }[]} changes
 * @param {{ query: Record<string, string | number | null | undefined>, isWhole: boolean }} list whether it ends with the last of them
 * @returns {{ items: any[], isIncomplete: boolean }} the same ones when nothing changes; incomplete when only the gateway knows what is
 *   in it now
 */
export function withChanges(items, changes, { query, isWhole }) {
  const places = new Map(items.map(({ run_id: id }, i) => [id, i]));
  const last = isWhole ? "" : (items.at(-1)?.run_id ?? "");
  const mayBeIn = (/** @type {any} */ run) =>
    Object.entries(filtered).every(
      ([name, of]) =>
        !query[name] ||
        String(query[name])
          .split(",")
          .includes(of(run) ?? ""),
    );
  /** @type {any[] | null} */
  let changed = null;
  /** @type {Map<string, any>} */
  const added = new Map();
  let isIncomplete = false;
  for (const { topic, id, changes: now } of changes) {
    if (topic !== "runs") continue;
    const place = places.get(id);
    const isIn = now !== null && mayBeIn(now);
    if (place === undefined) {
      // One that is older than all that is shown changes nothing here. Whether a text is in it only the gateway knows.
      if (isIn && id > last && query.q) isIncomplete = true;
      else if (isIn && id > last) added.set(id, { run_id: id, ...now });
      else added.delete(id);
      continue;
    }
    changed ??= [...items];
    changed[place] = isIn ? { ...items[place], ...now } : null;
    if (!isIn) isIncomplete = true;
  }
  if (changed === null && added.size === 0) return { items, isIncomplete };
  const merged = [...added.values(), ...(changed ?? items).filter((run) => run !== null)];
  if (added.size > 0) merged.sort((a, b) => (a.run_id < b.run_id ? 1 : -1));
  return { items: merged, isIncomplete };
}

/**
 * One resource, read again when something of the topics changes.
 *
 * @param {string | null} path null: nothing is read
 * @param {readonly string[]} [topics]
 * @returns {{ value: any, error: unknown, again: () => void }}
 */
export function useResource(path, topics = []) {
  const [state, setState] = useState({
    path,
    value: /** @type {any} */ (null),
    error: /** @type {unknown} */ (null),
  });
  const current = useRef(path);
  current.current = path;
  const again = async () => {
    if (path === null) return;
    const read = await get(path).then(
      (value) => ({ path, value, error: null }),
      (error) => ({ path, value: null, error }),
    );
    if (current.current === path) setState(read);
  };
  useEffect(() => {
    void again();
    return topics.length === 0
      ? undefined
      : watch(
          topics,
          atMost(GATHER_MS, () => void again()),
        );
  }, [path]);
  const { value, error } = state.path === path ? state : { value: null, error: null };
  return { value, error, again: () => void again() };
}

/**
 * A page, and those behind it while they are empty: a search goes through so many records for each.
 *
 * @param {string} path @param {Record<string, any>} query @param {() => boolean} isWanted
 */
async function pageOf(path, query, isWanted) {
  let page = await get(path, query);
  for (let pages = 1; pages < SEARCHED_PAGES_MAX && isEmptyOne(page) && isWanted(); pages++)
    page = await get(path, { ...query, page_token: page.next_page_token });
  return page;
}

/** @param {any} page */
const isEmptyOne = ({ items, next_page_token: next }) => items.length === 0 && next !== null;

/**
 * Reads again and again what is no event, while the page is looked at.
 *
 * @param {() => void} again @param {number} everyMs
 */
export function useAgainEvery(again, everyMs) {
  const latest = useRef(again);
  latest.current = again;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) latest.current();
    }, everyMs);
    return () => clearInterval(timer);
  }, []);
}

/** @param {{ list: List }} properties */
export const More = ({ list }) =>
  list.hasMore
    ? html`<p class="more"><button type="button" onClick=${list.more}>Show more</button></p>`
    : null;
