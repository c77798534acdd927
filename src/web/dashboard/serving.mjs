// What the dashboard's server answers. Beside /healthz, everything needs admission (admission.mjs):
//
//   adapter dashboard     the page and its parts, and beside them the run's data
//   adapter static_html   the blueprint's own page and what lies beside it; the run's data below /_run/
//
// The run's data: config.json, graph.json, run, outputs, events (a stream), files/<artifact>, preview/<artifact>.
//
// - Nothing is changed by any request: there are GET and HEAD.
// - What a worker wrote is downloaded, or shown without scripts and without rights; its type is never guessed.
// - What browsers ask together is asked of the source once.

import { pipeline } from "node:stream/promises";
import { isLoopbackHost } from "./admission.mjs";
import { contentTypeOf, fileInside, sendFile } from "./files.mjs";
import served from "./served.json" with { type: "json" };

const ARTIFACT_ID = /^[\w.-]{1,200}$/;
const ANSWER_KEPT_MS = 500;
const PAGE_FILE = new RegExp(served.pageFiles);

const common = {
  "cache-control": "no-cache",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Of the blueprint's own page, which may bring its own styles and scripts, but connects to no other host. */
const sitePolicy =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; frame-ancestors 'self'; base-uri 'none'; form-action 'self'";
const downloadPolicy = "default-src 'none'; sandbox";

/**
 * Makes what answers requests.
 *
 * @param parts.site null for the dashboard's own page, else {folder, page} of the blueprint's
 * @param parts.folder of the dashboard's own files
 * @returns {answer(request, response), outputs()}, the latter as browsers are told them
 */
export function serving(parts) {
  const { admit, hub, site } = parts;
  const data = new RunData(parts);
  const prefix = site === null ? "/" : "/_run/";
  const answer = async (request, response) => {
    const url = URL.parse(`http://dashboard${request.url}`);
    if (url === null) return sendText(response, 400, "This address cannot be read.");
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return sendText(response, 405, "This dashboard only shows.");
    }
    if (url.pathname === "/healthz")
      return sendJson(request, response, { status: "ok", run_id: data.runId, upstream: hub.state });
    const admitted = admit(request, url);
    if (admitted.kind === "refused") return refuse(response, admitted);
    if (admitted.kind === "redirect") return redirect(response, admitted);
    const path = decoded(url.pathname);
    if (path === null) return sendText(response, 400, "This address cannot be read.");
    if (path.startsWith(prefix) && (await data.answer(request, response, path.slice(prefix.length)))) return;
    if (site === null) return sendPage(request, response, parts, path.slice(1));
    return sendSite(request, response, site, path.slice(1));
  };
  return { answer, outputs: () => data.outputs() };
}

/** The data of the run that all pages are made of. */
class RunData {
  #source;
  #hub;
  #graph;
  #title;
  #answers = new Map();

  constructor({ source, hub, graph, title }) {
    this.#source = source;
    this.#hub = hub;
    this.#graph = graph;
    this.#title = title;
  }

  get runId() {
    return this.#source.runId;
  }

