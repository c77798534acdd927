// Where jobs are: the owner in a job's row, and the address at which the owner's node is reached.
//
// The rows of the nodes are read again when they are a second old, and when they lack an owner: it may have begun since.

import type { Clock } from "../engine/ports.ts";
import type { Head } from "./follower.ts";
import { isLiving, type NodeReads, type NodeRecord } from "./nodes.ts";
import type { JobPlace } from "./remote-control.ts";

const ROWS_FOR_MS = 1_000;

/** How far a job, or whatever else has events, is on disk. */
export interface JobHead {
  /** Null when no node holds it. */
  readonly owner: string | null;
  readonly seq: number;
  readonly isEnd: boolean;
}

/** A port, implemented in src/store. All throw JournalUnavailable. */
export interface JobHeads {
  /** Of an open job; null when there is none. */
  ownerOf(jobId: string): Promise<string | null>;
  /** The run whose job has this id, or would have had it; null when there is none. */
  runOf(jobId: string): Promise<string | null>;
  /** Of jobs, of runs that ended before their launch (by the ids that their jobs would have had), and of operations. */
  heads(ids: readonly string[]): Promise<ReadonlyMap<string, JobHead>>;
}

export interface PlacesParts {
  readonly jobs: JobHeads;
  readonly nodes: Pick<NodeReads, "present">;
  readonly clock: Pick<Clock, "steadyMs">;
}

export class Places {
  readonly #parts: PlacesParts;
  /** Those that are alive. */
  #living: readonly NodeRecord[] = [];
  /** By owner; null for those that are not alive, or that others cannot reach. */
  #addresses = new Map<string, string | null>();
  #readAtMs = Number.NEGATIVE_INFINITY;
  /** One reading at a time, for all who wait for it. */
  #reading: Promise<void> | null = null;

  constructor(parts: PlacesParts) {
    this.#parts = parts;
  }

  /** @returns null when there is no such open job */
  async placeOf(jobId: string): Promise<JobPlace | null> {
    const owner = await this.#parts.jobs.ownerOf(jobId);
    return owner === null ? null : { owner, address: await this.#addressOf(owner) };
  }

  async heads(ids: readonly string[]): Promise<ReadonlyMap<string, Head>> {
    const heads = new Map<string, Head>();
    for (const [id, { owner, seq, isEnd }] of await this.#parts.jobs.heads(ids)) {
      const address = owner === null || isEnd ? null : await this.#addressOf(owner);
      heads.set(id, { seq, isEnd, source: owner === null || address === null ? null : { owner, address } });
    }
    return heads;
  }

  /** The nodes that are alive, as they were a second ago at most. */
  async living(): Promise<readonly NodeRecord[]> {
    if (this.#isOld) await this.#read();
    return this.#living;
  }

  /** @returns null when the owner is not alive, or cannot be reached */
  async #addressOf(owner: string): Promise<string | null> {
    if (this.#isOld || !this.#addresses.has(owner)) {
      const isUnderWay = this.#reading !== null;
      await this.#read();
      // One that was under way may have begun before the owner did.
      if (isUnderWay && !this.#addresses.has(owner)) await this.#read();
    }
    const address = this.#addresses.get(owner) ?? null;
    if (address === null) this.#addresses.set(owner, null);
    return address;
  }

  get #isOld(): boolean {
    return this.#parts.clock.steadyMs() - this.#readAtMs >= ROWS_FOR_MS;
  }

  #read(): Promise<void> {
    this.#reading ??= this.#readRows().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #readRows(): Promise<void> {
    const readAtMs = this.#parts.clock.steadyMs();
    const present = await this.#parts.nodes.present();
    this.#living = present.filter(isLiving);
    this.#addresses = new Map(this.#living.map((node) => [node.owner, node.address]));
    this.#readAtMs = readAtMs;
  }
}
