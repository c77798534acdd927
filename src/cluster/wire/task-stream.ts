// One end of a stream of frames between an owner of attempts and their host (../tasks/messages.ts), over one HTTP/2 stream.

import { scheduler } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { Connection, FromHost, FromOwner } from "../tasks/messages.ts";
import { type TasksRequest, TasksRequestSchema } from "./gen/svc/node/v1/node_pb.ts";
import type { Peers } from "./peers.ts";

/** Of a frame's text in one message; UTF-8 has up to three bytes for each. */
const PART_CHARS_MAX = 512 * 1024;
/** A frame carries a task's message, which is bounded by the engine (limits.ts), and its configuration. */
const FRAME_CHARS_MAX = 128 * 1024 * 1024;

export interface FramePart {
  readonly part: string;
  readonly isLast: boolean;
}

export class TaskStream<Out, In> implements Connection<Out, In> {
  onFrame: (frame: In) => void = () => {};
  onClose: () => void = () => {};
  readonly #closed = new AbortController();
  #waiting: string[] = [];
  #wake = () => {};
  #parts = "";

  /** Aborted when this end has closed the stream. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  write(frame: Out): void {
    if (this.closed.aborted) return;
    this.#waiting.push(JSON.stringify(frame));
    this.#wake();
  }

  close(): void {
    this.#waiting = [];
    this.#closed.abort();
    this.#wake();
  }

  /** What is to be sent, until the stream is closed. */
  async *outgoing(): AsyncGenerator<FramePart> {
    for (;;) {
      const text = this.#waiting.shift();
      if (this.closed.aborted) return;
      if (text === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      for (let at = 0; at < text.length; at += PART_CHARS_MAX) {
        const isLast = at + PART_CHARS_MAX >= text.length;
        yield { part: text.slice(at, at + PART_CHARS_MAX), isLast };
        if (!isLast) await scheduler.yield();
      }
    }
  }

  /** Takes what comes until the other end, or the way to it, is gone. Rejects with what the handlers throw only. */
  async take(incoming: AsyncIterable<FramePart>): Promise<void> {
    for await (const frame of this.#frames(incoming)) this.onFrame(frame);
    this.lost();
  }

  async *#frames(incoming: AsyncIterable<FramePart>): AsyncGenerator<In> {
    try {
      for await (const { part, isLast } of incoming) {
        if (this.closed.aborted) return;
        this.#parts += part;
        if (this.#parts.length > FRAME_CHARS_MAX) return;
        if (!isLast) continue;
        const text = this.#parts;
        this.#parts = "";
        yield JSON.parse(text) as In;
      }
    } catch {
      // The connection is lost, or what came is no JSON: a new stream begins where this one ended.
    }
  }

  /** The other end, or the way to it, is gone. */
  lost(): void {
    if (this.closed.aborted) return;
    this.close();
    this.onClose();
  }
}

/** @returns what opens a stream to a node's host; one that cannot be opened is closed soon */
export function openTaskStreams(
  peers: Pick<Peers, "stream">,
  /** host:port; null for a node that cannot be reached. */
  addressOf: (nodeId: string) => string | null,
): (nodeId: string) => Connection<FromOwner, FromHost> {
  return (nodeId) => {
    const stream = new TaskStream<FromOwner, FromHost>();
    const address = addressOf(nodeId);
    void stream.take(
      address === null
        ? nothing()
        : peers.stream(address, stream.closed, (client, options) => client.tasks(requests(stream), options)),
    );
    return stream;
  };
}

async function* requests(stream: TaskStream<FromOwner, FromHost>): AsyncGenerator<TasksRequest> {
  for await (const part of stream.outgoing()) yield create(TasksRequestSchema, part);
}

async function* nothing(): AsyncGenerator<FramePart> {}
