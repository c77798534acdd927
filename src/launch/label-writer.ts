// What a run is told to wait for while its launch is prepared: the latest word, written once a second at most.

import type { Clock, EngineLog } from "../engine/ports.ts";
import type { GatewayRecords } from "./records.ts";

const EVERY_MS = 1_000;

export interface LabelWriterParts {
  readonly records: Pick<GatewayRecords, "write">;
  readonly clock: Clock;
  readonly log: EngineLog;
}

export class LabelWriter {
  readonly #parts: LabelWriterParts;
  readonly #runId: string;
  #latest: string | null = null;
  #written: string | null = null;
  #writing: Promise<void> = Promise.resolve();
  /** Takes the pause back that follows each write; null when there is none. */
  #cancelPause: (() => void) | null = null;

  constructor(parts: LabelWriterParts, runId: string) {
    this.#parts = parts;
    this.#runId = runId;
  }

  /** Costs next to nothing, however often it is called. */
  readonly report = (label: string): void => {
    this.#latest = label;
    if (this.#cancelPause === null) this.#writeLatest();
  };

  /** Writes no more; resolves when the run is told `last`, or nothing any more. */
  async end(last: string | null = null): Promise<void> {
    this.#cancelPause?.();
    this.#cancelPause = () => {};
    await this.#writing;
    if (this.#written !== last) await this.#write(last);
  }

  #writeLatest(): void {
    if (this.#latest === this.#written) return;
    this.#cancelPause = this.#parts.clock.after(EVERY_MS, () => {
      this.#cancelPause = null;
      this.#writeLatest();
    });
    const label = this.#latest;
    this.#written = label;
    this.#writing = this.#writing.then(() => this.#write(label));
  }

  /** A store that takes nothing at the moment loses a label; the preparation goes on. */
  async #write(label: string | null): Promise<void> {
    const { records, clock, log } = this.#parts;
    try {
      await records.write((writes) => writes.setLabel(this.#runId, label, clock.nowMs()));
    } catch (error) {
      log.warn({ run_id: this.#runId, error: String(error) }, "a run's label could not be written");
    }
  }
}
