// GET /docs: the interactive documentation. Everything it needs comes from this server; a content security policy forbids
// anything else.
//
// - The page asks no other host for anything: not for fonts, not for a proxy, not for its telemetry.
// - Nothing is loaded before the first request; then a child process extracts the script from its package, and only its
//   compressed bytes are kept.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { FastifyInstance } from "fastify";
import { madeOnce } from "../../lib/async.ts";
import { wantsHtml } from "../core/auth.ts";
import { type Content, contentOf, sendContent, takesGzip } from "../core/content.ts";
import { CONSOLE_PATH } from "./console.ts";
import { OPEN_API_PATH } from "./openapi.ts";

const DOCS_PATH = "/docs";
const SCRIPT_PATH = "/docs/reference.js";
const UNPACKER = fileURLToPath(new URL("./docs-script.ts", import.meta.url));
const UNPACKED_BYTES_MAX = 32 * 1024 * 1024;
const UNPACK_TIMEOUT_MS = 60_000;

/** Scalar's settings; the switches turn off everything that contacts other hosts. */
const settings = {
  url: OPEN_API_PATH,
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  hideClientButton: true,
  persistAuth: false,
  documentDownloadType: "json",
};

export function docsRoutes(app: FastifyInstance): void {
  const script = madeOnce(takeOutScript);
  const schema = { hide: true };

  app.get(DOCS_PATH, { schema }, async (_request, reply) => {
    reply.headers(pageHeaders).type("text/html; charset=utf-8");
    return page;
  });

  app.get(`${DOCS_PATH}/`, { schema }, async (_request, reply) => reply.redirect(DOCS_PATH, 308));

  app.get(SCRIPT_PATH, { schema }, async (request, reply) => {
    const gzipped = await script();
    const vary = "Accept-Encoding";
    if (takesGzip(request.headers))
      return sendContent(request, reply, gzipped, { vary, "content-encoding": "gzip" });
    const body = await promisify(gunzip)(gzipped.body);
    return sendContent(request, reply, { ...gzipped, body }, { vary });
  });
}

/** GET /: browsers are redirected to the console, or without one to the documentation; programs get an index. */
export function frontPageRoute(app: FastifyInstance, version: string, hasConsole: boolean): void {
  const index = {
    name: "troupe",
    version,
    links: {
      ...(hasConsole && { console: CONSOLE_PATH }),
      docs: DOCS_PATH,
      openapi: OPEN_API_PATH,
      health: "/api/v1/health",
      jobs: "/api/v1/jobs",
      runs: "/api/v1/runs",
      blueprints: "/api/v1/blueprints",
      schemas: "/schemas/manifest.json",
    },
  };
  app.get("/", { schema: { hide: true } }, async (request, reply) => {
    reply.header("vary", "Accept");
    return wantsHtml(request.headers) ? reply.redirect(hasConsole ? CONSOLE_PATH : DOCS_PATH, 302) : index;
  });
}

/** The package is large: loaded here, it would block the event loop and stay in memory. */
async function takeOutScript(): Promise<Content> {
  const { stdout: gzipped } = await promisify(execFile)(process.execPath, [UNPACKER], {
    encoding: "buffer",
    env: {},
    maxBuffer: UNPACKED_BYTES_MAX,
    timeout: UNPACK_TIMEOUT_MS,
  });
  return contentOf("text/javascript; charset=utf-8", gzipped);
}

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  // The script inserts its styles; styles cannot contact other hosts.
  "style-src 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

const pageHeaders = {
  "content-security-policy": policy.join("; "),
  "cache-control": "no-cache",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

const configuration = JSON.stringify(settings).replaceAll("&", "&amp;").replaceAll('"', "&quot;");

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Troupe gateway API</title>
</head>
<body>
<noscript>This page needs JavaScript. The same, for programs: <a href="${OPEN_API_PATH}">${OPEN_API_PATH}</a></noscript>
<script id="api-reference" type="application/json" data-configuration="${configuration}"></script>
<script src="${SCRIPT_PATH}"></script>
</body>
</html>
`;
