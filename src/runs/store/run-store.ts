// The run store: the artifacts of a run. Its history files (views of its history, and small documents, under stable
// ids) are made when they are asked for, the views kept below SVC_HOME/evidence; what workers left lies in the journal
// and the blobs. Both APIs call history files "evidence".
//
// - Nothing of a run is written before it is asked for, nor after its rows are gone: a folder is made and
//   removed in the run's turn, and in its turn the rows are checked first.
// - What is listed is what is served: size and hash are of one reading of the run.
// - A few runs are projected at a time, and of one run one step after the other.

import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { ArtifactRecord } from "../../engine/task-port.ts";
import { KeyedMutex, Semaphore } from "../../lib/async.ts";
import type { JobRecords } from "../job-records.ts";
import { documentFiles, inListOrder, projectedFiles } from "./history-files.ts";
import { documentOf, FINAL_ARTIFACT_ID, isHistoryFileId } from "./history-names.ts";
import { HistoryCut, Projection } from "./projection.ts";
import type { RunSource } from "./run-source.ts";
import type { StoredArtifact } from "./stored-artifact.ts";

export interface RunStorePorts {
  /** SVC_HOME. */
  readonly home: string;
  readonly records: Pick<JobRecords, "artifact" | "artifactPage" | "finalArtifact">;
  /** The run as it stands now; null when there is none, or its job was deleted. */
  readonly findRun: (runId: string) => Promise<RunSource | null>;
  /** Opens some bytes of what a worker left, both ends included; null when they are gone. */
  readonly openBlob: (
    blob: Pick<ArtifactRecord, "sha256" | "size">,
    first: number,
    last: number,
  ) => Promise<Readable | null>;
}

/** The disk takes no more, or the program stops: nothing is lost, and the same can be asked for later. */
export class HistoryUnavailable extends Error {
  override readonly name = "HistoryUnavailable";
}

/** The run was removed while it was looked at. */
class RunIsGone extends Error {}

const PROJECTED_AT_ONCE_MAX = 4;
const PROJECTIONS_KEPT = 256;
/** The system's codes for a disk, or a user's share of it, that takes no more. */
const NO_ROOM: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EROFS"]);

export class RunStore {
  readonly #ports: RunStorePorts;
  readonly #turns = new KeyedMutex();
  readonly #few = new Semaphore(PROJECTED_AT_ONCE_MAX);
  /** What is on disk, of the runs that were looked at lately. */
  readonly #known = new Map<string, Projection>();
  readonly #working = new Set<Promise<unknown>>();
  #isStopped = false;

  constructor(ports: RunStorePorts) {
    this.#ports = ports;
  }

