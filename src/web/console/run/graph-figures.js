// @ts-check
// What boxes of the graph can tell beside their state: figures of their agents, out of the run's events.

import { count, duration, plural } from "../../dashboard/format.js";
import { totalsOf } from "./spans.js";

/** @typedef {(source: import("./run-source.js").RunSource, id: string, nowMs: number) => number} Figure */

/** @param {(totals: Partial<Record<import("./spans.js").SpanKind, number>>) => number} pick @returns {Figure} */
const spent = (pick) => (source, id, nowMs) => pick(totalsOf(source.spans.byAgent.get(id) ?? [], nowMs));

/** @param {string} field of an agent in ../../dashboard/model.js @returns {Figure} */
const counted = (field) => (source, id) => source.model.agents.get(id)?.[field] ?? 0;

/** @type {ReadonlyMap<string, { name: string, figure: Figure, unit: string }>} unit: what is counted; "": milliseconds */
export const figures = new Map(
  Object.entries({
    duration: {
      name: "Working time",
      figure: spent(({ running = 0, failed = 0 }) => running + failed),
      unit: "",
    },
    queue: { name: "Wait for a slot", figure: spent(({ queued = 0 }) => queued), unit: "" },
    retries: { name: "Retries", figure: counted("retries"), unit: "more attempt" },
    tokens: { name: "Tokens", figure: counted("tokens"), unit: "token" },
    messages: { name: "Messages", figure: counted("messages"), unit: "message" },
    dead: { name: "Dead letters", figure: counted("deadLetters"), unit: "dead letter" },
  }),
);

/** A figure in a column that says what it is. @param {number} value @param {string} unit */
export function short(value, unit) {
  if (value === 0) return "–";
  return unit === "" ? duration(value) : count(value);
}

/**
 * @param {import("./run-source.js").RunSource} source
 * @param {string} name of `figures`
 * @param {readonly { members: string[] }[]} boxes
 * @returns {((box: { members: string[] }) => { text: string, share: number }) | null} share of the box with the most; null: no such figure
 */
export function overlayOf(source, name, boxes) {
  const found = figures.get(name);
  if (found === undefined) return null;
  const nowMs = nowOf(source);
  const sums = new Map(
    boxes.map((box) => [box, box.members.reduce((sum, id) => sum + found.figure(source, id, nowMs), 0)]),
  );
  const most = Math.max(1, ...sums.values());
  return (box) => {
    const sum = sums.get(box) ?? 0;
    return { text: found.unit === "" ? short(sum, "") : plural(sum, found.unit), share: sum / most };
  };
}

/** Until when what goes on has gone on. @param {import("./run-source.js").RunSource} source */
export const nowOf = ({ run, spans }) => (run.finished_at === null ? Date.now() : spans.lastMs);
