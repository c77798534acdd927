// A run as the gateway tells it: its events, its record, its outputs and their bytes.
//
// U1. Events come once each and in order, whatever happens to connections: each one goes on behind the last id.
// U2. What the gateway sends is bounded before it is kept: a frame, an answer.

import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";

const SILENCE_MS = 45_000;
const FRAME_CHARS_MAX = 4 * 1024 * 1024;
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
const ANSWER_TIMEOUT_MS = 10_000;
const RETRY_MS = { first: 200, most: 5_000 };
const OUTPUTS_SHOWN = 200;
const STREAM_PATH = /^(.*\/runs\/([^/]+))\/events\/stream$/;

export class GatewaySource {
  /** The run's URL at the gateway, without a slash at the end. */
  runUrl;
  /** The run's page there, with the key that opens it. */
  pageUrl;
  runId;
  endsWithRun = true;
  #headers;

  /**
   * @param eventsUrl of the run's event stream
   * @param token sent along as a bearer token; null for none
   * @throws Error when the URL is not one of a run's event stream
   */
  constructor({ eventsUrl, token }) {
    const url = new URL(eventsUrl);
    const [, runPath, runId] = STREAM_PATH.exec(url.pathname) ?? [];
    if (runPath === undefined)
      throw new Error(`SVC_BLUEPRINT_RUN_EVENTS_URL does not end in /runs/<run>/events/stream: ${eventsUrl}`);
    this.runUrl = url.origin + runPath;
    this.pageUrl = `${this.runUrl}/dashboard${token === null ? "" : `?key=${encodeURIComponent(token)}`}`;
    this.runId = decodeURIComponent(runId);
    this.#headers = token === null ? {} : { authorization: `Bearer ${token}` };
  }

  /**
   * Hands over the events behind `afterId` until the run's last one, through any number of connections.
   *
   * @param onFrame called with {id, type, text}, where `text` is the frame as it came
   * @param onState called with "live" and "reconnecting"
   * @param hasRoom awaited before more is read
   * @param signal gives up
   */
  async follow(afterId, { onFrame, onState, hasRoom, signal }) {
    const place = { lastId: afterId, isOver: false };
    let retryMs = RETRY_MS.first;
    while (!place.isOver && !signal.aborted) {
      const before = place.lastId;
      try {
        await this.#followOnce(place, { onFrame, onState, hasRoom, signal });
      } catch {
        // Whatever broke the connection, the answer is to make a new one.
      }
      if (place.isOver || signal.aborted) return;
      onState("reconnecting");
      if (place.lastId > before) retryMs = RETRY_MS.first;
      // Several dashboards must not come back in one moment.
      await delay(retryMs * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => {});
      retryMs = Math.min(RETRY_MS.most, retryMs * 2);
    }
  }

  async #followOnce(place, { onFrame, onState, hasRoom, signal }) {
    const silence = new AbortController();
    let watchdog = null;
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => silence.abort(), SILENCE_MS);
    };
    heard();
    try {
      const answer = await fetch(`${this.runUrl}/events/stream`, {
        signal: AbortSignal.any([signal, silence.signal]),
        headers: { ...this.#headers, ...(place.lastId > 0 && { "last-event-id": String(place.lastId) }) },
      });
      if (answer.status === 204) place.isOver = true;
      if (answer.status !== 200) {
        await answer.body?.cancel();
        return;
      }
      onState("live");
      let rest = "";
      for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
        heard();
        const blocks = (rest + text).split("\n\n");
        rest = blocks.pop();
        if (rest.length > FRAME_CHARS_MAX) throw new RangeError("A frame of the stream is too large.");
        for (const block of blocks) {
          const frame = frameOf(block);
          if (frame === null || frame.id <= place.lastId) continue;
          place.lastId = frame.id;
          place.isOver ||= terminalTypes.has(frame.type);
          onFrame(frame);
        }
        if (place.isOver) return;
        await hasRoom();
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  /** @returns the run's record; null when it cannot be had now */
  async run() {
    return this.#json("");
  }

  /** @returns {items, next_page_token}; null when it cannot be had now */
  async outputs() {
    return this.#json(`/outputs?page_size=${OUTPUTS_SHOWN}`);
  }

  async #json(path) {
    try {
      const answer = await fetch(this.runUrl + path, {
        headers: this.#headers,
        signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      });
      if (!answer.ok || Number(answer.headers.get("content-length")) > ANSWER_BYTES_MAX) {
        await answer.body?.cancel();
        return null;
      }
      return await answer.json();
    } catch {
      return null;
    }
  }

  /**
   * Opens one artifact.
   *
   * @param headers of the request; those about parts and versions are passed on
   * @returns {status, headers, body}, where `body` is a stream or null; null when it cannot be had now
   */
  async file(id, { headers, signal }) {
    const passed = ["range", "if-range", "if-none-match"].filter((name) => headers[name] !== undefined);
    try {
      const answer = await fetch(`${this.runUrl}/artifacts/${encodeURIComponent(id)}`, {
        signal,
        headers: { ...this.#headers, ...Object.fromEntries(passed.map((name) => [name, headers[name]])) },
      });
      const body = answer.body === null ? null : Readable.fromWeb(answer.body);
      return { status: answer.status, headers: Object.fromEntries(answer.headers), body };
    } catch {
      return null;
    }
  }
}

export const terminalTypes = new Set(["job_completed", "job_failed", "job_cancelled"]);

/** @returns null for a comment, and for what has no id */
function frameOf(block) {
  const id = Number(/^id: ?(\d{1,15})$/m.exec(block)?.[1] ?? Number.NaN);
  const type = /^event: ?(.*)$/m.exec(block)?.[1] ?? "message";
  return Number.isNaN(id) || !/^data:/m.test(block) ? null : { id, type, text: `${block}\n\n` };
}
