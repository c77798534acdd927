// @ts-check
// A list of the API that stays as it is at the gateway, page by page.

import { atMost } from "../../dashboard/dom.js";
import { get } from "../api.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { watch } from "../live.js";

/** Between two readings for changes. */
const GATHER_MS = 500;
const PAGE_SIZE = 50;
const PAGE_SIZE_MAX = 200;

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

  const again = async () => {
    const before = current.current;
    const count = Math.min(PAGE_SIZE_MAX, Math.max(PAGE_SIZE, before.items?.length ?? 0));
    /** @type {any[]} */
    const since = [];
    underWay.current.add(since);
    try {
      const page = await get(path, { ...query, page_size: count });
      const now = current.current;
      // A reading that began later may have come before.
      if (now.key !== key || !underWay.current.has(since)) return;
      for (const earlier of underWay.current) {
        if (earlier === since) break;
        underWay.current.delete(earlier);
      }
      // Beyond what one request can read, pages stay as they were read.
      const rest = now.items?.slice(count) ?? [];
      const isWhole = rest.length === 0;
      const next = isWhole ? page.next_page_token : now.next;
      const { items } = withChanges([...page.items, ...rest], since, { query, isWhole: next === null });
      show({ key, items, next, error: null });
    } catch (error) {
      if (current.current.key === key) show({ ...current.current, error });
    } finally {
      underWay.current.delete(since);
    }
  };
  const more = async () => {
    const { items, next } = current.current;
    if (items === null || next === null) return;
    try {
      const page = await get(path, { ...query, page_size: PAGE_SIZE, page_token: next });
      if (current.current.key !== key) return;
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
    return watch(topics, (changes) => {
      const { items, next } = current.current;
      if (changes === null || path !== "/runs") return againSoon();
      for (const since of underWay.current) since.push(...changes);
      if (items === null) return;
      const changed = withChanges(items, changes, { query, isWhole: next === null });
      if (changed.items !== items) show({ ...current.current, items: changed.items });
      if (changed.isIncomplete) againSoon();
    });
  }, [key, stamp]);
  const { items, next, error } = current.current;
  return { items, hasMore: next !== null, error, more: () => void more(), again: () => void again() };
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
 * The runs of a list, newest first, as changes leave them.
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
  let isIncomplete = false;
  for (const { topic, id, changes: now } of changes) {
    if (topic !== "runs") continue;
    const place = places.get(id);
    const isIn = now !== null && mayBeIn(now);
    if (place === undefined) {
      // One that is older than all that is shown changes nothing here.
      if (isIn && id > last) isIncomplete = true;
      continue;
    }
    changed ??= [...items];
    changed[place] = isIn ? { ...items[place], ...now } : null;
    if (!isIn) isIncomplete = true;
  }
  return { items: changed === null ? items : changed.filter((run) => run !== null), isIncomplete };
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

/** @param {{ list: List }} properties */
export const More = ({ list }) =>
  list.hasMore
    ? html`<p class="more"><button type="button" onClick=${list.more}>Show more</button></p>`
    : null;
