// The stream of bytes from one node to another.
//
// - It begins with a message that says that they are there, and ends with the hash of all: without that end, or with
//   another hash, they are not the whole, and the receiver gets an error.
// - A chunk is bounded, and the next one is read when the receiver takes it.

import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type FoundBytes, WrongBytes } from "../bytes.ts";
import { type FetchBytesResponse, FetchBytesResponseSchema } from "./gen/svc/node/v1/node_pb.ts";

const CHUNK_BYTES_MAX = 256 * 1024;

/** @param left aborted when nobody takes anything more: a message that waits to be taken then waits for ever */
export async function* bytesToWire(
  { madeAtMs, bytes }: FoundBytes,
  left: AbortSignal,
): AsyncGenerator<FetchBytesResponse> {
  const source = bytes[Symbol.asyncIterator]();
  const end = () => void source.return?.().catch(() => {});
  left.addEventListener("abort", end, { once: true });
  if (left.aborted) end();
  yield create(FetchBytesResponseSchema, { part: { case: "begin", value: { madeAtMs } } });
  const digest = createHash("sha256");
  for await (const read of { [Symbol.asyncIterator]: () => source }) {
    for (let at = 0; at < read.length; at += CHUNK_BYTES_MAX) {
      const value = read.subarray(at, at + CHUNK_BYTES_MAX);
      digest.update(value);
      yield create(FetchBytesResponseSchema, { part: { case: "chunk", value } });
    }
  }
  const sha256 = digest.digest("hex");
  yield create(FetchBytesResponseSchema, { part: { case: "end", value: { sha256 } } });
}

/** @throws WrongBytes when it does not begin as it should; the errors of `parts` */
export async function bytesFromWire(parts: AsyncIterator<FetchBytesResponse>): Promise<FoundBytes> {
  const first = await parts.next();
  if (first.done === true || first.value.part.case !== "begin")
    throw new WrongBytes("They have no beginning.");
  const { madeAtMs } = first.value.part.value;
  return { madeAtMs, bytes: chunksOf(parts) };
}

async function* chunksOf(parts: AsyncIterator<FetchBytesResponse>): AsyncGenerator<Uint8Array> {
  const digest = createHash("sha256");
  for (;;) {
    const next = await parts.next();
    if (next.done === true) throw new WrongBytes("They were cut off.");
    const { part } = next.value;
    if (part.case === "end") {
      if (part.value.sha256 !== digest.digest("hex")) throw new WrongBytes("They were changed on their way.");
      return;
    }
    if (part.case !== "chunk") throw new WrongBytes("They are interrupted by something else.");
    digest.update(part.value);
    yield part.value;
  }
}
