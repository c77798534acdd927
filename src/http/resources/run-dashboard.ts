// GET /runs/{run_id}/dashboard: the page of a run's dashboard (src/web/dashboard), for any run, also after its end. It
// reads the run's record, outputs and events through this API.
//
// - A content security policy allows the page's own files only.
// - A worker's page is shown without scripts and sandboxed, and only if its type is text/html.

import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Bundles } from "../../bundles/bundles.ts";
import { BundleProblem } from "../../bundles/problem.ts";
import { isoTime } from "../../engine/event.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { GatewayRecords, RunRecord } from "../../launch/records.ts";
import { madeOnce } from "../../lib/async.ts";
import type { RunStore } from "../../runs/store/run-store.ts";
import served from "../../web/dashboard/served.json" with { type: "json" };
import { objectsIn, pictureOfEdge, pictureOfNode } from "../../web/inject.ts";
import { webUiFiles } from "../../web/write-web-ui.ts";
import { type Content, contentOf, sendContent } from "../core/content.ts";
import { Problem, shown } from "../core/problem.ts";
import { addRoutes, get } from "../core/route.ts";
import { sessionShown } from "../core/session-door.ts";
import { inPieces, listText } from "../core/text-stream.ts";
import { Type } from "../core/type.ts";
import { artifactNotFound } from "./artifacts.ts";
import { findRun } from "./find-run.ts";
import { sendPieces } from "./lists.ts";

export interface Parts {
  readonly records: Pick<GatewayRecords, "run" | "job">;
  readonly bundles: Bundles;
  readonly runStore: RunStore;
  readonly nowMs: () => number;
}

const FOLDER = new URL("../../web/dashboard/", import.meta.url);
const PAGE = "page.html";
/** How much of a graph the page gets; its drawing groups agents long before. */
const NODES_SHOWN_MAX = 5_000;
const EDGES_SHOWN_MAX = 10_000;
const contentTypes: Readonly<Record<string, string>> = served.contentTypes;

type RunParams = { Params: { run_id: string } };
type FileParams = { Params: { run_id: string; file: string } };
type PreviewParams = { Params: { run_id: string; artifact_id: string } };

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const pageParts = madeOnce(readParts);
  const send = async (request: FastifyRequest, reply: FastifyReply, name: string) => {
    const part = (await pageParts()).get(name);
    if (part === undefined) throw new Problem("not_found", `The dashboard has no file ${shown(name)}.`);
    return sendContent(request, reply, part, pageHeaders);
  };

  addRoutes(api, "runs", [
    get("/runs/:run_id/dashboard", {
      operationId: "getRunDashboard",
      summary: "Look at a run",
      description:
        "A page for people: the run's status, its graph, events, outputs, and what went wrong, live while it goes on.",
      answers: {
        200: {
          description: "The page; its scripts and styles lie below its own path.",
          content: { "text/html": { schema: Type.String() } },
        },
        304: Type.Null("The client has it already."),
      },
      handle: async (request, reply) => {
        const { runId } = await findRun(parts, request.params.run_id);
        // Who has signed in to the console sees the run there.
        if (sessionShown(request.raw) !== null && !request.principal.startsWith("run:")) {
          return reply.redirect(`/console/runs/${runId}`, 303);
        }
        return send(request, reply, PAGE);
      },
    }),
  ]);

  const hidden = { schema: { hide: true } };
  api.get<RunParams>("/runs/:run_id/dashboard/", hidden, (request, reply) =>
    reply.redirect(`/api/v1/runs/${encodeURIComponent(request.params.run_id)}/dashboard`, 308),
  );
  api.get<RunParams>("/runs/:run_id/dashboard/config.json", hidden, async (request, reply) => {
    const run = await findRun(parts, request.params.run_id);
    return sendPieces(
      reply.header("cache-control", "no-store"),
      await inPieces(await pageConfig(parts, run)),
    );
  });
  api.get<FileParams>("/runs/:run_id/dashboard/:file", hidden, (request, reply) =>
    send(request, reply, request.params.file),
  );
  // Without HEAD: the framework's answer to that would read the whole file for its length.
  api.get<PreviewParams>(
    "/runs/:run_id/dashboard/preview/:artifact_id",
    { ...hidden, exposeHeadRoute: false },
    (request, reply) => sendPreview(parts, request, reply),
  );
}

