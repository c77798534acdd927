// @ts-check
// Files of a run: each with its size and a way to save it. Images, text and pages can be looked at right here.
//
// - What a worker wrote never runs in this page: text is set as text, images are images, and pages are shown by the
//   server without scripts, in a frame that has no rights.

import { clean, size } from "../../dashboard/format.js";
import { kindOf, textBefore } from "../../dashboard/outputs-view.js";
import { request } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { shown } from "../parts/pieces.js";
import { linkTo } from "../session.js";

const PREVIEW_BYTES_MAX = 64 * 1024;

/** @param {{ id: string, files: any[] }} properties */
export const FileList = ({ id, files }) =>
  html`<ul class="plain outputs">${files.map((file) => html`<${File} key=${file.artifact_id} id=${id} file=${file} />`)}</ul>`;

/** @param {{ id: string, file: any }} properties */
function File({ id, file }) {
  const [isOpen, setOpen] = useState(file.primary === true);
  const label = shown(file.title || file.name, 200);
  const kind = kindOf(file);
  const facts = [
    file.title ? shown(file.name, 200) : "",
    size(file.size),
    shown(file.content_type.split(";")[0], 80),
    file.producer ? `by ${shown(file.producer, 80)}` : "",
  ];
  return html`<li class=${file.primary === true ? "output primary" : "output"}>
    <div class="output-line">
      <div class="output-name"><p class="lead" dir="auto">${label}</p><p class="muted" dir="auto">${facts.filter((text) => text !== "").join(" · ")}</p></div>
      ${kind !== null && html`<button type="button" aria-expanded=${isOpen} aria-label=${`${isOpen ? "Close" : "Preview"} ${label}`} onClick=${() => setOpen(!isOpen)}>${isOpen ? "Close" : "Preview"}</button>`}
      <button type="button" aria-label=${`Download ${label}`} onClick=${() => void save(file)}>Download</button>
    </div>
    ${isOpen && kind !== null && html`<div class="preview"><${Preview} id=${id} file=${file} kind=${kind} label=${label} /></div>`}
  </li>`;
}

/** @param {any} file */
async function save(file) {
  const link = document.createElement("a");
  link.href = await linkTo(file.url);
  link.download = clean(file.name).split("/").at(-1) || "output";
  link.click();
}

/** @param {{ id: string, file: any, kind: string, label: string }} properties */
function Preview({ id, file, kind, label }) {
  const [content, setContent] = useState(/** @type {string | null} */ (null));
  useEffect(() => {
    const page = `/api/v1/runs/${encodeURIComponent(id)}/dashboard/preview/${encodeURIComponent(file.artifact_id)}`;
    const reading = kind === "text" ? beginning(file) : linkTo(kind === "page" ? page : file.url);
    reading.then(setContent, () => setContent(""));
  }, [file.sha256]);
  if (content === null) return null;
  if (kind === "image") return html`<img src=${content} alt=${label} />`;
  // An empty sandbox: no scripts, no forms, no way to this page or out of it.
  if (kind === "page")
    return html`<iframe src=${content} sandbox="" title=${label} referrerpolicy="no-referrer"></iframe>`;
  return html`<pre dir="auto" tabindex="0" role="group" aria-label=${label}>${content}</pre>`;
}

/** @param {any} file */
async function beginning({ url, size: bytes }) {
  // Asking for a part of an empty file is a mistake.
  const headers = bytes > PREVIEW_BYTES_MAX ? { range: `bytes=0-${PREVIEW_BYTES_MAX - 1}` } : undefined;
  const answer = await request("GET", url, headers === undefined ? {} : { headers });
  const text = clean(await textBefore(answer.body, PREVIEW_BYTES_MAX));
  return bytes > PREVIEW_BYTES_MAX ? `${text}\n…` : text;
}
