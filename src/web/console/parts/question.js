// @ts-check
// A question of a worker: a button for each decision, none of them chosen before; a comment; fields for its data.

import { ApiProblem, get, post } from "../api.js";
import { html, useRef, useState } from "../html.js";
import { to } from "../router.js";
import { isGuest } from "../session.js";
import { shown } from "./pieces.js";
import { SchemaForm } from "./schema-form.js";
import { Time } from "./time.js";

const DECISIONS_MAX = 50;

/** @param {{ request: any, answered: () => void, withRun?: boolean }} properties */
export function Question({ request, answered, withRun = false }) {
  const { request_id: id, run_id: runId, agent_id: agent, prompt, allowed_decisions: decisions } = request;
  const schema = request.data_schema ?? null;
  const [data, setData] = useState(/** @type {any} */ (undefined));
  const [findings, setFindings] = useState(/** @type {import("./schema-form.js").Finding[]} */ ([]));
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const path = `/runs/${encodeURIComponent(runId)}/human/${encodeURIComponent(id)}`;
  const send = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const given = new FormData(/** @type {HTMLFormElement} */ (form.current));
    const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
    const comment = String(given.get("comment") ?? "");
    const decision = decisions.length === 0 ? String(given.get("decision") ?? "") : (button?.value ?? "");
    setBusy(true);
    try {
      // An object without anything filled in, so that what is missing is said field by field.
      const filled = data ?? (schema?.type === "object" ? {} : undefined);
      await post(`${path}/response`, {
        decision,
        ...(comment !== "" && { comment }),
        ...(filled !== undefined && { data: filled }),
      });
      setProblem("");
      setFindings([]);
      answered();
    } catch (error) {
      setFindings(error instanceof ApiProblem ? error.errors : []);
      setProblem(await why(error, path));
      setBusy(false);
    }
  };
  const ends =
    request.expires_at === null
      ? ""
      : html` Without an answer by <${Time} at=${request.expires_at} /> it ${request.default_action === null ? "times out" : `is taken as ${shown(request.default_action, 80)}`}.`;
  return html`<p class="lead wrapped" dir="auto">${shown(prompt) || "A question without words"}</p>
    <p class="muted" dir="auto">${shown(agent, 80)} asks since <${Time} at=${request.created_at} />${withRun && html` in <a href=${to(["runs", runId])}><code>${runId}</code></a>`}.${ends}</p>
    ${
      !isGuest() &&
      html`<form ref=${form} class="answer" onSubmit=${send}>
      ${decisions.length === 0 && html`<label class="field">Answer <input name="decision" required autocomplete="off" /></label>`}
      ${schema !== null && html`<${SchemaForm} schema=${schema} value=${data} change=${setData} findings=${findings} path="/data" label="Data" />`}
      <label class="field">Comment <input name="comment" autocomplete="off" /></label>
      <div class="actions">${(decisions.length === 0 ? ["Answer"] : decisions.slice(0, DECISIONS_MAX)).map((/** @type {string} */ decision) => html`<button key=${decision} type="submit" value=${decision} disabled=${isBusy} dir="auto">${shown(decision, 80)}</button>`)}</div>
      <p role="alert" class="wrong" dir="auto">${problem}</p>
    </form>`
    }`;
}

/** @param {unknown} error @param {string} path */
async function why(error, path) {
  if (!(error instanceof ApiProblem) || error.code !== "already_answered") {
    return error instanceof Error ? error.message : String(error);
  }
  const { response } = await get(path).catch(() => ({ response: null }));
  const who = response?.principal ?? "somebody";
  return `Answered already: ${who} decided ${shown(response?.decision, 80) || "something else"}. Your answer was not taken.`;
}
