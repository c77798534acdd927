// What changes in the lists of a gateway, as it happens on this node: a note names a record, and says nothing of it that the
// database knows. Who keeps a list up to date reads the record again.
//
// - While nobody listens, nothing is listened to: it costs the runs nothing.
// - A note comes after the commit of its change. The same record may be noted many times.

import { eventType } from "../engine/event.ts";
import type { EventFeed } from "./feed.ts";

export const topics = [
  "runs",
  "human",
  "dead-letters",
  "services",
  "operations",
  "deployments",
  "schedules",
] as const;
export type Topic = (typeof topics)[number];

/** A record that has changed. */
export interface Note {
  /** "": so much has changed that it is not told one by one. */
  readonly topic: Topic | "";
  /** The record's; "" for the run of a job. */
  readonly id: string;
  /** The runtime's job that it belongs to; "" where that is not known, or there is none. */
  readonly jobId: string;
  /** What it is now, of what a list does not keep: a request, a dead letter, a service. Else "". */
  readonly status: string;
}

export const everything: Note = { topic: "", id: "", jobId: "", status: "" };

export type NoteListener = (note: Note) => void;

/** Where notes come from. */
export interface NoteSource {
  /** Notes come from the call on, and from everywhere once it is `ready`. */
  listen(listener: NoteListener): { readonly ready: Promise<void>; stop(): void };
}

/** Names the record: the last note of a key makes the earlier ones superfluous. */
export const keyOf = ({ topic, id, jobId }: Note): string => `${topic} ${jobId} ${id}`;

interface Told {
  readonly topic: Topic;
  /** The member of the event's payload that has the record's id. */
  readonly member: string;
  readonly status: string;
}

/** The events that change a record beside the run. */
const told: ReadonlyMap<string, Told> = new Map(
  Object.entries({
    human_input_requested: { topic: "human", member: "request_id", status: "pending" },
    human_input_answered: { topic: "human", member: "request_id", status: "answered" },
    human_input_timed_out: { topic: "human", member: "request_id", status: "timed_out" },
    message_dead_lettered: { topic: "dead-letters", member: "dead_letter_id", status: "open" },
    message_retried: { topic: "dead-letters", member: "dead_letter_id", status: "retried" },
    service_registered: { topic: "services", member: "service_id", status: "registered" },
    service_passing: { topic: "services", member: "service_id", status: "passing" },
    service_critical: { topic: "services", member: "service_id", status: "critical" },
    service_deregistered: { topic: "services", member: "service_id", status: "deregistered" },
  }),
);

export class ChangeNotes implements NoteSource {
  readonly #feed: Pick<EventFeed, "subscribeAll">;
  readonly #listeners = new Set<NoteListener>();
  #unsubscribe = () => {};

  constructor(feed: Pick<EventFeed, "subscribeAll">) {
    this.#feed = feed;
  }

  listen(listener: NoteListener): ReturnType<NoteSource["listen"]> {
    if (this.#listeners.size === 0) {
      this.#unsubscribe = this.#feed.subscribeAll((jobId, _firstSeq, lines) => this.#published(jobId, lines));
    }
    this.#listeners.add(listener);
    const stop = () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#unsubscribe();
    };
    return { ready: Promise.resolve(), stop };
  }

  /** The gateway has written these records; null: more than it names. To be called after the commit. */
  readonly written = (topic: "runs" | "schedules", ids: readonly string[] | null): void => {
    if (this.#listeners.size === 0) return;
    if (ids === null) this.#tell(everything);
    else for (const id of ids) this.#tell({ topic, id, jobId: "", status: "" });
  };

  #published(jobId: string, lines: readonly string[]): void {
    // A job's id is its graph's and a new one. Operations and deployments publish, too.
    if (!jobId.includes("-")) {
      const topic = jobId.startsWith("op_") ? "operations" : "deployments";
      this.#tell({ topic, id: jobId, jobId: "", status: "" });
      return;
    }
    this.#tell({ topic: "runs", id: "", jobId, status: "" });
    for (const line of lines) {
      const change = told.get(eventType(line));
      if (change === undefined) continue;
      const { payload } = JSON.parse(line) as { readonly payload?: Readonly<Record<string, unknown>> };
      const id = payload?.[change.member];
      if (typeof id === "string") this.#tell({ topic: change.topic, id, jobId, status: change.status });
    }
  }

  #tell(note: Note): void {
    for (const listener of this.#listeners) listener(note);
  }
}

const NOTES_MAX = 20_000;

/** Notes that nobody has taken yet: each record once, and of more than can be kept only that they are too many. */
export class NoteQueue {
  readonly #notes = new Map<string, Note>();

  get size(): number {
    return this.#notes.size;
  }

  add(note: Note): void {
    if (note.topic === "" || this.#notes.size >= NOTES_MAX) this.#notes.clear();
    const tooMany = keyOf(everything);
    if (this.#notes.has(tooMany)) return;
    this.#notes.set(keyOf(note), note);
  }

  /** Keeps what was taken and could not be used; of a record that was noted again meanwhile, the newer note stands. */
  giveBack(notes: readonly Note[]): void {
    for (const note of notes) if (!this.#notes.has(keyOf(note))) this.add(note);
  }

  /** The oldest ones, which are no longer kept here. */
  take(max: number): readonly Note[] {
    const taken: Note[] = [];
    for (const [key, note] of this.#notes) {
      if (taken.length === max) break;
      taken.push(note);
      this.#notes.delete(key);
    }
    return taken;
  }
}
