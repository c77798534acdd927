// Reading streams chunk by chunk in any environment.

/**
 * A stream's chunks. Not by its own iterator, which some browsers lack. The stream is cancelled when the iteration ends.
 *
 * @param watch wraps each read, to fail one that takes too long
 */
export async function* chunksOf(
  stream: ReadableStream<Uint8Array>,
  watch: <T>(reading: Promise<T>) => Promise<T> = (reading) => reading,
): AsyncGenerator<Uint8Array, undefined> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await watch(reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    // The rest of the stream is not needed, so a failed cancellation does not matter.
    reader.cancel().catch(() => {});
  }
}
