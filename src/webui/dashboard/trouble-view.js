// What a reader must know or do: why the run failed, and what waits for a person.

import { byId, element, scrollable, setText } from "./dom.js";
import { isObject, textOf } from "./event.js";
import { clean, dayAndTime, start } from "./format.js";

const TEXT_CHARS_MAX = 8_000;
const SHOWN_MAX = 50;

export class TroubleView {
  #page;
  #shownFailure = null;
  #shownRequests = "";

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
    byId("failure-body").replaceChildren(
      element("p", { class: "lead", dir: "auto", text: desc || message }),
      ...(message !== "" && message !== desc
        ? [element("p", { dir: "auto", class: "wrapped", text: message })]
        : []),
      ...(next === ""
        ? []
        : [element("p", { class: "next" }, element("strong", { text: "What to do: " }), next)]),
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
      ...(stderr === ""
        ? []
        : [
            element("h3", { text: "The end of what it printed to stderr" }),
            scrollable(element("pre", { text: stderr }), "The end of stderr"),
          ]),
    );
    byId("failure").hidden = false;
  }

  #showRequests(requests) {
    const { config } = this.#page;
    byId("people").hidden = requests.length === 0;
    const items = requests.slice(0, SHOWN_MAX).map((request) => requestItem(config.run_id, request));
    if (requests.length > SHOWN_MAX) {
      items.push(element("li", { class: "muted", text: `and ${requests.length - SHOWN_MAX} more` }));
    }
    byId("people-list").replaceChildren(...items);
  }
}

function requestItem(runId, { id, agentId, prompt, decisions, defaultAction, expiresAt }) {
  const line = `troupe answer ${runId ?? "RUN"} ${shellWord(id)} ${decisions.length === 0 ? "DECISION" : shellWord(decisions[0])}`;
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
    element("p", { class: "command" }, element("code", { text: clean(line) }), copyButton(clean(line))),
  );
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
      setText(button, "Select it by hand");
    }
    setTimeout(() => setText(button, "Copy"), 2_000);
  });
  return button;
}

const shellWord = (word) => (/^[\w.:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
const bounded = (text) => clean(start(text, TEXT_CHARS_MAX));
