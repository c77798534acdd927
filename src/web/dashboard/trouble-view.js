// What a reader must know or do: why the run failed, and what waits for a person.

import { byId, element, fill, scrollable, setText } from "./dom.js";
import { isObject, textOf } from "./event.js";
import { clean, dayAndTime, start } from "./format.js";

const TEXT_CHARS_MAX = 8_000;
const SHOWN_MAX = 50;

export class TroubleView {
  #page;
  #shownFailure = null;
  #shownRequests = "";
  #items = new Map();
  #more = element("li", { class: "muted" });

  constructor(page) {
    this.#page = page;
  }

  draw() {
    const { model, run } = this.#page;
    const failure = model.failure ?? (isObject(run?.failure) ? run.failure : null);
    if (failure !== null && failure !== this.#shownFailure) this.#showFailure(failure);
    this.#shownFailure = failure;
    const requests = [...model.requests.values()];
    const key = requests.map(({ id }) => id).join("\n");
    if (key !== this.#shownRequests) this.#showRequests(requests);
    this.#shownRequests = key;
  }

  #showFailure(failure) {
    const details = isObject(failure.details) ? failure.details : {};
    const attempts = [details.attempt, details.max_attempts].filter(Number.isInteger).join(" of ");
    const facts = [
      ["Code", textOf(failure.code)],
      ["Agent", textOf(details.agent_id)],
      ["Attempt", attempts],
      ["Exit code", Number.isInteger(details.exit_code) ? String(details.exit_code) : ""],
      ["Signal", textOf(details.signal)],
      ["When", dayAndTime(failure.occurred_at)],
    ].filter(([, value]) => value !== "");
    const desc = bounded(textOf(failure.desc));
    const message = bounded(textOf(details.message));
    const next = bounded(textOf(failure.remediation));
    const stderr = bounded(textOf(details.stderr_tail));
    fill(
      byId("failure-body"),
      element("p", { class: "lead", dir: "auto", text: desc || message }),
      message === "" || message === desc
        ? null
        : element("p", { dir: "auto", class: "wrapped", text: message }),
      next === "" ? null : element("p", {}, element("strong", { text: "What to do: " }), next),
      element(
        "dl",
        { class: "details" },
        ...facts.map(([name, value]) =>
          element(
            "div",
            {},
            element("dt", { text: name }),
            element("dd", { dir: "auto", text: clean(value) }),
          ),
        ),
      ),
      stderr === "" ? null : element("h3", { text: "The end of what it printed to stderr" }),
      stderr === "" ? null : scrollable(element("pre", { text: stderr }), "The end of stderr"),
    );
    byId("failure").hidden = false;
  }

  /** The item of a question stays as long as the question: a reader may be typing an answer. */
  #showRequests(requests) {
    const { config } = this.#page;
    byId("people").hidden = requests.length === 0;
    const list = byId("people-list");
    const shown = requests.slice(0, SHOWN_MAX);
    const ids = new Set(shown.map(({ id }) => id));
    for (const [id, item] of this.#items) {
      if (ids.has(id)) continue;
      item.remove();
      this.#items.delete(id);
    }
    for (const request of shown) {
      if (this.#items.has(request.id)) continue;
      const item = requestItem(config, request);
      this.#items.set(request.id, item);
      list.append(item);
    }
    this.#more.hidden = requests.length <= SHOWN_MAX;
    setText(this.#more, `and ${requests.length - SHOWN_MAX} more`);
    list.append(this.#more);
  }
}

function requestItem(config, request) {
  const { id, agentId, prompt, decisions, defaultAction, expiresAt } = request;
  // Without a decision: what is copied must not answer by itself.
  const line = `troupe answer ${config.run_id ?? "RUN"} ${shellWord(id)} `;
  const notes = [
    decisions.length === 0 ? "Any answer is taken." : `Answers: ${decisions.join(", ")}.`,
    expiresAt === null
      ? ""
      : `Without one by ${dayAndTime(expiresAt)}, ${defaultAction === null ? "it times out" : `it is taken as ${defaultAction}`}.`,
  ];
  return element(
    "li",
    {},
    element("p", { class: "lead wrapped", dir: "auto", text: bounded(prompt) || "A question without words" }),
    element("p", {
      class: "muted wrapped",
      dir: "auto",
      text: bounded(`${agentId} asks. ${notes.join(" ")}`),
    }),
    config.answers ? answerForm(config.answers, request) : gatewayLink(config),
    element("p", { class: "command" }, element("code", { text: clean(line) }), copyButton(clean(line))),
  );
}

function gatewayLink({ gateway_page: page }) {
  if (!page) return null;
  return element("p", {}, element("a", { href: page, text: "Answer on the run's page at the gateway" }));
}

/** A button for each decision, or a field for any; the comment is optional. */
function answerForm(answers, { id, decisions }) {
  const outcome = element("p", { role: "status", class: "wrapped" });
  const comment = element("input", { name: "comment", autocomplete: "off" });
  const free = element("input", { name: "decision", autocomplete: "off", required: true });
  const buttons = (decisions.length === 0 ? ["Answer"] : decisions.slice(0, SHOWN_MAX)).map((decision) =>
    element("button", { type: "submit", value: decision, dir: "auto", text: start(clean(decision), 80) }),
  );
  const form = element(
    "form",
    { class: "answer" },
    decisions.length === 0 ? element("label", {}, "Answer ", free) : null,
    element("label", {}, "Comment ", comment),
    element("div", { class: "tools" }, ...buttons),
    outcome,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const decision = decisions.length === 0 ? free.value : event.submitter.value;
    for (const button of buttons) button.disabled = true;
    const failure = await sendAnswer(`${answers}${encodeURIComponent(id)}/response`, {
      decision,
      ...(comment.value !== "" && { comment: comment.value }),
    });
    // An answer that was taken removes the question, when its event comes.
    setText(outcome, failure ?? "Sent.");
    for (const button of buttons) button.disabled = failure === null;
  });
  return form;
}

/** @returns what went wrong, for people; null when the answer was taken */
async function sendAnswer(url, body) {
  try {
    const answer = await fetch(new URL(url, import.meta.url), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (answer.ok) return null;
    if (answer.status === 401 || answer.status === 403) {
      return "This address may only look at the run. Answer with the command, or sign in at the gateway with its token.";
    }
    const problem = await answer.json().catch(() => null);
    return bounded(textOf(problem?.detail)) || `The answer was refused (${answer.status}).`;
  } catch {
    return "The gateway cannot be reached. Try again.";
  }
}

/** What the browser does not let a page copy, a reader can select. */
function copyButton(text) {
  if (navigator.clipboard === undefined) return null;
  const button = element("button", { type: "button", text: "Copy", "aria-label": "Copy the command" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      setText(button, "Copied");
    } catch {
      setText(button, "Select it manually");
    }
    setTimeout(() => setText(button, "Copy"), 2_000);
  });
  return button;
}

const shellWord = (word) => (/^[\w.:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
const bounded = (text) => clean(start(text, TEXT_CHARS_MAX));
