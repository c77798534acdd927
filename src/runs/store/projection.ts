// The history files of one run, below SVC_HOME/evidence: its history as series of lines.
//
// - It is a cache: whatever is missing, damaged or of another version is made again from the run's history,
//   and is then the same, byte for byte.
// - It may be made in any steps; the files are the same. A crash between two steps costs the last one at most.
// - Memory is bounded whatever the run's size, and the thread is not held longer than a slice of work.
// - Once the run has ended and all is written, nothing changes.
//
// One caller at a time: run-store.ts sees to it.

import { mkdir, rm } from "node:fs/promises";
import { Slices } from "../../lib/slices.ts";
import { failureLine, renderEvent } from "../history/line.ts";
import { toLog } from "../history/logs.ts";
import type { RunContext } from "../history/run-context.ts";
import { toTimeline } from "../history/timeline.ts";
import { type DocumentName, type SeriesName, seriesNames } from "./history-names.ts";
import { isIntact, isMissing, type ProjectionState, readState, writeState } from "./projection-state.ts";
import type { RunSource } from "./run-source.ts";
import { type FilePart, SeriesFile } from "./series-file.ts";
import { TimelineJson } from "./timeline-json.ts";

export interface ProjectionPlace {
  readonly run: RunContext;
  readonly folder: string;
}

/** The history has fewer events than the run's row tells: the run is being removed. */
export class HistoryCut extends Error {}

export class Projection {
  readonly run: RunContext;
  readonly folder: string;
  readonly timeline: TimelineJson;
  /** Of documents that do not change any more; null: the run has none of this name. */
  readonly documents = new Map<DocumentName, Pick<FilePart, "size" | "sha256"> | null>();
  readonly #series: Readonly<Record<SeriesName, SeriesFile>>;
  #throughSeq = 0;
  #isComplete = false;
  #timelineSha256: string;

  private constructor({ run, folder }: ProjectionPlace) {
    this.run = run;
    this.folder = folder;
    const timeline = new TimelineJson(run);
    this.timeline = timeline;
    this.#timelineSha256 = timeline.sha256;
    this.#series = {
      events: new SeriesFile({ folder, name: "events", rotates: true }),
      logs: new SeriesFile({ folder, name: "logs", rotates: true }),
      errors: new SeriesFile({ folder, name: "errors", rotates: true }),
      timeline: new SeriesFile({
        folder,
        name: "timeline",
        rotates: false,
        onBytes: (bytes) => timeline.add(bytes),
      }),
    };
  }

  /** Resumes what is on disk, or begins again. */
  static async open(place: ProjectionPlace): Promise<Projection> {
    const state = await readState(place.folder, place.run.runId);
    if (state !== null) {
      const found = new Projection(place);
      if (await found.#resume(state)) return found;
    }
    await rm(place.folder, { recursive: true, force: true });
    return new Projection(place);
  }

  async #resume(state: ProjectionState): Promise<boolean> {
    this.#throughSeq = state.throughSeq;
    this.#isComplete = state.isComplete;
    try {
      for (const name of seriesNames) {
        if (!(await this.#series[name].resume(state.series[name], state.isComplete))) return false;
      }
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
    this.#timelineSha256 = state.isComplete ? state.timelineSha256 : this.timeline.sha256;
    return this.#timelineSha256 === state.timelineSha256 && (await this.isIntact());
  }

  get throughSeq(): number {
    return this.#throughSeq;
  }

  /** Whether it is what it will always be. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Of each series the parts, oldest first. */
  partsOf(name: SeriesName): readonly FilePart[] {
    return this.#series[name].parts;
  }

  /** @param number of the part, from 1 */
  pathOf(name: SeriesName, number: number): string {
    return this.#series[name].pathOf(number);
  }

  /** Hex, of timeline.json. */
  get timelineSha256(): string {
    return this.#timelineSha256;
  }

  /** Whether all files are as they were written, as far as that can be told without reading them. */
  async isIntact(): Promise<boolean> {
    for (const name of seriesNames) {
      for (const [i, part] of this.partsOf(name).entries()) {
        if (!(await isIntact(this.pathOf(name, i + 1), part))) return false;
      }
    }
    return true;
  }

  /** Whether `catchUp` would have nothing to do. */
  isUpToDate({ eventCount, isEnded }: RunSource): boolean {
    return this.#isComplete || (!isEnded && eventCount === this.#throughSeq);
  }

  /**
   * Brings the files to where the run is in this reading. After an error the projection is of no use any more.
   *
   * @param check called between two slices of work; throws when the work is to be given up
   * @throws the system's errors; what `check` throws
   */
  async catchUp(source: RunSource, check: () => void): Promise<void> {
    if (this.#isComplete) return;
    try {
      await mkdir(this.folder, { recursive: true, mode: 0o700 });
      await this.#addEvents(source, check);
      if (source.isEnded) {
        for (const name of seriesNames) await this.#series[name].close();
        this.#isComplete = true;
      }
      await this.#save();
    } finally {
      for (const name of seriesNames) await this.#series[name].release();
    }
  }

  async #addEvents(source: RunSource, check: () => void): Promise<void> {
    const { events, logs, errors, timeline } = this.#series;
    const slices = new Slices();
    let full = this.#fullParts();
    let seq = this.#throughSeq;
    while (seq < source.eventCount) {
      const { lines } = await source.read(seq);
      if (lines.length === 0) throw new HistoryCut(`The history of ${source.runId} ends at event ${seq}.`);
      for (const line of lines) {
        if (seq === source.eventCount) break;
        seq++;
        const log = toLog(source, line);
        const failure = failureLine(line);
        const record = toTimeline(source, seq, line);
        // One after the other: when one file cannot be written, no write is left running.
        for (const [series, shown] of [
          [events, renderEvent(source.runId, seq, line)],
          [logs, log && JSON.stringify(log)],
          [errors, failure],
          [timeline, record && JSON.stringify(record)],
        ] as const) {
          const wait = shown === null ? null : series.add(shown);
          if (wait !== null) await wait;
        }
        if (!slices.isOver) continue;
        await slices.breathe();
        check();
      }
      if (this.#fullParts() === full) continue;
      // What is full stays, whatever happens to the rest.
      await this.#flush(seq);
      await this.#save();
      full = this.#fullParts();
    }
    await this.#flush(seq);
  }

  #fullParts(): number {
    return seriesNames.reduce((count, name) => count + this.partsOf(name).length, 0);
  }

  async #flush(seq: number): Promise<void> {
    for (const name of seriesNames) await this.#series[name].flush();
    this.#timelineSha256 = this.timeline.sha256;
    this.#throughSeq = seq;
  }

  #save(): Promise<void> {
    return writeState(this.folder, this.run.runId, {
      throughSeq: this.#throughSeq,
      isComplete: this.#isComplete,
      series: {
        events: this.partsOf("events"),
        logs: this.partsOf("logs"),
        errors: this.partsOf("errors"),
        timeline: this.partsOf("timeline"),
      },
      timelineSha256: this.#timelineSha256,
    });
  }
}
