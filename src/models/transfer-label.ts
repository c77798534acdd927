// What a transfer says of itself, for people: "2.1 of 4.7 GB, 310 MB/s, 8 s left".

import type { Clock } from "../engine/ports.ts";
import { bytesText } from "../lib/text.ts";

export class TransferLabel {
  readonly #what: string;
  readonly #clock: Pick<Clock, "steadyMs">;
  #beganAtMs: number;
  /** What was there when it began. */
  #fromBytes = 0;

  /** @param what such as "Downloading" */
  constructor(what: string, clock: Pick<Clock, "steadyMs">) {
    this.#what = what;
    this.#clock = clock;
    this.#beganAtMs = clock.steadyMs();
  }

  /** The rate counts from here on. */
  begins(bytesThere: number): void {
    this.#fromBytes = bytesThere;
    this.#beganAtMs = this.#clock.steadyMs();
  }

  /** @param totalBytes null: nobody knows */
  text(bytes: number, totalBytes: number | null): string {
    const seconds = (this.#clock.steadyMs() - this.#beganAtMs) / 1_000;
    const rate = seconds < 0.5 ? null : Math.max(0, bytes - this.#fromBytes) / seconds;
    const amount = totalBytes === null ? bytesText(bytes) : `${bytesText(bytes)} of ${bytesText(totalBytes)}`;
    const speed = rate === null ? [] : [`${bytesText(rate)}/s`];
    const left =
      rate === null || rate < 1 || totalBytes === null
        ? []
        : [`${timeText(Math.max(0, totalBytes - bytes) / rate)} left`];
    return `${this.#what}: ${[amount, ...speed, ...left].join(", ")}`;
  }
}

function timeText(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  return seconds < 5_400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3_600).toFixed(1)} h`;
}
