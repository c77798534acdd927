// @ts-check
// One run as the page follows it: its record, and the model of its events (../../dashboard/model.js). Events change the
// model at once, and the page before the next picture.

import { atMost, onceAFrame } from "../../dashboard/dom.js";
import { apply, createModel } from "../../dashboard/model.js";
import { follow } from "../../dashboard/stream.js";
import { get, urlOf } from "../api.js";
import { signal } from "../html.js";
import { keyHeaders } from "../session.js";
import { Spans } from "./spans.js";

const GATHER_MS = 400;
/** The newest events, for the list of them; dropped this many at a time. */
const KEPT_MAX = 5_000;
const DROPPED_AT_ONCE = 500;

export class RunSource {
  /** @type {any} */
  #run = null;
  /** @type {any} */
  #model = null;
  /** @type {any} the graph as the run's dashboard draws it */
  graph = null;
  /** @type {any[]} */
  events = [];
  /** What each agent spent its time with. */
  spans = new Spans();
  /** @type {unknown} */
  #error = null;
  #connection = "connecting";
  /** Grows with each picture. */
  #version = signal(0);
  /** @type {Set<(event: any) => void>} */
  listeners = new Set();
  #ending = new AbortController();
  #draw = onceAFrame(() => this.#version.value++);
  #path;
  #ask;

  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.#path = `/runs/${encodeURIComponent(id)}`;
    this.#ask = atMost(GATHER_MS, () => void this.#readRun());
  }

  /** A view that reads it is drawn anew with each picture; the same holds for the next ones. */
  get version() {
    return this.#version.value;
  }

  /** @returns {any} the run's record; null until it is there */
  get run() {
    void this.version;
    return this.#run;
  }

  /** @returns {any} null until it is there */
  get model() {
    void this.version;
    return this.#model;
  }

  /** @returns {{ id: string, state: string }[]} */
  get agents() {
    return [...(this.model?.agents.values() ?? [])];
  }

  get error() {
    void this.version;
    return this.#error;
  }

  get connection() {
    void this.version;
    return this.#connection;
  }

  /** @returns {() => void} ends it */
  start() {
    void this.#start();
    return () => this.#ending.abort();
  }

  /** Reads the record now, as after a change of it. */
  async again() {
    await this.#readRun();
  }

  async #start() {
    await this.#readRun();
    if (this.#error !== null) return;
    const config = await get(`${this.#path}/dashboard/config.json`).catch(() => null);
    if (this.#ending.signal.aborted) return;
    this.graph = config?.graph ?? null;
    this.#model = createModel(this.graph);
    this.#draw();
    // A stream that was refused: the session has ended. The record is read once somebody has signed in again, and what
    // comes a second time is passed over.
    for (;;) {
      await this.#follow();
      if (this.#connection !== "refused") return;
      await this.#readRun();
      if (this.#error !== null) return;
    }
  }

  async #follow() {
    await follow({
      url: urlOf(`${this.#path}/events/stream`),
      headers: keyHeaders(),
      signal: this.#ending.signal,
      isSameRun: async () => true,
      onNotice: () => {},
      onEvents: (events) => {
        for (const event of events) this.#take(event);
        this.#draw();
      },
      onConnection: (connection) => {
        this.#connection = connection;
        if (connection === "ended") this.#ask();
        this.#draw();
      },
    });
  }

  /** @param {any} event */
  #take(event) {
    if (!apply(this.#model, event)) return;
    this.spans.add(event);
    this.events.push(event);
    if (this.events.length > KEPT_MAX + DROPPED_AT_ONCE) this.events.splice(0, DROPPED_AT_ONCE);
    for (const listener of this.listeners) listener(event);
    if (/^(?:job|human|message)_|^artifact_written$/.test(event.type)) this.#ask();
  }

  async #readRun() {
    try {
      this.#run = await get(this.#path, {}, this.#ending.signal);
      this.#error = null;
    } catch (error) {
      if (this.#ending.signal.aborted) return;
      this.#error = error;
    }
    this.#draw();
  }
}