  /**
   * A run's history files, in the order in which it is listed: those with stable ids, then the segments that are full.
   *
   * @returns null when there is no such run
   * @throws HistoryUnavailable
   */
  historyFiles(runId: string): Promise<readonly StoredArtifact[] | null> {
    return this.#inTurn(runId, async (source) => {
      const projection = await this.#caughtUp(source);
      const files = await projectedFiles(projection, source);
      const final = await this.#finalArtifact(runId);
      return final === null ? files : [...files, final].sort(inListOrder);
    });
  }

  async has(runId: string): Promise<boolean> {
    return (await this.#ports.findRun(runId)) !== null;
  }

  /** What workers left, in the order of ids, those behind `after`; at most `limit`. */
  async files(runId: string, limit: number, after: string | null): Promise<readonly StoredArtifact[]> {
    return (await this.#ports.records.artifactPage(runId, limit, after)).map((record) => this.#file(record));
  }

  /**
   * One artifact, ready to be opened.
   *
   * @returns null when there is no such run, or it has no such artifact
   * @throws HistoryUnavailable
   */
  async find(runId: string, artifactId: string): Promise<StoredArtifact | null> {
    if (!isHistoryFileId(artifactId)) {
      const record = await this.#ports.records.artifact(runId, artifactId);
      return record === null ? null : this.#file(record);
    }
    return this.#inTurn(runId, async (source) => {
      if (artifactId === FINAL_ARTIFACT_ID) return this.#finalArtifact(runId);
      const name = documentOf(artifactId);
      if (name !== null) {
        // Needs no history, and none is projected for it.
        const documents = source.documents.filter((document) => document.name === name);
        const [file = null] = await documentFiles(null, { ...source, documents });
        return file;
      }
      const files = await projectedFiles(await this.#caughtUp(source, true), source);
      return files.find((file) => file.artifactId === artifactId) ?? null;
    });
  }

  /** Removes the run's history files. To be called when its rows are gone; nothing is made of it afterwards. */
  remove(runId: string): Promise<void> {
    return this.#turns.run(runId, () => this.#forget(runId));
  }

  /** Gives up what is under way; resolves when nothing is. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    while (this.#working.size > 0) await Promise.allSettled(this.#working);
  }

  async #inTurn<Found>(
    runId: string,
    look: (source: RunSource) => Promise<Found | null>,
  ): Promise<Found | null> {
    const work = this.#turns.run(runId, async () => {
      this.#mayGoOn();
      const source = await this.#ports.findRun(runId);
      return source === null ? null : look(source);
    });
    this.#working.add(work);
    try {
      return await work;
    } catch (error) {
      if (error instanceof RunIsGone) return null;
      throw error;
    } finally {
      this.#working.delete(work);
    }
  }

  /** @throws HistoryUnavailable */
  #mayGoOn(): void {
    if (this.#isStopped) throw new HistoryUnavailable("The program is stopping; ask again when it is back.");
  }

  /**
   * The projection as far as this reading goes.
   *
   * @param check whether files are checked that are not to be written: they may have been touched
   */
  async #caughtUp(source: RunSource, check = false): Promise<Projection> {
    const { runId } = source;
    const known = this.#known.get(runId);
    const isUpToDate = known?.isUpToDate(source) ?? false;
    const isIntact = known === undefined || (isUpToDate && !check) || (await known.isIntact());
    if (known !== undefined && isUpToDate && isIntact) return known;
    return this.#few.run(async () => {
      try {
        if (!isIntact) await this.#forget(runId);
        const projection = this.#known.get(runId) ?? (await this.#open(source));
        await projection.catchUp(source, () => this.#mayGoOn());
        this.#keep(runId, projection);
        return projection;
      } catch (error) {
        this.#known.delete(runId);
        // The rows of a run that is removed go first.
        const isGone = error instanceof HistoryCut && (await this.#ports.findRun(runId)) === null;
        throw isGone ? new RunIsGone() : await this.#givenUp(runId, error);
      }
    });
  }

  #open({ runId, traceId, parentSpanId }: RunSource): Promise<Projection> {
    return Projection.open({ run: { runId, traceId, parentSpanId }, folder: this.#folder(runId) });
  }

  /** What is told of an error; a full disk gets back what was taken of it. */
  async #givenUp(runId: string, error: unknown): Promise<Error> {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!NO_ROOM.has(code)) return error as Error;
    await this.#forget(runId).catch(() => {});
    return new HistoryUnavailable(
      "The disk of SVC_HOME takes no more, so the run's events, logs and timeline cannot be written out. Free some space there, or delete jobs that are not needed any more; then ask again.",
    );
  }

  #keep(runId: string, projection: Projection): void {
    this.#known.delete(runId);
    this.#known.set(runId, projection);
    if (this.#known.size <= PROJECTIONS_KEPT) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
  }

  async #forget(runId: string): Promise<void> {
    this.#known.delete(runId);
    await rm(this.#folder(runId), { recursive: true, force: true });
  }

  #folder(runId: string): string {
    return join(this.#ports.home, "evidence", runId);
  }

  async #finalArtifact(runId: string): Promise<StoredArtifact | null> {
    const record = await this.#ports.records.finalArtifact(runId);
    if (record === null) return null;
    return { ...this.#file(record), artifactId: FINAL_ARTIFACT_ID, kind: "evidence" };
  }

  #file(record: ArtifactRecord): StoredArtifact {
    return {
      ...record,
      open: async (first, last) => {
        const bytes = await this.#ports.openBlob(record, first, last);
        if (bytes === null) throw Object.assign(new Error("The artifact was removed."), { code: "ENOENT" });
        return bytes;
      },
    };
  }
}
