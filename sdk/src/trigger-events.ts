// Trigger events: what has happened, and the schedules that react to it.

import { type Pages, pagesOf } from "./pages.ts";
import type { NewTriggerEvent, TriggerEvent, TriggerEventsQuery } from "./records.ts";
import type { CallOptions, KeyedOptions, Transport } from "./transport.ts";

export class TriggerEventsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Tells of an event. `matched` of the answer names the schedules that react to it, and the runs that were started.
   *
   * @param event the same event_id again has no effect, and is given the first answer
   *
   * @example
   * await client.events.emit({ type: "file.arrived", payload: { path: "/srv/in/a.pdf" }, event_id: "a.pdf" });
   */
  emit(event: NewTriggerEvent, options: KeyedOptions = {}): Promise<TriggerEvent> {
    return this.#transport.value("emitEvent", { body: event }, options);
  }

  /** With what schedules have made of it by now. */
  get(eventId: string, options: CallOptions = {}): Promise<TriggerEvent> {
    return this.#transport.value("getEvent", { path: { event_id: eventId } }, options);
  }

  /** Newest first. */
  list(query: TriggerEventsQuery = {}, options: CallOptions = {}): Pages<TriggerEvent> {
    return pagesOf(this.#transport, "listEvents", { query }, options);
  }
}
