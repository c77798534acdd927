// Bundles for tests: a few files, as a folder on disk or as a zip.

import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { ZipFile } from "yazl";
import type { JsonObject } from "../../src/engine/json.ts";
import type { Program } from "./program.ts";
import type { Answer } from "./runtime-api.ts";

/** File names inside the bundle, and what is in them; objects become JSON. */
export type Files = Readonly<Record<string, string | JsonObject>>;

/** Writes a bundle's folder anew. @returns its path */
export async function writeFolder(folder: string, files: Files): Promise<string> {
  await rm(folder, { recursive: true, force: true });
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text(content));
  }
  return folder;
}

/** @param top a folder inside the zip that holds everything; "" for none */
export async function zipOf(files: Files, top = ""): Promise<Uint8Array<ArrayBuffer>> {
  const zip = new ZipFile();
  for (const [name, content] of Object.entries(files)) {
    // One date, so that equal files make equal bytes.
    zip.addBuffer(Buffer.from(text(content)), join(top, name), { mtime: new Date(0) });
  }
  zip.end();
  return new Uint8Array(await buffer(zip.outputStream));
}

/** POSTs a zip to /bundles, in the form field `field`. */
export async function upload(
  program: Program,
  zip: Uint8Array<ArrayBuffer>,
  field = "bundle",
): Promise<Answer> {
  const form = new FormData();
  form.set(field, new Blob([zip], { type: "application/zip" }), "bundle.zip");
  const answer = await fetch(`${program.api}/bundles`, { method: "POST", body: form });
  return { status: answer.status, body: (await answer.json()) as JsonObject };
}

function text(content: string | JsonObject): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}