// ----------------------------------------------------------------------------------------------- the page

const pageHeaders = {
  "content-security-policy": served.pagePolicy,
  "referrer-policy": "no-referrer",
};

async function readParts(): Promise<ReadonlyMap<string, Content>> {
  const pageFiles = new RegExp(served.pageFiles);
  const names = (await webUiFiles()).filter((name) => pageFiles.test(name));
  const parts = names.map(async (name): Promise<[string, Content]> => {
    const bytes = await readFile(new URL(name, FOLDER));
    // The page's own path has no slash at its end: what lies beside it lies below it.
    const content =
      name === PAGE ? Buffer.from(bytes.toString("utf8").replaceAll('="./', '="dashboard/')) : bytes;
    const contentType = contentTypes[extname(name)] ?? "application/octet-stream";
    return [name, contentOf(contentType, content)];
  });
  return new Map(await Promise.all(parts));
}

/** What the page shows, and where it reads it; relative to this document. As JSON, a few nodes at a time. */
async function pageConfig(parts: Parts, run: RunRecord): Promise<Iterable<string>> {
  const job = await parts.records.job(run.jobId);
  const fingerprint = job?.bundleFingerprint ?? null;
  const manifest = fingerprint === null ? null : await manifestOf(parts, fingerprint);
  const config = {
    title: job?.name ?? run.runId,
    run_id: run.runId,
    run: `../../${encodeURIComponent(run.runId)}`,
    outputs: "../outputs?page_size=200",
    events: "../events/stream",
    gateway_page: null,
    console: `/console/runs/${run.runId}`,
    answers: "../human/",
    ends_with_run: false,
    now: isoTime(parts.nowMs()),
  };
  return configText(config, manifest);
}

function* configText(config: object, manifest: JsonObject | null): Generator<string> {
  yield `${JSON.stringify(config).slice(0, -1)},"graph":`;
  if (manifest === null) yield "null";
  else yield* graphText(manifest);
  yield "}";
}

/** Null when the content was deleted: then the page draws the agents that occur in events. */
async function manifestOf({ bundles }: Parts, fingerprint: string): Promise<JsonObject | null> {
  try {
    return (await bundles.definition(fingerprint)).manifest;
  } catch (error) {
    if (error instanceof BundleProblem) return null;
    throw error;
  }
}

function* graphText({ nodes, edges }: JsonObject): Generator<string> {
  yield '{"nodes":';
  yield* listText(objectsIn(nodes).slice(0, NODES_SHOWN_MAX), (some) =>
    JSON.stringify(some.map(pictureOfNode)),
  );
  yield ',"edges":';
  yield* listText(objectsIn(edges).slice(0, EDGES_SHOWN_MAX), (some) =>
    JSON.stringify(some.map(pictureOfEdge)),
  );
  yield "}";
}

// ----------------------------------------------------------------------------------------------- previews

async function sendPreview(
  parts: Parts,
  request: FastifyRequest<PreviewParams>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { run_id: runId, artifact_id: artifactId } = request.params;
  await findRun(parts, runId);
  const artifact = await parts.runStore.find(runId, artifactId);
  if (artifact === null || !/^text\/html\b/.test(artifact.contentType)) {
    throw artifactNotFound(runId, artifactId);
  }
  const bytes = artifact.size === 0 ? "" : await artifact.open(0, artifact.size - 1);
  return reply
    .headers({
      "cache-control": "private, no-cache",
      "content-length": artifact.size,
      "content-security-policy": served.previewPolicy,
      "cross-origin-resource-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    })
    .type(artifact.contentType)
    .send(bytes);
}
