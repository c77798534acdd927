// What comes of a streamed answer on its way to the client: the bytes as they are, but for the usage that the client did not
// ask for.
//
// - Each line is read once, to count, to find the end, and to find what is no answer of the protocol.
// - A line is passed on when it is whole, so that one that is left out is left out whole.

import { LlmError } from "./llm-error.ts";
import { objectOf } from "./upstream.ts";
import { type Usage, usageIn } from "./usage.ts";

const NEWLINE = 0x0a;
const DATA = Buffer.from("data:");
const LINE_BYTES_MAX = 16 * 1024 * 1024;
const DONE_EVENT = Buffer.from("data: [DONE]\n\n");

export class StreamRelay {
  readonly #modelId: string;
  readonly #hidesUsage: boolean;
  /** The beginning of a line whose end has not come. */
  #open: Buffer = Buffer.alloc(0);
  /** Whether the empty line that ends an event is left out with its event. */
  #skipsBlank = false;
  #isDone = false;
  #isFinished = false;
  #usage: Usage | null = null;
  #pieces = 0;
  #failure: LlmError | null = null;

  /** @param hidesUsage whether the client has not asked for it */
  constructor(modelId: string, hidesUsage: boolean) {
    this.#modelId = modelId;
    this.#hidesUsage = hidesUsage;
  }

  /** As the upstream has told it; null when it has told none. */
  get usage(): Usage | null {
    return this.#usage;
  }

  /** Events with a part of the answer. */
  get pieces(): number {
    return this.#pieces;
  }

  /** Why nothing more is passed on, once something came that is no answer of the protocol. */
  get failure(): LlmError | null {
    return this.#failure;
  }

  /** @returns what the client gets: of what is no answer of the protocol, that which came before (`failure`) */
  push(chunk: Buffer): Buffer {
    const bytes = this.#open.length === 0 ? chunk : Buffer.concat([this.#open, chunk]);
    const passed: Buffer[] = [];
    /** Up to where lines are passed on as they are; they begin at `kept`. */
    let from = 0;
    let kept = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, from)) {
      const line = bytes.subarray(from, end + 1);
      const given = this.#line(line);
      if (given === null) return Buffer.concat([...passed, bytes.subarray(kept, from)]);
      if (given !== line) {
        passed.push(bytes.subarray(kept, from), given);
        kept = end + 1;
      }
      from = end + 1;
    }
    this.#open = bytes.subarray(from);
    if (this.#open.length > LINE_BYTES_MAX)
      this.#failure = this.#invalid("a line of it is longer than 16 MiB");
    if (kept === 0) return bytes.subarray(0, from);
    return Buffer.concat([...passed, bytes.subarray(kept, from)]);
  }

  /** The upstream has ended its answer. @returns what is left for the client; `failure` tells when it was cut */
  end(): Buffer {
    const last = this.#open.length === 0 ? this.#open : this.push(Buffer.from("\n\n"));
    if (this.#isDone || this.#failure !== null) return last;
    // Some servers leave the mark out; what was said is whole all the same.
    if (this.#isFinished) return Buffer.concat([last, DONE_EVENT]);
    this.#failure = cut(this.#modelId);
    return last;
  }

  /** @returns null for what is no answer of the protocol */
  #line(line: Buffer): Buffer | null {
    if (line.length <= 2 && line.toString("latin1").trim() === "") {
      const isLeftOut = this.#skipsBlank;
      this.#skipsBlank = false;
      return isLeftOut ? NOTHING : line;
    }
    if (!line.subarray(0, DATA.length).equals(DATA)) return line;
    const text = line.toString("utf8", DATA.length).trim();
    if (text === "[DONE]") {
      this.#isDone = true;
      return line;
    }
    const data = objectOf(text);
    if (data === null) this.#failure = this.#invalid("a part of it is no JSON object");
    else if (data.error !== undefined && data.error !== null) this.#failure = this.#failed(data.error);
    return data === null || this.#failure !== null ? null : (this.#part(data) ?? line);
  }

  /** @returns null when it is passed on as it is */
  #part(data: Record<string, unknown>): Buffer | null {
    const choices = Array.isArray(data.choices) ? (data.choices as { finish_reason?: unknown }[]) : [];
    if (choices.length > 0) this.#pieces++;
    if (choices.some((choice) => typeof choice?.finish_reason === "string")) this.#isFinished = true;
    if (!("usage" in data)) return null;
    this.#usage = usageIn(data) ?? this.#usage;
    if (!this.#hidesUsage) return null;
    if (choices.length === 0) {
      this.#skipsBlank = true;
      return NOTHING;
    }
    const { usage, ...shown } = data;
    return Buffer.from(`data: ${JSON.stringify(shown)}\n`);
  }

  #invalid(what: string): LlmError {
    return new LlmError(
      502,
      "upstream_invalid_response",
      `The server of model "${this.#modelId}" sent what is no answer of the protocol: ${what}. What came before may be of no use.`,
    );
  }

  #failed(error: unknown): LlmError {
    const { message = error, code } = typeof error === "object" ? (error as Record<string, unknown>) : {};
    return new LlmError(
      502,
      typeof code === "string" ? code : "upstream_error",
      `The server of model "${this.#modelId}" gave up in the middle of its answer: ${String(message).slice(0, 1_000)}`,
    );
  }
}

const NOTHING = Buffer.alloc(0);

export const cut = (modelId: string) =>
  new LlmError(
    502,
    "upstream_cut",
    `The server of model "${modelId}" broke off in the middle of its answer. Send the request again; what came is incomplete.`,
  );
