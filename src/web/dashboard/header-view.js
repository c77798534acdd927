// The top of the page: what runs, how it is, for how long, how far, and whether what is shown is up to date. It also
// announces changes of state, and nothing else, to screen readers.

import { byId, setAttribute, setText } from "./dom.js";
import { clean, duration, plural } from "./format.js";
import { progressOf } from "./model.js";

const statusNames = new Map([
  ["pending", "Pending"],
  ["queued", "Queued"],
  ["running", "Running"],
  ["paused", "Paused"],
  ["completed", "Completed"],
  ["failed", "Failed"],
  ["cancelled", "Cancelled"],
]);

const signs = new Map([
  ["completed", "✓"],
  ["failed", "✗"],
  ["cancelled", "⊘"],
  ["paused", "‖"],
]);

const connectionNames = new Map([
  ["connecting", "Connecting"],
  ["live", "Live"],
  ["reconnecting", "Reconnecting"],
  ["ended", "Ended: all events are here"],
  ["gone", "The run was deleted"],
  ["refused", "Not let in: reload the page"],
  ["replaced", "This address shows another run now: reload the page"],
  ["saved", "A saved run"],
]);

export class HeaderView {
  #page;
  #offsetMs;
  #announced = { status: null, connection: null };

  constructor(page) {
    this.#page = page;
    const { config } = page;
    // The reader's clock may be wrong; times in events are the server's.
    this.#offsetMs = Date.parse(config.now ?? "") - Date.now() || 0;
    setText(byId("title"), clean(config.title));
    setText(byId("run-id"), config.run_id ?? "saved run");
    if (config.console != null) {
      byId("console").href = config.console;
      byId("console").hidden = false;
    }
  }

  draw() {
    const { model, run, connection } = this.#page;
    const status = this.#status();
    const name = statusNames.get(status) ?? status;
    const shown = model.isPartial && status === "completed" ? `${name}, in part` : name;
    setText(byId("status"), shown);
    setAttribute(byId("status"), "data-state", status);
    setAttribute(document.querySelector(".top"), "data-status", status);
    const { percent, done, total } = progressOf(model);
    const bar = byId("progress");
    setAttribute(bar, "aria-valuenow", percent);
    bar.firstElementChild.style.inlineSize = `${percent}%`;
    setText(byId("progress-text"), labelOf({ status, run, done, total }));
    const mark = signs.get(status) ?? (status === "running" ? `${percent}%` : "");
    document.title = `${mark === "" ? "" : `${mark} `}${clean(this.#page.config.title)}`;
    const reached = connectionNames.get(connection) ?? connection;
    setText(byId("connection"), reached);
    setAttribute(byId("connection"), "data-connection", connection);
    // Behind the last event it is no news that the connection is made again: that would take the place of the run's end.
    const isQuiet = model.endedAt !== null && ["live", "reconnecting"].includes(connection);
    this.#announce(shown, isQuiet ? connectionNames.get("ended") : reached);
    this.tick();
  }

  /** Time goes by without events. */
  tick() {
    const { model, run } = this.#page;
    const startedMs = Date.parse(model.startedAt ?? run?.started_at ?? "");
    const endedMs = Date.parse(model.endedAt ?? run?.finished_at ?? "");
    const untilMs = Number.isNaN(endedMs) ? Date.now() + this.#offsetMs : endedMs;
    setText(byId("elapsed"), Number.isNaN(startedMs) ? "–" : duration(Math.max(0, untilMs - startedMs)));
  }

  /** The events know it first; before the first of them, and for a run that waits, its record does. */
  #status() {
    const { model, run } = this.#page;
    return model.lastId > 0 ? model.status : (run?.status ?? "pending");
  }

  #announce(status, connection) {
    const last = this.#announced;
    const news = [];
    if (last.status !== null && last.status !== status) news.push(`The run is now: ${status}.`);
    // A connection that is made says nothing new, unless one was lost; and of the end, the run's status tells.
    const isNews = ![null, "Connecting"].includes(last.connection) && !connection.startsWith("Ended");
    if (isNews && last.connection !== connection) news.push(`Connection: ${connection}.`);
    this.#announced = { status, connection };
    if (news.length > 0) setText(byId("announcer"), news.join(" "));
  }
}

function labelOf({ status, run, done, total }) {
  // What is prepared before the graph begins is only told by the run's record.
  const label = run?.progress?.label;
  const isBeforeStart = status === "pending" || status === "queued";
  if (isBeforeStart && typeof label === "string") return clean(label);
  return total === 0 ? "" : `${done} of ${plural(total, "agent")} done`;
}
