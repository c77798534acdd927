// A run as the gateway tells it: its events, its record, its outputs and their bytes.
// What it sends is bounded before it is kept.

import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { followStream, terminalTypes } from "./run-stream.mjs";

const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
const ANSWER_TIMEOUT_MS = 10_000;
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
   * Hands over the events after `afterId` until the run's last one, through any number of connections.
   *
   * @param onFrame called with {id, event, text}, where `text` is the frame as it came
   * @param onState called with "live" and "reconnecting"
   * @param hasRoom awaited before more is read
   * @param signal gives up
   */
  async follow(afterId, { onFrame, onState, hasRoom, signal }) {
    const over = new AbortController();
    const until = AbortSignal.any([signal, over.signal]);
    await followStream({
      url: `${this.runUrl}/events/stream`,
      headers: this.#headers,
      lastId: afterId,
      endings: new Map([[204, "ended"]]),
      signal: until,
      onLive: () => onState("live"),
      onFrames: async (frames) => {
        for (const frame of frames) {
          if (frame.id === null || until.aborted) continue;
          onFrame(frame);
          if (terminalTypes.has(frame.event)) over.abort();
        }
        if (!until.aborted) await hasRoom();
      },
      beforeRetry: async (retryMs) => {
        onState("reconnecting");
        // Several dashboards must not come back in one moment.
        await delay(retryMs * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => {});
        return !signal.aborted;
      },
    });
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
