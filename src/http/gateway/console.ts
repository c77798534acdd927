// GET /console and the paths below it: the console, a page in a browser (src/web/console). Its files lie at
// /console/assets/{console,dashboard,vendor}/…, as they do in src/web, so that their imports hold; every other path is a
// view of the one page.
//
// - Nothing is read before the first request; then files are compressed once and kept.
// - A content security policy allows the console's own files only, and text of others only as text.

import { readdir, readFile } from "node:fs/promises";
import { extname } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { madeOnce } from "../../lib/async.ts";
import served from "../../web/dashboard/served.json" with { type: "json" };
import { type Content, contentOf, sendContent, takesGzip } from "../core/content.ts";
import { Problem, shown } from "../core/problem.ts";

export const CONSOLE_PATH = "/console";
const ASSETS_PATH = `${CONSOLE_PATH}/assets/`;
const WEB = new URL("../../web/", import.meta.url);
const PAGE = "console/index.html";
const START = "console/main.js";
const FOLDERS = ["console", "dashboard", "vendor"];
/** What browsers are given; tests, types and settings lie beside it. */
const SHIPPED = /^(?:[a-z-]+\/)*[a-z-]+\.(?:js|css|svg|html)$|^dashboard\/run-stream\.mjs$/;
/** What is part of a page and never one by itself, or a worker: the page's policy holds for it, and a third of its bytes would be headers. */
const PART = /(?<!-worker)\.m?js$|\.css$/;
const STATIC_IMPORT = /^(?:import|export)\b[^"'();]*"(\.[^"]+)"/gm;
const contentTypes: Readonly<Record<string, string>> = served.contentTypes;

interface Asset {
  readonly plain: Content;
  readonly compressed: Content;
}

type Assets = ReadonlyMap<string, Asset>;

export function consoleRoutes(app: FastifyInstance): void {
  const assets = madeOnce(readAssets);
  const hidden = { schema: { hide: true } };

  const send = async (request: FastifyRequest, reply: FastifyReply, name: string) => {
    const asset = (await assets()).get(name);
    if (asset === undefined) throw new Problem("not_found", `The console has no file ${shown(name)}.`);
    const headers = PART.test(name) ? partHeaders : pageHeaders;
    return takesGzip(request.headers)
      ? sendContent(request, reply, asset.compressed, { ...headers, "content-encoding": "gzip" })
      : sendContent(request, reply, asset.plain, headers);
  };

  for (const path of [CONSOLE_PATH, `${CONSOLE_PATH}/*`]) {
    app.get(path, hidden, (request, reply) => send(request, reply, PAGE));
  }
  app.get<{ Params: { "*": string } }>(`${ASSETS_PATH}*`, hidden, (request, reply) =>
    send(request, reply, request.params["*"]),
  );
}

async function readAssets(): Promise<Assets> {
  const listed = await Promise.all(
    FOLDERS.map(async (folder) =>
      (await readdir(new URL(`${folder}/`, WEB), { recursive: true })).map((name) => `${folder}/${name}`),
    ),
  );
  const names = listed.flat().filter((name) => SHIPPED.test(name));
  const texts = new Map<string, string>();
  for (const name of names) texts.set(name, await readFile(new URL(name, WEB), "utf8"));
  texts.set(PAGE, withPreloads(texts));
  const assets = [...texts].map(async ([name, text]) => [name, await assetOf(name, text)] as const);
  return new Map(await Promise.all(assets));
}

async function assetOf(name: string, text: string): Promise<Asset> {
  const type = contentTypes[extname(name)] ?? "application/octet-stream";
  const compressed = await promisify(gzip)(text, { level: 9 });
  return { plain: contentOf(type, text), compressed: contentOf(type, compressed) };
}

/** The page asks for all scripts of the first view at once, instead of one after the other as they import each other. */
function withPreloads(texts: ReadonlyMap<string, string>): string {
  const found = new Set([START]);
  for (const name of found) {
    for (const [, path = ""] of (texts.get(name) ?? "").matchAll(STATIC_IMPORT)) {
      found.add(new URL(path, new URL(name, WEB)).href.slice(WEB.href.length));
    }
  }
  const links = [...found].map((name) => `<link rel="modulepreload" href="${ASSETS_PATH}${name}">`);
  return (texts.get(PAGE) ?? "").replace("<!-- preloads -->", links.join("\n"));
}

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types console",
];

const partHeaders = { vary: "Accept-Encoding" };
const pageHeaders = {
  "content-security-policy": policy.join("; "),
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  ...partHeaders,
};
