// What the run made: each file with its size and a way to save it, the one that matters first. Images, text and pages can
// be looked at right here.
//
// - What a worker wrote never runs in this page: text is set as text, images are images, and pages are shown by the
//   server without scripts, in a frame that has no rights.

import { byId, element, scrollable, setText } from "./dom.js";
import { clean, size, start } from "./format.js";

const PREVIEW_BYTES_MAX = 64 * 1024;
const RESULT_CHARS_MAX = 200_000;
const IMAGES = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)\b/;
const PAGES = /^text\/html\b/;
const TEXTS = /^(text\/|application\/(json|x-ndjson|xml|yaml|toml)\b)/;

export class OutputsView {
  #page;
  #base;
  #shown = "";
  #isSourceGone = false;

  /** @param base what the URLs of outputs are relative to */
  constructor(page, base) {
    this.#page = page;
    this.#base = base;
  }

  /** @param list {items, next_page_token}; null when it could not be read: what is shown stays */
  show(list) {
    if (!Array.isArray(list?.items)) return;
    const key = JSON.stringify(list.items.map(({ artifact_id, sha256 }) => [artifact_id, sha256]));
    if (key === this.#shown || this.#isSourceGone) return;
    this.#shown = key;
    const items = [...list.items].sort((a, b) => Number(b.primary === true) - Number(a.primary === true));
    const cards = items.map((output) => this.#card(output));
    if (list.next_page_token) {
      const text = `More are listed by: troupe runs outputs ${this.#page.config.run_id}`;
      cards.push(element("li", { class: "muted", text }));
    }
    byId("outputs-list").replaceChildren(...cards);
    byId("outputs-empty").hidden = cards.length > 0;
    // The primary output is previewed at once.
    const [first] = items;
    if (first?.primary === true) this.#preview(first, cards[0], true);
  }

  /**
   * The server of this page ends with its run: from now on files are at the gateway, and what is not looked at yet can
   * only be looked at there.
   */
  sourceGone() {
    this.#isSourceGone = true;
    const { gateway_page: page } = this.#page.config;
    for (const card of byId("outputs-list").querySelectorAll("li.output"))
      card.querySelector("button")?.remove();
    const links = byId("outputs-list").querySelectorAll("a.button");
    if (!page || links.length === 0) return;
    for (const link of links) {
      const file = new URL(page);
      file.pathname = file.pathname.replace(
        /dashboard$/,
        `artifacts/${encodeURIComponent(link.dataset.artifact)}`,
      );
      link.href = file.href;
    }
    const more = element("a", { href: page, text: "The run's page at the gateway" });
    byId("outputs-list").append(element("li", { class: "muted" }, more, " stays, with all its files."));
  }

  draw() {
    const isOver = this.#page.model.endedAt !== null;
    setText(byId("outputs-empty"), isOver ? "The run has no outputs." : "Nothing yet.");
  }

  showResult(result) {
    byId("result").hidden = result === null;
    if (result === null) return;
    setText(
      scrollable(byId("result").querySelector("pre"), "The run's result"),
      clean(start(JSON.stringify(result, null, 2), RESULT_CHARS_MAX)),
    );
  }

  #card(output) {
    const { name = "", title, primary, size: bytes, content_type: type = "", producer } = output;
    const label = clean(title || name);
    const facts = [
      title ? clean(name) : "",
      size(bytes),
      clean(type.split(";")[0]),
      producer ? `by ${clean(producer)}` : "",
    ];
    const save = element("a", {
      class: "button",
      href: this.#urlOf(output),
      download: fileName(name),
      "data-artifact": output.artifact_id,
      "aria-label": `Download ${label}`,
      text: "Download",
    });
    return element(
      "li",
      { class: primary === true ? "output primary" : "output" },
      element(
        "div",
        { class: "output-line" },
        element(
          "div",
          { class: "output-name" },
          element("p", { class: "lead", dir: "auto", text: start(label, 200) }),
          element("p", {
            class: "muted",
            dir: "auto",
            text: start(facts.filter((text) => text !== "").join(" · "), 300),
          }),
        ),
        this.#looker(output, label),
        save,
      ),
    );
  }

  #looker(output, label) {
    if (kindOf(output) === null) return null;
    const button = element("button", {
      type: "button",
      text: "Preview",
      "aria-expanded": "false",
      "aria-label": `Preview ${label}`,
    });
    button.addEventListener("click", () => {
      const card = button.closest("li");
      this.#preview(output, card, card.querySelector(".preview") === null);
    });
    return button;
  }

  #preview(output, card, shall) {
    const button = card.querySelector("button");
    if (button === null) return;
    button.setAttribute("aria-expanded", String(shall));
    setText(button, shall ? "Close" : "Preview");
    card.querySelector(".preview")?.remove();
    if (!shall) return;
    const frame = element("div", { class: "preview" });
    card.append(frame);
    void fill(frame, output, { file: this.#urlOf(output), page: this.#previewUrlOf(output) });
  }

  #urlOf({ url = "" }) {
    return safeUrl(url, this.#base);
  }

  #previewUrlOf({ artifact_id: id = "" }) {
    return new URL(`preview/${encodeURIComponent(id)}`, this.#base).href;
  }
}

export function kindOf({ content_type: type = "" }) {
  if (IMAGES.test(type)) return "image";
  if (PAGES.test(type)) return "page";
  return TEXTS.test(type) ? "text" : null;
}

async function fill(frame, output, { file, page }) {
  const label = clean(output.title || output.name || "");
  switch (kindOf(output)) {
    case "image":
      frame.append(element("img", { src: file, alt: label, loading: "lazy" }));
      return;
    case "page":
      // An empty sandbox: no scripts, no forms, no way to this page or out of it.
      frame.append(
        element("iframe", { src: page, sandbox: "", title: label, referrerpolicy: "no-referrer" }),
      );
      return;
    default: {
      const text = await beginning(file, output.size);
      frame.append(scrollable(element("pre", { dir: "auto", text }), label));
    }
  }
}

async function beginning(url, bytes) {
  try {
    // Asking for a part of an empty file is a mistake.
    const headers = bytes > PREVIEW_BYTES_MAX ? { range: `bytes=0-${PREVIEW_BYTES_MAX - 1}` } : {};
    const answer = await fetch(url, { headers });
    if (!answer.ok) return `The file cannot be read (${answer.status}).`;
    const text = clean(await textBefore(answer.body, PREVIEW_BYTES_MAX));
    return bytes > PREVIEW_BYTES_MAX ? `${text}\n…` : text;
  } catch {
    return "The file cannot be read now.";
  }
}

/** The beginning of a body. Not every server supports ranges, and a preview must not load gigabytes. */
export async function textBefore(body, charsMax) {
  let text = "";
  for await (const part of body.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.length >= charsMax) break;
  }
  return text.slice(0, charsMax);
}

/** Only what the page's own server has. */
function safeUrl(url, base) {
  const found = new URL(url, base);
  return found.origin === base.origin && found.protocol.startsWith("http") ? found.href : "";
}

const fileName = (name) => clean(name).split("/").at(-1) || "output";
