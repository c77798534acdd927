// `troupe bundles …`: what is uploaded.

import { openAsBlob, statSync } from "node:fs";
import type { Bundle } from "../../sdk/src/index.ts";
import { type Call, CommandFailed, exitCodes, UsageError } from "./command.ts";
import { configFor } from "./connection.ts";
import { zipFolder } from "./folder-zip.ts";
import { idOf } from "./ids.ts";
import { printList } from "./lists.ts";
import { ago, fieldLines } from "./record-text.ts";
import { runtimeBundles } from "./runtime-bundles.ts";
import { limitOf } from "./runtime-jobs.ts";
import { type Session, withGateway } from "./session.ts";
import { bytes, cleanText } from "./text.ts";
import { noteWarnings } from "./validate.ts";

export async function list(call: Call): Promise<number> {
  if (call.flag("runtime")) return runtimeBundles(call);
  const limit = limitOf(call);
  return withGateway(call, ({ client }) =>
    printList<Bundle>(
      call,
      {
        items: (pageSize) => client.bundles.list({ page_size: pageSize }),
        head: ["BUNDLE", "UPLOADED", "SIZE", "GRAPH", "NAME"],
        row: (bundle) => [
          cleanText(bundle.bundle_id),
          ago(bundle.created_at),
          bytes(bundle.size),
          cleanText(bundle.graph_id),
          cleanText(bundle.name),
        ],
        nothing: "No bundles. `troupe bundles upload <folder>` uploads one.",
      },
      limit,
    ),
  );
}

export async function upload(call: Call): Promise<number> {
  const target = readTarget(call);
  return withGateway(call, async (session) => {
    const bundle = await uploadTarget(session, target);
    call.terminal.print(call.flag("json") ? JSON.stringify(bundle) : cleanText(bundle.bundle_id));
    return exitCodes.success;
  });
}

export async function show(call: Call): Promise<number> {
  const id = idOf(call, "bundle");
  return withGateway(call, async ({ client }) => {
    const bundle = await client.bundles.get(id);
    if (call.flag("json")) call.terminal.print(JSON.stringify(bundle));
    else for (const line of bundleLines(bundle)) call.terminal.print(line);
    return exitCodes.success;
  });
}

export async function remove(call: Call): Promise<number> {
  const id = idOf(call, "bundle");
  return withGateway(call, async ({ client }) => {
    await client.bundles.delete(id);
    call.terminal.print(
      call.flag("json") ? JSON.stringify({ bundle_id: id, deleted: true }) : `${id} deleted`,
    );
    return exitCodes.success;
  });
}

function bundleLines(bundle: Bundle): readonly string[] {
  return [
    cleanText(bundle.bundle_id),
    ...fieldLines([
      ["name", bundle.name],
      ["graph", bundle.graph_id],
      ["size", bytes(bundle.size)],
      ["fingerprint", bundle.fingerprint],
      ["uploaded", ago(bundle.created_at)],
    ]),
  ];
}

/** What is to be uploaded: the folder of a bundle, or a zip of one. */
export interface Target {
  readonly kind: "folder" | "zip";
  readonly path: string;
}

/**
 * The first word of a command, as what it names on disk.
 *
 * @throws UsageError when it names nothing
 */
export function readTarget(call: Call): Target {
  const [path = ""] = call.words;
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return { kind: "folder", path };
  if (found?.isFile()) return { kind: "zip", path };
  const said = found === undefined ? "does not exist" : "is neither a folder nor a file";
  throw new UsageError(`${path} ${said}; give the folder of a bundle, or a zip of it.`);
}

/** Sends it, a folder as a zip that is made on the way, and tells the warnings of the answer. */
export async function uploadTarget(session: Session, target: Target): Promise<Bundle> {
  const bundle = await uploaded(session, target);
  noteWarnings(session.call, bundle.warnings ?? []);
  return bundle;
}

async function uploaded({ call, client }: Session, { kind, path }: Target): Promise<Bundle> {
  if (kind === "zip") return client.bundles.upload(await openAsBlob(path));
  const zip = await zipFolder(path, configFor(call, "client"));
  try {
    return await client.bundles.upload(zip.bytes);
  } catch (error) {
    const failure = zip.failure();
    throw failure === null ? error : new CommandFailed(failure.message);
  } finally {
    zip.bytes.destroy();
  }
}
