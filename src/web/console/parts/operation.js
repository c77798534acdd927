// @ts-check
// Long work on one thing: how far its latest operation has come, and a removal, which shows first what would go.

import { size } from "../../dashboard/format.js";
import { post } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { to } from "../router.js";
import { Dialog } from "./dialog.js";
import { useResource } from "./list.js";
import { Bar, Facts, Pill, Problem, shown } from "./pieces.js";
import { Elapsed, Time } from "./time.js";

/** So many dry runs may stand before what has changed something. */
const LOOKED_AT = 20;

/**
 * The latest operation of a kind that is no dry run, while it goes on and afterwards.
 *
 * @param {string} target as operations name it @param {"blueprint" | "model"} kind what it is
 * @returns {any} null without one
 */
export function useLatestOperation(target, kind) {
  const query = new URLSearchParams({ target, page_size: String(LOOKED_AT) });
  const { value: page } = useResource(`/operations?${query}`, ["operations"]);
  const isWanted = (/** @type {any} */ one) => one.kind.startsWith(kind) && !one.dry_run;
  return page?.items.find(isWanted) ?? null;
}

/** @param {{ operation: any }} properties */
export function LatestOperation({ operation }) {
  const { status, progress, error, created_at: at, finished_at: end } = operation;
  const what = operation.kind.split("_").at(-1);
  return html`<section class="card" aria-labelledby="operation-heading" data-operation=${status}>
    <h2 id="operation-heading">The latest ${what}</h2>
    <${Facts} items=${[
      ["Status", html`<${Pill} state=${status} />`],
      ["Began", html`<${Time} at=${at} />`],
      ["Duration", html`<${Elapsed} from=${at} to=${end} />`],
      ["Others", html`<a href=${to(["operations"], { target: operation.target })}>All its operations</a>`],
    ]} />
    ${
      end === null &&
      html`<div class="below"><${Bar} value=${progress.percent} total=${100} label=${`Progress of the ${what}`} state=${status} />
        <p class="muted" dir="auto" aria-live="polite">${shown(progress.label, 400)}</p></div>`
    }
    ${
      error !== null &&
      html`<div class="below wrong" role="alert"><p class="wrapped" dir="auto">${shown(error.detail, 2_000)}</p>
        <p><code>${error.code}</code>${error.retryable ? " It may succeed when it is tried again." : ""}</p></div>`
    }
    <ol class="steps plain" aria-label="Steps">${progress.steps.map(
      (/** @type {any} */ step) =>
        html`<li key=${step.name}><${Pill} state=${step.status} name=${stepNames.get(step.status)} /> <span dir="auto">${shown(step.label, 200)}</span></li>`,
    )}</ol>
  </section>`;
}

const stepNames = new Map(
  Object.entries({
    pending: "To do",
    running: "Under way",
    completed: "Done",
    failed: "Failed",
    skipped: "Nothing to do",
  }),
);

/**
 * @typedef {object} RemovalProperties
 * @property {string} path where a removal is asked for
 * @property {string} text what goes, and what stays
 * @property {readonly (readonly [name: string, label: string])[]} choices how it may be asked for
 */

/**
 * @param {RemovalProperties & { title: string, disabled: boolean, began: () => void }} properties began: a removal goes on
 */
export function Remove({ title, disabled, began, ...asked }) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return html`<button type="button" class="danger" disabled=${disabled} onClick=${() => setOpen(true)}>Remove</button>
    ${
      isOpen &&
      html`<${Dialog} title=${title} class="broad" close=${close}>
      <${Removal} ...${asked} close=${close} began=${() => {
        close();
        began();
      }} /></${Dialog}>`
    }`;
}

/** @param {RemovalProperties & { close: () => void, began: () => void }} properties */
function Removal({ path, text, choices, close, began }) {
  const [kept, setKept] = useState(/** @type {Record<string, boolean>} */ ({}));
  const [id, setId] = useState(/** @type {string | null} */ (null));
  const [problem, setProblem] = useState(/** @type {unknown} */ (null));
  const [isBusy, setBusy] = useState(false);
  const look = async () => {
    setId(null);
    setProblem(null);
    try {
      const { operation_id: begun } = await post(path, { dry_run: true, ...kept });
      setId(begun);
    } catch (error) {
      setProblem(error);
    }
  };
  useEffect(() => void look(), [kept]);
  const { value: operation, error } = useResource(id === null ? null : `/operations/${id}`, ["operations"]);
  const preview = operation?.result?.preview;
  const failed = problem ?? error ?? (operation?.error ? new Error(operation.error.detail) : null);
  const remove = async () => {
    setBusy(true);
    try {
      await post(path, kept);
      began();
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  const choice = (/** @type {readonly [string, string]} */ [name, label]) =>
    html`<label key=${name} class="tick"><input type="checkbox" checked=${kept[name] === true} disabled=${preview === undefined && failed === null} onChange=${(/** @type {any} */ event) => setKept({ ...kept, [name]: event.target.checked })} /> ${label}</label>`;
  return html`<p>${text}</p>
    <div class="actions">${choices.map(choice)}</div>
    ${failed !== null && html`<${Problem} error=${failed} retry=${() => void look()} />`}
    ${failed === null && preview === undefined && html`<p class="muted" role="status">Looking at what would go…</p>`}
    ${failed === null && preview !== undefined && html`<${Preview} preview=${preview} />`}
    <div class="actions end"><button type="button" onClick=${close}>Close</button>
      <button type="button" class="danger" disabled=${isBusy || failed !== null || preview === undefined} onClick=${remove}>Remove it</button></div>`;
}

/** What a dry run came to. @param {{ preview: any }} properties */
const Preview = ({
  preview: { resources, bytes_freed: bytes, jobs_affected: jobs, used_by: users = [] },
}) => html`
    ${
      resources.length > 0 &&
      html`<div class="rows"><table><thead><tr><th scope="col">What</th><th scope="col">Kind</th><th scope="col">Size</th><th scope="col">Then</th></tr></thead>
      <tbody>${resources.map(
        (
          /** @type {any} */ one,
        ) => html`<tr key=${one.kind + one.id}><th scope="row"><code dir="auto" class="wrapped">${one.kind === "package" ? `${shown(one.id, 12)}…` : shown(one.id, 200)}</code></th>
        <td data-name="Kind">${one.kind}</td><td class="tight" data-name="Size">${size(one.bytes)}</td>
        <td data-name="Then">${one.action === "delete" ? html`<strong>goes</strong>` : "stays, since something uses it or you keep it"}</td></tr>`,
      )}</tbody></table></div>`
    }
    <${Facts} items=${[
      ["Freed", size(bytes)],
      ["Needed by", shown(users.join(", "), 400)],
      ["Jobs made from it", jobs > 0 && `${jobs}, which may not run until it is added again`],
    ]} />`;
