// What a resolved configuration says of a run itself: the user's folders it takes (`local_inputs`), and its web
// interface (`web_ui`). The package's own defaults are read with the same functions as what a user has changed.

import { posix } from "node:path";
import type { Graph } from "../engine/graph.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Fields } from "../engine/manifest/fields.ts";
import { quoted } from "../engine/manifest/problems.ts";
import {
  dottedPathProblem,
  extensionList,
  type Finding,
  nameList,
  plainPath,
  Reading,
  requiredDottedPath,
} from "./describe-reading.ts";
import { type LocalFolder, type PackageIdentity, type WebUi, webUiAdapters } from "./package-description.ts";
import { configSchema } from "./schema-config.ts";
import { warnOfUnknownFields } from "./unknown-fields.ts";

const FOLDERS_MAX = 100;
const NODES_NAMED_MAX = 5;

interface Findings {
  /** Their paths are JSON Pointers into the configuration. */
  readonly problems: readonly Finding[];
  readonly warnings: readonly Finding[];
}

export interface ReadFolders extends Findings {
  readonly folders: readonly LocalFolder[];
}

export interface ReadWebUi extends Findings {
  /** Null when there is none, it is not enabled, or it has a problem. */
  readonly webUi: WebUi | null;
}

/**
 * The folders of the user's that a run takes: `local_inputs.folders`.
 *
 * @param configuration as it is resolved; nothing but these declarations is read
 * @param graph what the nodes upload: a folder that none of them uploads is a problem; null: not known
 */
export function readLocalFolders(configuration: JsonObject, graph: Graph | null): ReadFolders {
  const reading = new Reading(configuration);
  const inputs = reading.fields.object("local_inputs");
  warnOfUnknownFields(reading, configSchema, { local_inputs: inputs.source });
  const uploads = graph === null ? null : uploadsOf(graph);
  const folders = inputs.objects("folders", FOLDERS_MAX, (folder) => {
    const configPath = requiredDottedPath(folder, "config_path");
    const payloadPath = plainPath(folder, "payload_path");
    const runtimePath = plainPath(folder, "runtime_path");
    const allowedExtensions = extensionList(folder, "allowed_extensions");
    // The config_path itself adds nothing, and harms nothing.
    const linkedConfigPaths = nameList(folder, "linked_config_paths", FOLDERS_MAX, dottedPathProblem).filter(
      (path) => path !== configPath,
    );
    if (payloadPath !== null && uploads !== null) checkUploaded(folder, payloadPath, uploads);
    if (configPath === null || payloadPath === null || runtimePath === null) return null;
    if (uploads !== null) warnOfElsewhere(reading, folder, { payloadPath, runtimePath, uploads });
    return { configPath, payloadPath, runtimePath, allowedExtensions, linkedConfigPaths };
  });
  checkApart(inputs, folders);
  checkSettings(inputs, folders);
  return { folders, problems: reading.problems, warnings: reading.warnings };
}

interface NodeUpload {
  readonly nodeId: string;
  /** "." for the whole payload. */
  readonly path: string;
  readonly as: string;
  /** Null when it is not a place in the workspace by its words. */
  readonly workdir: string | null;
}

function uploadsOf(graph: Graph): readonly NodeUpload[] {
  return graph.nodes.flatMap(({ nodeId, config }) => {
    if (config.kind !== "executor") return [];
    // An absolute one begins with one of the names that stand for the workspace.
    const { workdir, uploadPaths } = config;
    const seenFrom = workdir?.startsWith("/") ? null : (workdir ?? ".");
    return uploadPaths.map(({ path, as }) => {
      return { nodeId, path: withoutSlash(posix.normalize(path)), as, workdir: seenFrom };
    });
  });
}

const withoutSlash = (path: string) => (path.endsWith("/") ? path.slice(0, -1) : path);
const isWithin = (folder: string, path: string) =>
  folder === "." || path === folder || path.startsWith(`${folder}/`);

function checkUploaded(folder: Fields, payloadPath: string, uploads: readonly NodeUpload[]): void {
  if (uploads.some(({ path }) => isWithin(path, payloadPath))) return;
  const [first] = uploads;
  if (first === undefined) {
    const clause = `is ${quoted(payloadPath)}, and no node uploads anything: give the node that reads it an upload_path`;
    folder.report("payload_path", "not_uploaded", clause);
    return;
  }
  const named = uploads
    .slice(0, NODES_NAMED_MAX)
    .map(({ nodeId, path }) => `node ${quoted(nodeId)} has the upload_path ${quoted(path)}`);
  const more = uploads.length > named.length ? `, and ${uploads.length - named.length} more` : "";
  const example = posix.join(first.path, payloadPath);
  const clause = `is ${quoted(payloadPath)}, which no node uploads: ${named.join(", ")}${more}; ${quoted(example)} would be inside`;
  folder.report("payload_path", "not_uploaded", clause);
}

