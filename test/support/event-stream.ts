// Live streams as blocks, and the events in them. Tests that only want to know what happened use job-watch.ts and
// gateway-api.ts.

import assert from "node:assert/strict";
import type { Program } from "./program.ts";

export interface Block {
  readonly fields: ReadonlyMap<string, string>;
  readonly text: string;
}

export interface OpenStream {
  readonly status: number;
  readonly headers: Headers;
  /** Reads up to `count` blocks; fewer when the stream ends. */
  take(count: number): Promise<Block[]>;
  /** Reads to the end. */
  rest(): Promise<Block[]>;
  close(): Promise<void>;
}

/** @param of which stream of the job */
export async function openStream(
  program: Program,
  jobId: string,
  lastEventId?: string,
  of: "events" | "workflow-progress" = "events",
): Promise<OpenStream> {
  const answer = await fetch(`${program.api}/jobs/${encodeURIComponent(jobId)}/${of}/stream`, {
    headers: { ...(lastEventId !== undefined && { "last-event-id": lastEventId }) },
  });
  const blocks = blocksOf(answer);
  const take = async (count: number) => {
    const taken: Block[] = [];
    while (taken.length < count) {
      const { done, value } = await blocks.next();
      if (done === true) break;
      taken.push(value);
    }
    return taken;
  };
  return {
    status: answer.status,
    headers: answer.headers,
    take,
    rest: () => take(Number.POSITIVE_INFINITY),
    close: async () => void (await blocks.return(undefined)),
  };
}

/** The numbers of the blocks that are events. */
export function idsOf(blocks: readonly Block[]): number[] {
  return blocks.flatMap(({ fields }) => (fields.has("id") ? [Number(fields.get("id"))] : []));
}

/** Its blocks until it ends. Holds on to the answer: one that nobody holds is collected, and its body cancelled. */
export async function* blocksOf({ body }: Response): AsyncGenerator<Block, undefined> {
  if (body === null) return;
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const whole = (rest + text).split("\n\n");
    rest = whole.pop() ?? "";
    // Not the signs of life: when one of them comes is up to the clock.
    for (const block of whole) if (!block.startsWith(":")) yield { fields: fieldsOf(block), text: block };
  }
}

function fieldsOf(block: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ""));
  }
  return fields;
}

/**
 * Waits until an event has happened; it may have happened long ago.
 *
 * @param events of what `subject` names, from the first one
 * @param wanted its type, or what is said of it
 * @throws when they end without it
 */
export async function happensIn<Event extends { readonly type: string }>(
  events: AsyncIterable<Event>,
  subject: string,
  wanted: string | ((event: Event) => boolean),
): Promise<Event> {
  const matches = typeof wanted === "string" ? (event: Event) => event.type === wanted : wanted;
  const seen: string[] = [];
  const without = () => `without ${String(wanted)}; it has: ${seen.join(", ")}`;
  try {
    for await (const event of events) {
      if (matches(event)) return event;
      seen.push(event.type);
    }
  } catch (cause) {
    throw new Error(`the stream of ${subject} broke off ${without()}`, { cause });
  }
  return assert.fail(`${subject} ended ${without()}`);
}
