// `troupe bundles …`: what is uploaded; and the folders that the runtime API has by path.

import { closeSync, openAsBlob, openSync, readSync, statSync } from "node:fs";
import type { Bundle, RuntimeBundle } from "../../sdk/src/index.ts";
import { isObject, type JsonObject } from "../engine/json.ts";
import { type Call, CommandFailed, printAnswer, UsageError } from "./command.ts";
import { configFor } from "./connection.ts";
import { zipFolder, zipManifest } from "./folder-zip.ts";
import { idOf } from "./ids.ts";
import { readJsonFile } from "./input.ts";
import { limitOf, printList } from "./lists.ts";
import { ago, fieldLines } from "./record-text.ts";
import type { ServerCall } from "./session.ts";
import { bytes, cleanText } from "./text.ts";

const FINGERPRINT_CHARS = 12;

export async function list(call: ServerCall): Promise<number> {
  if (call.flag("runtime")) return listRuntime(call);
  return printList<Bundle>(call, {
    limit: limitOf(call),
    items: (pageSize) => call.client.bundles.list({ page_size: pageSize }),
    head: ["BUNDLE", "UPLOADED", "SIZE", "GRAPH", "NAME"],
    row: (bundle) => [
      bundle.bundle_id,
      ago(bundle.created_at),
      bytes(bundle.size),
      bundle.graph_id,
      bundle.name,
    ],
    nothing: "No bundles. `troupe bundles upload <folder>` uploads one.",
  });
}

function listRuntime(call: ServerCall): Promise<number> {
  return printList<RuntimeBundle>(call, {
    async *items() {
      yield* await call.runtime.bundles();
    },
    head: ["BUNDLE", "GRAPH", "FINGERPRINT"],
    row: (bundle) => [bundle.bundle_id, bundle.graph_id, bundle.fingerprint.slice(0, FINGERPRINT_CHARS)],
    nothing: "No bundles. `troupe run --runtime <folder>` registers one.",
  });
}

/** `troupe reload`. */
export async function reload(call: ServerCall): Promise<number> {
  const answer = await call.runtime.reloadBundle(call.words[0] ?? "");
  return printAnswer(call, answer, () => cleanText(answer.message ?? answer));
}

export async function upload(call: ServerCall): Promise<number> {
  const bundle = await uploadTarget(call, readTarget(call));
  return printAnswer(call, bundle, () => cleanText(bundle.bundle_id));
}

export async function show(call: ServerCall): Promise<number> {
  const bundle = await call.client.bundles.get(idOf(call, "bundle"));
  return printAnswer(call, bundle, () => [
    cleanText(bundle.bundle_id),
    ...fieldLines([
      ["name", bundle.name],
      ["graph", bundle.graph_id],
      ["size", bytes(bundle.size)],
      ["fingerprint", bundle.fingerprint],
      ["uploaded", ago(bundle.created_at)],
    ]),
  ]);
}

export async function remove(call: ServerCall): Promise<number> {
  const id = idOf(call, "bundle");
  await call.client.bundles.delete(id);
  return printAnswer(call, { bundle_id: id, deleted: true }, () => `${id} deleted`);
}

/** What to run or upload: the folder of a bundle, a zip of one, or a manifest alone. */
export type Target =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "zip"; readonly path: string }
  | { readonly kind: "manifest"; readonly path: string; readonly manifest: JsonObject };

/**
 * The first word of a command, as what it names on disk.
 *
 * @throws UsageError when it names none of these
 */
export function readTarget(call: Call): Target {
  const [path = ""] = call.words;
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return { kind: "folder", path };
  if (found?.isFile()) {
    if (isZip(path)) return { kind: "zip", path };
    const manifest = readJsonFile(path);
    if (isObject(manifest)) return { kind: "manifest", path, manifest };
    throw new UsageError(`${path} is not a manifest: it does not hold a JSON object.`);
  }
  const text = found === undefined ? "does not exist" : "is neither a folder nor a file";
  throw new UsageError(`${path} ${text}; give the folder of a bundle, a zip of it, or a manifest.`);
}

function isZip(path: string): boolean {
  const file = openSync(path, "r");
  try {
    const start = Buffer.alloc(2);
    readSync(file, start, 0, start.length, 0);
    return start.toString() === "PK";
  } finally {
    closeSync(file);
  }
}

/** Uploads it, a folder as a zip that is made while it is sent, and prints the warnings of the answer. */
export async function uploadTarget(call: ServerCall, target: Target): Promise<Bundle> {
  const bundle = await uploaded(call, target);
  noteWarnings(call, bundle.warnings ?? []);
  return bundle;
}

/** Prints warnings beside a command's own answer. */
export function noteWarnings({ terminal }: Call, warnings: readonly { readonly message: string }[]): void {
  for (const { message } of warnings) terminal.note(`warning: ${cleanText(message)}`);
}

async function uploaded(call: ServerCall, { kind, path }: Target): Promise<Bundle> {
  const { bundles } = call.client;
  if (kind === "zip") return bundles.upload(await openAsBlob(path));
  const zip = kind === "folder" ? await zipFolder(path, configFor(call, "client")) : zipManifest(path);
  try {
    return await bundles.upload(zip.bytes);
  } catch (error) {
    const failure = zip.failure();
    throw failure === null ? error : new CommandFailed(failure.message);
  } finally {
    zip.bytes.destroy();
  }
}
