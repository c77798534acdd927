// The bytes of artifacts, as streams.

import { type FileHandle, open } from "node:fs/promises";
import { pipeline, Readable, Transform } from "node:stream";
import { recordsSize, type TimelineJson, withCommas } from "./timeline-json.ts";

/** Opens some bytes; both ends are included. */
export type OpenBytes = (first: number, last: number) => Promise<Readable>;

export interface StoredBytes {
  readonly path: string;
  readonly size: number;
  /** Whether the file may have more bytes, which are none of these. */
  readonly mayGrow?: boolean;
}

/** A file, or its first bytes. Opening throws the system's error when it cannot be opened. */
export function fileBytes(stored: StoredBytes): OpenBytes {
  return async (first, last) => (await openWhole(stored)).createReadStream({ start: first, end: last });
}

async function openWhole({ path, size, mayGrow = false }: StoredBytes): Promise<FileHandle> {
  const file = await open(path, "r");
  const found = await file.stat();
  if (mayGrow ? found.size >= size : found.size === size) return file;
  await file.close();
  throw new Error(`The stored file ${path} has ${found.size} bytes instead of ${size}: it is damaged.`);
}

/** A document in memory. */
export function memoryBytes(chunks: readonly Buffer[]): OpenBytes {
  return async (first, last) => Readable.from(part(chunks, first, last), { objectMode: false });
}

function* part(chunks: readonly Buffer[], first: number, last: number): Generator<Buffer> {
  let at = 0;
  for (const chunk of chunks) {
    const from = Math.max(0, first - at);
    const to = Math.min(chunk.length, last + 1 - at);
    if (from < to) yield chunk.subarray(from, to);
    at += chunk.length;
  }
}

/** timeline.json, made of the bytes of timeline.jsonl. */
export function timelineBytes(timeline: TimelineJson, lines: StoredBytes): OpenBytes {
  const head = Buffer.from(timeline.head);
  const tail = Buffer.from(timeline.tail);
  const records = recordsSize(lines.size);
  return async (first, last) => {
    const before = [...part([head], first, last)];
    const behind = [...part([tail], first - head.length - records, last - head.length - records)];
    const from = Math.max(0, first - head.length);
    const to = Math.min(records, last + 1 - head.length);
    if (from >= to) return Readable.from([...before, ...behind], { objectMode: false });
    const file = await openWhole(lines);
    const document = new Transform({
      transform: (chunk: Buffer, _encoding, done) => done(null, withCommas(chunk)),
      flush(done) {
        for (const bytes of behind) this.push(bytes);
        done();
      },
    });
    for (const bytes of before) document.push(bytes);
    // Closes the file when the reader leaves, and ends the document when the file cannot be read.
    pipeline(file.createReadStream({ start: from, end: to - 1 }), document, () => {});
    return document;
  };
}
