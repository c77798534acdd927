// @ts-check
// A list of the API that stays as it is at the gateway, page by page.

import { get } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { watch } from "../live.js";

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

  const again = async () => {
    const before = current.current;
    const count = Math.min(PAGE_SIZE_MAX, Math.max(PAGE_SIZE, before.items?.length ?? 0));
    try {
      const page = await get(path, { ...query, page_size: count });
      const now = current.current;
      if (now.key !== key) return;
      // Beyond what one request can read, pages stay as they were read.
      const rest = now.items?.slice(count) ?? [];
      const isWhole = rest.length === 0;
      setState({
        key,
        items: [...page.items, ...rest],
        next: isWhole ? page.next_page_token : now.next,
        error: null,
      });
    } catch (error) {
      if (current.current.key === key) setState({ ...current.current, error });
    }
  };
  const more = async () => {
    const { items, next } = current.current;
    if (items === null || next === null) return;
    try {
      const page = await get(path, { ...query, page_size: PAGE_SIZE, page_token: next });
      if (current.current.key !== key) return;
      setState({ key, items: [...items, ...page.items], next: page.next_page_token, error: null });
    } catch (error) {
      // A token that is too old: the list is read from its start.
      setState({ ...current.current, next: null, error });
    }
  };

  useEffect(() => {
    void again();
    return topics.length === 0 ? undefined : watch(topics, () => void again());
  }, [key, stamp]);
  const { items, next, error } = current.current;
  return { items, hasMore: next !== null, error, more: () => void more(), again: () => void again() };
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
    return topics.length === 0 ? undefined : watch(topics, () => void again());
  }, [path]);
  const { value, error } = state.path === path ? state : { value: null, error: null };
  return { value, error, again: () => void again() };
}

/** @param {{ list: List }} properties */
export const More = ({ list }) =>
  list.hasMore
    ? html`<p class="more"><button type="button" onClick=${list.more}>Show more</button></p>`
    : null;
