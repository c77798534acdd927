// A multipart/form-data body around a stream of unknown length, which FormData cannot hold.

import { chunksOf } from "./streams.ts";
import type { Content } from "./transport.ts";

/** One file, in the form field `bundle`, sent as it comes. */
export function multipartStream(file: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>): Content {
  const random = crypto.getRandomValues(new Uint32Array(4));
  const boundary = `troupe-${Array.from(random, (part) => part.toString(36)).join("")}`;
  const head =
    `--${boundary}\r\nContent-Disposition: form-data; name="bundle"; filename="bundle.zip"\r\n` +
    "Content-Type: application/zip\r\n\r\n";
  return {
    body: streamOf(parts(head, "getReader" in file ? chunksOf(file) : file, `\r\n--${boundary}--\r\n`)),
    headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
    duplex: "half",
  };
}

async function* parts(
  head: string,
  file: AsyncIterable<Uint8Array>,
  tail: string,
): AsyncGenerator<Uint8Array, undefined> {
  const encoder = new TextEncoder();
  yield encoder.encode(head);
  yield* file;
  yield encoder.encode(tail);
}

/** Pulls only when there is room, and ends the source when the reader stops. */
function streamOf(chunks: AsyncGenerator<Uint8Array, undefined>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await chunks.return(undefined);
    },
  });
}