/** Says when no node that uploads the folder finds it at its runtime_path; its command may change to another folder. */
function warnOfElsewhere(
  reading: Reading,
  folder: Fields,
  { payloadPath, runtimePath, uploads }: ElsewhereCheck,
): void {
  const found = uploads
    .filter(({ path }) => isWithin(path, payloadPath))
    .map(({ nodeId, path, as, workdir }) => {
      const staged = posix.join("/", as, posix.relative(`/${path}`, `/${payloadPath}`));
      return {
        nodeId,
        place: workdir === null ? runtimePath : posix.relative(posix.join("/", workdir), staged),
      };
    });
  const [first] = found;
  if (first === undefined || found.some(({ place }) => place === runtimePath)) return;
  const clause = `is ${quoted(runtimePath)}, but seen from its workdir the node ${quoted(first.nodeId)} has the folder at`;
  reading.warn([...folder.place(), "runtime_path"], "elsewhere", `${clause} ${quoted(first.place)}`);
}

interface ElsewhereCheck {
  readonly payloadPath: string;
  readonly runtimePath: string;
  readonly uploads: readonly NodeUpload[];
}

/** Two folders that were copied into one another would be neither. */
function checkApart(inputs: Fields, folders: readonly LocalFolder[]): void {
  const before = new Set<string>();
  folders.forEach(({ configPath, payloadPath }, i) => {
    const other = folders.findIndex(
      (one, j) => j < i && (isWithin(one.payloadPath, payloadPath) || isWithin(payloadPath, one.payloadPath)),
    );
    if (other >= 0) {
      const clause = `overlaps that of ${quoted(folders[other]?.configPath ?? "")}: each folder needs its own`;
      inputs.report(["folders", i, "payload_path"], "overlaps", clause);
    }
    if (before.has(configPath)) {
      const clause = `is ${quoted(configPath)}, which another folder has already`;
      inputs.report(["folders", i, "config_path"], "duplicate", clause);
    }
    before.add(configPath);
  });
}

/** A setting that held another one, as an object holds its fields, would take it away with the first path written there. */
function checkSettings(inputs: Fields, folders: readonly LocalFolder[]): void {
  const settings = folders.flatMap(({ configPath, linkedConfigPaths }, i) => [
    { place: ["folders", i, "config_path"], path: configPath, isOwn: true },
    ...linkedConfigPaths.map((path, j) => ({
      place: ["folders", i, "linked_config_paths", j],
      path,
      isOwn: false,
    })),
  ]);
  const own = new Set<string>();
  const linked = new Set<string>();
  /** One of those below, by what holds it. */
  const below = new Map<string, string>();
  for (const { place, path, isOwn } of settings) {
    const holders = holdersOf(path);
    const isTaken = (one: string) => own.has(one) || linked.has(one);
    const isSame = (isOwn ? linked : own).has(path);
    const other = holders.find(isTaken) ?? below.get(path) ?? (isSame ? path : undefined);
    if (other !== undefined) {
      const clause = `is ${quoted(path)}, which cannot be set beside ${quoted(other)}: each folder needs settings of its own`;
      inputs.report(place, "overlaps", clause);
    }
    (isOwn ? own : linked).add(path);
    for (const holder of holders) below.set(holder, below.get(holder) ?? path);
  }
}

/** The paths of the objects that hold what a path leads to: "a" and "a.b" for "a.b.c". */
function holdersOf(path: string): readonly string[] {
  const dots = path.replace(/\\[.\\]/g, "__").matchAll(/\./g);
  return [...dots].map(({ index }) => path.slice(0, index));
}

/**
 * The web interface that a configuration asks for: `web_ui`.
 *
 * @param identity lends its name as the title
 */
export function readWebUi(configuration: JsonObject, identity: Pick<PackageIdentity, "name">): ReadWebUi {
  const reading = new Reading(configuration);
  const webUi = reading.fields.object("web_ui");
  const isThere = reading.fields.raw("web_ui") !== undefined;
  if (isThere && webUi.raw("enabled") === undefined) {
    const clause = "is missing, so there is no web interface: true turns it on";
    reading.warn(["web_ui", "enabled"], "missing", clause);
  }
  const enabled = webUi.boolean("enabled", false);
  // What is not enabled is not checked: it may be half-written, or of a later version.
  const judged = enabled ? webUi.source : { ...webUi.source, output: null };
  warnOfUnknownFields(reading, configSchema, { web_ui: judged });
  if (!enabled) return { webUi: null, problems: reading.problems, warnings: reading.warnings };
  const output = webUi.object("output");
  const adapter = output.choice("adapter", webUiAdapters, "dashboard");
  const title = output.text("title") || identity.name;
  const page = readPage(reading, output, adapter);
  const { problems, warnings } = reading;
  return { webUi: problems.length === 0 ? { adapter, title, page } : null, problems, warnings };
}

function readPage(reading: Reading, output: Fields, adapter: WebUi["adapter"]): string | null {
  if (adapter === "static_html") {
    return output.isGiven("page", "the path of a page inside payloads/") ? plainPath(output, "page") : null;
  }
  if (output.raw("page") !== undefined) {
    const clause = "is ignored: only the adapter static_html has a page of its own";
    reading.warn(["web_ui", "output", "page"], "ignored", clause);
  }
  return null;
}
