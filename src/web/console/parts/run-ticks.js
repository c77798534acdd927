// @ts-check
// Runs of a list that are ticked, and what is done with all of them.

import { plural } from "../../dashboard/format.js";
import { patch } from "../api.js";
import { html, signal } from "../html.js";
import { useMany } from "./many.js";
import { shown } from "./pieces.js";

/** The ids of the runs that are ticked. */
export const ticked = signal(/** @type {ReadonlySet<string>} */ (new Set()));

/** @param {string} id */
export function tick(id) {
  const next = new Set(ticked.value);
  if (!next.delete(id)) next.add(id);
  ticked.value = next;
}

const open = ["pending", "queued", "running"];
const controls = [
  {
    label: "Pause",
    from: open,
    desired: "paused",
    done: "were paused",
    question: "What runs now comes to its end, and nothing new begins.",
  },
  {
    label: "Resume",
    from: ["paused"],
    desired: "running",
    done: "were resumed",
    question: "They go on where they were paused.",
  },
  {
    label: "Cancel",
    from: [...open, "paused"],
    desired: "cancelled",
    done: "were cancelled",
    question:
      "Cancelling ends what these runs do. It cannot be undone, and what they have done outside stays.",
    danger: true,
  },
];

/** @param {{ runs: any[], again: () => void }} properties */
export function Bulk({ runs, again }) {
  const many = useMany();
  const chosen = runs.filter(({ run_id: id }) => ticked.value.has(id));
  const ask = (
    /** @type {typeof controls[number]} */ { label, desired, done, question, danger },
    /** @type {any[]} */ which,
  ) =>
    many.ask({
      title: `${label} ${plural(which.length, "run")}`,
      find: async () => which,
      question: () => question,
      confirm: () => `${label} ${which.length}`,
      // What was done is not ticked any more; what could not be done stays.
      act: async ({ run_id: id }) => {
        await patch(`/runs/${encodeURIComponent(id)}`, { desired_state: desired });
        if (ticked.value.has(id)) tick(id);
      },
      nameOf: ({ run_id: id, job_name: name }) => `${shown(name, 60)} ${id}`,
      done,
      danger: danger === true,
      after: again,
    });
  return html`${many.dialog}${
    chosen.length > 0 &&
    html`<div class="bulk" role="group" aria-label="The runs that are ticked">
    <span class="number">${chosen.length} ticked</span>
    ${controls.map((control) => {
      const which = chosen.filter(({ status }) => control.from.includes(status));
      return html`<button key=${control.label} type="button" class=${control.danger ? "danger" : ""} disabled=${which.length === 0} onClick=${() => ask(control, which)}>${`${control.label} ${which.length}`}</button>`;
    })}
    <button type="button" onClick=${() => (ticked.value = new Set())}>Tick none</button>
  </div>`
  }`;
}
