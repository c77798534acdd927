// Uploads that are made while they are sent: a zip of any size in the memory of one block, and clients that stop in the
// middle of it.

import { type ClientRequest, request } from "node:http";
import { crc32 } from "node:zlib";
import type { JsonObject } from "../../src/engine/json.ts";
import type { Program } from "./program.ts";

const BLOCK = Buffer.alloc(1024 * 1024, "0123456789abcdef\n");
const BOUNDARY = "----upload";
const DOS_DATE = 0x21;

interface Entry {
  readonly name: string;
  /** Its content is this, so many times. */
  readonly block: Buffer;
  readonly times: number;
}

/** A form with a zip of stored entries: a manifest, and `sizeBytes` of payload in files of 100 MiB. */
export function* bigForm(manifest: JsonObject, sizeBytes: number): Generator<Buffer, undefined> {
  const entries: Entry[] = [
    { name: "manifest.json", block: Buffer.from(JSON.stringify(manifest)), times: 1 },
  ];
  for (let left = Math.ceil(sizeBytes / BLOCK.length); left > 0; left -= 100) {
    entries.push({ name: `payloads/${entries.length}.bin`, block: BLOCK, times: Math.min(100, left) });
  }
  yield Buffer.from(
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="bundle"; filename="big.zip"\r\n\r\n`,
  );
  yield* storedZip(entries);
  yield Buffer.from(`\r\n--${BOUNDARY}--\r\n`);
}

function* storedZip(entries: readonly Entry[]): Generator<Buffer, undefined> {
  const directory: Buffer[] = [];
  let offset = 0;
  for (const entry of entries) {
    const name = Buffer.from(entry.name);
    const shared = entryFields(entry, name.length);
    const local = Buffer.concat([signature(0x04034b50), shared, name]);
    const central = Buffer.alloc(14);
    central.writeUInt32LE(offset, 10);
    directory.push(signature(0x02014b50), Buffer.from([20, 0]), shared, central, name);
    yield local;
    for (let i = 0; i < entry.times; i++) yield entry.block;
    offset += local.length + entry.block.length * entry.times;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(listed.length, 12);
  end.writeUInt32LE(offset, 16);
  yield listed;
  yield end;
}

/** What an entry's local header and its line in the directory have in common. */
function entryFields({ block, times }: Entry, nameBytes: number): Buffer {
  let crc = 0;
  for (let i = 0; i < times; i++) crc = crc32(block, crc);
  const fields = Buffer.alloc(26);
  fields.writeUInt16LE(20, 0);
  fields.writeUInt16LE(DOS_DATE, 8);
  fields.writeUInt32LE(crc, 10);
  fields.writeUInt32LE(block.length * times, 14);
  fields.writeUInt32LE(block.length * times, 18);
  fields.writeUInt16LE(nameBytes, 22);
  return fields;
}

function signature(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

export interface UploadAnswer {
  /** 0: the connection was closed without an answer. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** Opens an upload; its body is the caller's to send. */
export function openUpload(program: Program): {
  readonly request: ClientRequest;
  readonly answer: Promise<UploadAnswer>;
} {
  const headers = { "content-type": `multipart/form-data; boundary=${BOUNDARY}` };
  const sent = request(`${program.api}/bundles`, { method: "POST", headers, agent: false });
  const { promise: answer, resolve } = Promise.withResolvers<UploadAnswer>();
  sent.on("response", (response) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    const done = () =>
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        text: Buffer.concat(chunks).toString("utf8"),
      });
    response.on("end", done).on("error", done);
  });
  sent.on("error", () => {});
  // After an answer this comes too late to matter.
  sent.on("close", () => resolve({ status: 0, headers: {}, text: "" }));
  return { request: sent, answer };
}

/** Sends a body as fast as it is taken. Resolves when it is sent, or when nobody takes it any more. */
export async function sendAll(sent: ClientRequest, body: Iterable<Buffer>): Promise<void> {
  const closed = new Promise<void>((resolve) => sent.once("close", () => resolve()));
  for (const block of body) {
    if (sent.destroyed) return;
    if (sent.write(block)) continue;
    await Promise.race([new Promise<void>((resolve) => sent.once("drain", () => resolve())), closed]);
  }
  sent.end();
}