  /** @returns whether the path is one of the run's data; then the request is answered */
  async answer(request, response, path) {
    const [name, id = "", ...more] = path.split("/");
    if (more.length > 0) return false;
    if ((name === "files" || name === "preview") && ARTIFACT_ID.test(id)) {
      await this.#sendFile(request, response, id, name === "preview");
      return true;
    }
    if (id !== "") return false;
    switch (name) {
      case "config.json":
        sendJson(request, response, this.#config(request));
        return true;
      case "graph.json":
        sendJson(request, response, this.#graph ?? { title: this.#title, nodes: [], edges: [] });
        return true;
      case "run":
        sendKnown(request, response, await this.#once("run", () => this.#source.run()));
        return true;
      case "outputs":
        sendKnown(request, response, await this.#once("outputs", () => this.outputs()));
        return true;
      case "events":
        this.#hub.serve(request, response);
        return true;
      default:
        return false;
    }
  }

  #config({ headers }) {
    const { runId, pageUrl, endsWithRun } = this.#source;
    // The run at the gateway, as this machine sees it; another machine's browser would look at itself.
    const isSeen = isLoopbackHost(headers.host) && pageUrl != null;
    return {
      title: this.#title,
      run_id: runId,
      graph: this.#graph,
      run: "run",
      outputs: "outputs",
      events: "events",
      gateway_page: isSeen ? pageUrl : null,
      console: isSeen ? `${new URL(pageUrl).origin}/console/runs/${encodeURIComponent(runId)}` : null,
      answers: null,
      ends_with_run: endsWithRun,
      now: new Date().toISOString(),
    };
  }

  /** The list with addresses of this server. */
  async outputs() {
    const list = await this.#source.outputs();
    if (!Array.isArray(list?.items)) return null;
    const items = list.items.map((item) => ({
      ...item,
      url: `files/${encodeURIComponent(item.artifact_id)}`,
    }));
    return { items, next_page_token: list.next_page_token ?? null };
  }

  async #once(name, ask) {
    const kept = this.#answers.get(name);
    if (kept !== undefined && kept.untilMs > performance.now()) return kept.answer;
    const answer = ask();
    this.#answers.set(name, { answer, untilMs: performance.now() + ANSWER_KEPT_MS });
    return answer;
  }

  async #sendFile(request, response, id, isPreview) {
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const found = await this.#source.file(id, { headers: request.headers, signal: gone.signal });
    if (found === null) return sendText(response, 502, "The run's files cannot be reached now. Try again.");
    const { status, headers, body } = found;
    const type = headers["content-type"] ?? "application/octet-stream";
    if (![200, 206, 304, 416].includes(status) || (isPreview && !/^text\/html\b/.test(type))) {
      body?.destroy();
      return sendText(response, 404, "The run has no such file.");
    }
    const passed = ["content-length", "content-range", "accept-ranges", "etag", "content-disposition"]
      .filter((name) => headers[name] !== undefined && !(isPreview && name === "content-disposition"))
      .map((name) => [name, headers[name]]);
    response.writeHead(status, {
      ...common,
      ...Object.fromEntries(passed),
      ...(!isPreview &&
        headers["content-disposition"] === undefined && { "content-disposition": "attachment" }),
      "content-type": type,
      "content-security-policy": isPreview ? served.previewPolicy : downloadPolicy,
      "cross-origin-resource-policy": "same-origin",
    });
    if (request.method === "HEAD" || body === null) {
      body?.destroy();
      response.end();
      return;
    }
    // A client may leave in the middle, and a source that breaks off breaks off the download.
    await pipeline(body, response).catch(() => response.destroy());
  }
}

function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}

async function sendPage(request, response, { folder, source }, path) {
  const name = path === "" ? "page.html" : path;
  const found = PAGE_FILE.test(name) ? await fileInside(folder, name) : null;
  if (found === null) return sendText(response, 404, "This dashboard has no such page.");
  // At the end of the run the page asks whether its browser can reach the gateway.
  const gateway = source.pageUrl ? ` ${new URL(source.pageUrl).origin}` : "";
  const policy = served.pagePolicy.replace("connect-src 'self'", `connect-src 'self'${gateway}`);
  sendFile(request, response, found, {
    ...common,
    "content-type": contentTypeOf(name),
    "content-security-policy": policy,
  });
}

async function sendSite(request, response, { folder, page }, path) {
  const name = path === "" ? page : path.endsWith("/") ? `${path}index.html` : path;
  const found = await fileInside(folder, name);
  if (found === null) return sendText(response, 404, "This page has no such file.");
  const headers = { ...common, "content-type": contentTypeOf(name), "content-security-policy": sitePolicy };
  sendFile(request, response, found, headers);
}

function sendJson(request, response, value) {
  const body = JSON.stringify(value);
  response.writeHead(200, {
    ...common,
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

function sendKnown(request, response, value) {
  if (value === null) sendText(response, 503, "The run cannot be read now. Try again.");
  else sendJson(request, response, value);
}

function sendText(response, status, text) {
  response.writeHead(status, { ...common, "content-type": "text/plain; charset=utf-8" });
  response.end(`${text}\n`);
}

function refuse(response, { status, text }) {
  if (status === 401) response.setHeader("www-authenticate", "Bearer");
  sendText(response, status, text);
}

/** A page that continues by itself is asked for by this server, not by the site that the reader comes from. */
function redirect(response, { to, cookie, isForeign }) {
  const headers = { ...common, "set-cookie": cookie, "cache-control": "no-store" };
  // A path that begins with two slashes would lead to another host.
  const path = `/${to.replace(/^[/\\]+/, "")}`;
  if (!isForeign) {
    response.writeHead(303, { ...headers, location: path }).end();
    return;
  }
  response.writeHead(200, {
    ...headers,
    refresh: `0; url=${path}`,
    "content-type": "text/plain; charset=utf-8",
  });
  response.end("Opening the dashboard\n");
}
