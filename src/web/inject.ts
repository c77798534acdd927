// The dashboard of a run as a part of its graph: one more node, its port, its service and that service's check
// (spec "packaging" 9 and 11).
//
// - The manifest is otherwise as it was: the same nodes in the same order, the same edges, the same result.
// - Nothing of the run depends on the dashboard. It is a companion, which holds no job open; it is optional, so that a
//   run whose dashboard cannot live continues as if it had none; it takes its slot from a pool of its own, so that no
//   worker waits for it; and one that dies is started again.
// - The address that it binds, the one that is checked and the one that browsers are given are three things. They are
//   those of the node that the run is on, which may have taken it over (dashboards-here.ts).

import { posix } from "node:path";
import type { WebUi } from "../blueprints/package-description.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { WEB_UI_PORT } from "./ports.ts";

/** The dashboard's node, and the folder of the payload that it runs in. */
export const WEB_UI_NODE = "blueprint_web_ui";
/** The service under which a run's dashboard is found. */
export const WEB_UI_SERVICE = "blueprint-web-ui";
/** The dashboards' slots. No pool of SVC_EXECUTOR_POOL_CAPACITIES can have a name with an @. */
export const WEB_UI_POOL = "@web-ui";

/** Where the author's own page is, seen from the server's folder (adapter static_html). */
const SITE = "site";
const ATTEMPTS_MAX = 1_000;
const RESTART_MS = 1_000;

/** Where a node's dashboards are bound and reached. */
export interface WebUiPlace {
  readonly host: string;
  /** With `{port}` for the port. */
  readonly publicUrl: string;
}

/** The run that gets a dashboard. */
export interface WebUiRun {
  readonly webUi: WebUi;
  readonly port: number;
  readonly runId: string;
  /** The job's public id. */
  readonly jobId: string;
  /** Null for a job of an uploaded bundle. */
  readonly blueprintId: string | null;
}

/** The package leaves no room for a dashboard; the message says what to change in it. */
export class NoRoomForWebUi extends Error {
  override readonly name = "NoRoomForWebUi";
}

/**
 * Adds the dashboard's node to a manifest that was found valid; writeWebUi puts its files into the payload.
 *
 * @returns a new manifest; the given one is not changed
 * @throws NoRoomForWebUi when a node has the dashboard's id, or the page lies in no folder of its own
 */
export function injectWebUi(manifest: JsonObject, run: WebUiRun, place: WebUiPlace): JsonObject {
  const nodes = Array.isArray(manifest.nodes) ? manifest.nodes : [];
  if (nodes.some((node) => isObject(node) && node.node_id === WEB_UI_NODE)) {
    throw new NoRoomForWebUi(
      `The manifest has a node "${WEB_UI_NODE}", which is the id of the dashboard that web_ui asks for. ` +
        "Rename the node, or set web_ui.enabled to false.",
    );
  }
  return { ...manifest, nodes: [...nodes, webUiNode(run, place)] };
}

function webUiNode(run: WebUiRun, place: WebUiPlace): JsonObject {
  const { webUi, port } = run;
  const publicUrl = publicUrlOf(place, port);
  const site = webUi.adapter === "static_html" ? siteOf(webUi.page) : null;
  return {
    node_id: WEB_UI_NODE,
    agent_type: "executor",
    role: "Dashboard",
    config: {
      command: ["{node}", "server.mjs"],
      lifecycle: "long_lived",
      optional: true,
      run_events: true,
      output_message_type: null,
      pool: WEB_UI_POOL,
      max_attempts: ATTEMPTS_MAX,
      retry_backoff_ms: RESTART_MS,
      upload_path: WEB_UI_NODE,
      workdir: WEB_UI_NODE,
      ...(site !== null && { upload_paths: [{ path: site.folder, as: `${WEB_UI_NODE}/${SITE}` }] }),
      environment: {
        SVC_WEB_UI_PORT: String(port),
        ...placeVariables(place, port),
        SVC_WEB_UI_TITLE: webUi.title,
        SVC_WEB_UI_ADAPTER: webUi.adapter,
        ...(site !== null && { SVC_WEB_UI_PAGE: `${SITE}/${site.page}` }),
      },
    },
    // Given out by ports.ts, which knows those of all runs.
    resources: { ports: [{ label: WEB_UI_PORT, port, reserve: false }] },
    services: [webUiService(run, place.host, publicUrl)],
  };
}

/**
 * The folder that holds the author's page and is served with it. Never the payload as a whole: it has the workers' code
 * and the user's own files in it.
 */
function siteOf(page: string | null): { readonly folder: string; readonly page: string } {
  const path = posix.normalize(page ?? "");
  const folder = posix.dirname(path);
  if (folder === ".") {
    throw new NoRoomForWebUi(
      `web_ui.output.page is "${page ?? ""}": the page and what belongs to it must lie in a folder of payloads/ that holds ` +
        'nothing else, because all of it is served to browsers. An example: "site/index.html".',
    );
  }
  return { folder, page: posix.basename(path) };
}

function webUiService(run: WebUiRun, address: string, publicUrl: string): JsonObject {
  const { blueprintId, runId, jobId, webUi } = run;
  const whose = blueprintId === null ? ["bundle"] : ["blueprint", blueprintId];
  return {
    name: WEB_UI_SERVICE,
    id: runId,
    port_label: WEB_UI_PORT,
    address,
    public_url: publicUrl,
    tags: [...whose, "web-ui"],
    meta: {
      blueprint_id: blueprintId,
      run_id: runId,
      job_id: jobId,
      public_url: publicUrl,
      title: webUi.title,
    },
    checks: [
      {
        type: "http",
        path: "/healthz",
        expected_status: 200,
        // Another program that answers at this port is not this run's dashboard.
        contains: runId,
        interval_ms: 1_000,
        timeout_ms: 2_000,
        failures_before_critical: 2,
      },
    ],
  };
}

export const publicUrlOf = ({ publicUrl }: WebUiPlace, port: number) =>
  publicUrl.replaceAll("{port}", String(port));

/** What the dashboard's server is told of where it is. */
export function placeVariables(place: WebUiPlace, port: number): Readonly<Record<string, string>> {
  return { SVC_WEB_UI_HOST: place.host, SVC_WEB_UI_PUBLIC_URL: publicUrlOf(place, port) };
}

/** The picture of a graph that the page draws. */
export function graphPicture(manifest: JsonObject) {
  return {
    nodes: objectsIn(manifest.nodes).map(pictureOfNode),
    edges: objectsIn(manifest.edges).map(pictureOfEdge),
  };
}

export const pictureOfNode = ({ node_id = null, agent_type = null, role = null }: JsonObject) => ({
  node_id,
  agent_type,
  role,
});

export const pictureOfEdge = ({ from_node = null, to_node = null, message_type = null }: JsonObject) => ({
  from_node,
  to_node,
  message_type,
});

export function objectsIn(list: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}
