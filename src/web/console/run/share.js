// @ts-check
// Links that show one run to everybody who has them: made here, shown once, listed and ended.

import { post, request } from "../api.js";
import { html, useState } from "../html.js";
import { Action, Dialog } from "../parts/dialog.js";
import { useList } from "../parts/list.js";
import { Copy, Problem } from "../parts/pieces.js";
import { Time } from "../parts/time.js";

const DAYS = [1, 7, 30, 365];

/** @param {{ runId: string, close: () => void }} properties */
export function Shares({ runId, close }) {
  const { items, hasMore, error, more, again } = useList("/sessions", { kind: "share", run_id: runId }, []);
  const [days, setDays] = useState(7);
  const [link, setLink] = useState("");
  const make = async () => {
    const made = await post("/sessions", { kind: "share", run_id: runId, days });
    setLink(location.origin + made.path);
    again();
  };
  const end = (/** @type {string} */ id) => async () => {
    await request("DELETE", `/sessions/${encodeURIComponent(id)}`);
    setLink("");
    again();
  };
  return html`<${Dialog} title="Share this run" close=${close}>
    <p>Everybody who has the link sees this run, and nothing else. Nobody can change anything with it.</p>
    <div class="actions">
      <label>Good for <select value=${days} onChange=${(/** @type {any} */ event) => setDays(Number(event.currentTarget.value))}>
        ${DAYS.map((count) => html`<option key=${count} value=${count}>${count === 1 ? "a day" : `${count} days`}</option>`)}
      </select></label>
      <${Action} label="Make a link" act=${make} />
    </div>
    ${
      link !== "" &&
      html`<p role="status">It is shown only now:</p>
      <div class="actions"><input class="wide" readonly aria-label="The link" value=${link} onFocus=${(/** @type {any} */ event) => event.currentTarget.select()} />
      <${Copy} text=${() => link}>Copy</${Copy}></div>`
    }
    ${error === null ? null : html`<${Problem} error=${error} retry=${again} />`}
    ${
      items !== null &&
      items.length > 0 &&
      html`<h3>Links that are good</h3>
      <ul class="plain">${items.map(
        (one) => html`<li key=${one.session_id} class="line">
          <span>Made <${Time} at=${one.created_at} />, ends <${Time} at=${one.expires_at} /></span>
          <${Action} label="End" danger act=${end(one.session_id)} />
        </li>`,
      )}</ul>
      ${hasMore && html`<button type="button" onClick=${more}>More</button>`}`
    }
    <div class="actions end"><button type="button" onClick=${close}>Close</button></div>
  </${Dialog}>`;
}
