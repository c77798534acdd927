// @ts-check
// The log of the run. The server searches all of it; the page holds the newest part and reads older parts when asked.

import { followStream } from "../../dashboard/run-stream.mjs";
import { get, urlOf } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { Choice, Filters, Search } from "../parts/filters.js";
import { Empty, Problem } from "../parts/pieces.js";
import { parameter, setQuery } from "../router.js";
import { keyHeaders } from "../session.js";
import { Around, Line } from "./log-line.js";
import { Range, rangeOf } from "./range.js";

const PAGE_SIZE = 200;
const KEPT_MAX = 5_000;
const NEAR_PX = 24;
const AGENTS_MAX = 1_000;

/** @type {[string, string][]} */
const levels = [
  ["info", "Info and above"],
  ["warn", "Warnings and errors"],
  ["error", "Errors"],
];
const streams = ["stdout", "stderr", "worker", "runtime"];

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const filter = {
    text: parameter("text"),
    level: parameter("level"),
    agent_id: parameter("agent"),
    stream: parameter("stream"),
    ...rangeOf(),
  };
  const agents = [...source.model.agents.keys()].slice(0, AGENTS_MAX);
  const around = parameter("around");
  const { agent_id: agent } = filter;
  const choices = agent === "" || agents.includes(agent) ? agents : [agent, ...agents];
  return html`<section class="card" aria-labelledby="logs-heading">
    <h2 id="logs-heading">Logs</h2>
    <${Filters} label="Which lines are shown">
      <${Search} name="text" label="Contains" />
      <${Choice} name="level" label="Level" any="Everything" values=${levels} />
      <${Choice} name="stream" label="Stream" any="All streams" values=${streams} />
      <${Choice} name="agent" label="Agent" any="All agents" values=${choices} />
      <${Range} />
    </${Filters}>
    ${around !== "" && html`<${Around} key=${around} id=${source.id} at=${around} />`}
    <${Lines} key=${JSON.stringify(filter)} id=${source.id} filter=${filter} />
  </section>`;
}

/** @param {{ id: string, filter: Record<string, string> }} properties */
function Lines({ id, filter }) {
  const [state, setState] = useState({
    lines: /** @type {any[] | null} */ (null),
    next: /** @type {string | null} */ (null),
    error: /** @type {unknown} */ (null),
  });
  const current = useRef(state);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const isAtEnd = useRef(true);
  const path = `/runs/${encodeURIComponent(id)}/logs`;
  const put = (/** @type {Partial<typeof state>} */ changes) => {
    current.current = { ...current.current, ...changes };
    setState(current.current);
  };

  useEffect(() => {
    const ending = new AbortController();
    const start = async () => {
      const page = await get(path, { ...filter, order: "desc", page_size: PAGE_SIZE }, ending.signal);
      put({ lines: page.items.reverse(), next: page.next_page_token });
      await followLogs(urlOf(`${path}/stream`, filter), page.last_event_id, ending.signal, (news) => {
        put({ lines: [...(current.current.lines ?? []), ...news].slice(-KEPT_MAX) });
      });
    };
    start().catch((error) => ending.signal.aborted || put({ error }));
    return () => ending.abort();
  }, []);
  useEffect(() => {
    const list = box.current;
    if (list !== null && isAtEnd.current) list.scrollTop = list.scrollHeight;
  }, [state.lines]);

  const older = async () => {
    const page = await get(path, {
      ...filter,
      order: "desc",
      page_size: PAGE_SIZE,
      page_token: current.current.next,
    });
    isAtEnd.current = false;
    put({ lines: [...page.items.reverse(), ...(current.current.lines ?? [])], next: page.next_page_token });
  };
  const scrolled = () => {
    const list = /** @type {HTMLElement} */ (box.current);
    isAtEnd.current = list.scrollTop + list.clientHeight >= list.scrollHeight - NEAR_PX;
  };
  const isWrapped = parameter("wrap") !== "0";
  const [isSaving, setSaving] = useState(false);
  const save = async () => {
    setSaving(true);
    await download(id, path, filter).catch((problem) => put({ error: problem }));
    setSaving(false);
  };
  const { lines, next, error } = state;
  if (error !== null) return html`<${Problem} error=${error} />`;
  if (lines === null) return null;
  return html`
    ${next !== null && html`<p class="more"><button type="button" onClick=${() => older().catch((problem) => put({ error: problem }))}>Show older lines</button></p>`}
    ${lines.length === 0 && next === null && html`<${Empty}>No line passes these filters.</${Empty}>`}
    <div class="inline below">
      <label class="inline"><input type="checkbox" checked=${isWrapped} onChange=${() => setQuery({ wrap: isWrapped ? "0" : "" })} /> Wrap lines</label>
      <button type="button" disabled=${isSaving} onClick=${() => void save()}>Download these lines</button>
    </div>
    <div class="log" data-wrap=${String(isWrapped)} ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-live="off" aria-label="Log of the run">
      ${lines.map((line, index) => html`<${Line} key=${`${line.ts} ${index - lines.length}`} line=${line} />`)}
    </div>`;
}

/**
 * Saves every line that passes the filter, oldest first, one JSON record in a line.
 *
 * @param {string} id @param {string} path @param {Record<string, string>} filter
 */
async function download(id, path, filter) {
  const records = [];
  let token = null;
  do {
    const page = await get(path, { ...filter, order: "asc", page_size: PAGE_SIZE, page_token: token });
    for (const record of page.items) records.push(`${JSON.stringify(record)}\n`);
    token = page.next_page_token;
  } while (token !== null);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(records, { type: "application/x-ndjson" }));
  link.download = `${id}-log.jsonl`;
  link.click();
  URL.revokeObjectURL(link.href);
}

/**
 * @param {URL} url @param {number} lastId @param {AbortSignal} signal @param {(lines: any[]) => void} onLines
 */
async function followLogs(url, lastId, signal, onLines) {
  await followStream({
    url,
    headers: { accept: "text/event-stream", ...keyHeaders() },
    lastId,
    endings: new Map([
      [204, "ended"],
      [404, "gone"],
    ]),
    signal,
    onLive: () => {},
    onFrames: (/** @type {any[]} */ frames) => {
      const lines = frames.flatMap(({ data }) => parsed(data));
      if (lines.length > 0) onLines(lines);
    },
    beforeRetry: async (/** @type {number} */ retryMs) => {
      await new Promise((resolve) => setTimeout(resolve, retryMs));
      return !signal.aborted;
    },
  });
}

/** @param {string} json @returns {any[]} nothing for a frame that is no line */
function parsed(json) {
  try {
    const line = JSON.parse(json);
    return typeof line?.message === "string" ? [line] : [];
  } catch {
    return [];
  }
}
