// Server-sent events as they come off the wire: bytes in, events out.
//
// - Memory is bounded: an event larger than EVENT_CHARS_MAX ends the stream with an error.
// - An event that the connection cut short is not reported; the next connection asks for it again by id.

/** More than the largest event: its payload has 64 KiB of characters at most, its failure 16 KiB. */
const EVENT_CHARS_MAX = 4 * 1024 * 1024;

export interface ServerSentEvent {
  /** The last id seen so far; empty when the server sent none. */
  readonly id: string;
  readonly type: string;
  readonly data: string;
}

/** Reads events until the body ends. */
export async function* readServerSentEvents(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<ServerSentEvent, undefined> {
  for await (const { data, ...block } of readBlocks(body)) if (data !== null) yield { ...block, data };
}

/** The same with ids without an event, whose `data` is null. */
export async function* readBlocks(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Omit<ServerSentEvent, "data"> & { readonly data: string | null }, undefined> {
  let id = "";
  let hasId = false;
  let type = "";
  let data: string[] = [];
  let dataChars = 0;
  for await (const line of readLines(body)) {
    if (line === "") {
      const isEvent = data.length > 0;
      if (isEvent || hasId) {
        yield { id, type: type === "" ? "message" : type, data: isEvent ? data.join("\n") : null };
      }
      hasId = false;
      type = "";
      data = [];
      dataChars = 0;
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (field === "id") {
      id = value;
      hasId = true;
    } else if (field === "event") type = value;
    else if (field === "data") {
      dataChars += value.length + 1;
      if (dataChars > EVENT_CHARS_MAX) throw tooLarge();
      data.push(value);
    }
  }
}

async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    // A "\r" at the end may be half of "\r\n"; it waits for the next chunk.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    if (rest.length > EVENT_CHARS_MAX) throw tooLarge();
    yield* lines;
  }
}

function tooLarge(): Error {
  return new Error("The server sent an event that is too large to be one.");
}
