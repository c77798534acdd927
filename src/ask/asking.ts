// Questions about a job, answered from its evidence. What was read of a run is kept with its index for the next
// question, and is read anew once the run, or the job, has changed.

import type { JobView, RunRecord } from "../launch/records.ts";
import { type Evidence, type EvidenceParts, readEvidence } from "./evidence.ts";
import type { Citation, EvidenceIndex } from "./evidence-index.ts";

/** Runs whose evidence is kept; the least recently asked about goes first. */
const KEPT_MAX = 16;

export const askLimits = { questionCharsMax: 1_000, earlierMax: 20 } as const;

export interface Question {
  readonly question: string;
  /** Ids that earlier answers have cited. */
  readonly earlier: readonly string[];
}

export interface Answer {
  readonly answer: string;
  readonly answered: boolean;
  readonly citations: readonly Citation[];
  /** Whether the evidence is more than what was searched. */
  readonly truncated: boolean;
}

interface Kept {
  readonly version: string;
  readonly evidence: Promise<Evidence>;
  /** Made for the first question. */
  index: Promise<EvidenceIndex> | null;
}

export class Asking {
  readonly #parts: EvidenceParts;
  /** Least recently used first. */
  readonly #kept = new Map<string, Kept>();

  constructor(parts: EvidenceParts) {
    this.#parts = parts;
  }

  /** @param run null: of the job alone. @throws DomainError as readEvidence does */
  evidence(job: JobView, run: RunRecord | null): Promise<Evidence> {
    return this.#of(job, run).evidence;
  }

  /** @throws DomainError as readEvidence does */
  async answer(job: JobView, run: RunRecord | null, { question, earlier }: Question): Promise<Answer> {
    const kept = this.#of(job, run);
    const { cut } = await kept.evidence;
    kept.index ??= indexOf(kept.evidence);
    const index = await kept.index;
    const citations = index.find(question, earlier);
    const answered = citations.length > 0;
    const truncated = index.isCut || cut.length > 0;
    const quotes = answered ? citations.map(({ quote }) => quote) : [NOT_THERE];
    return {
      answer: [...quotes, ...(truncated ? [`(Searched in part: ${limitsText(cut)}.)`] : [])].join("\n"),
      answered,
      citations,
      truncated,
    };
  }

  #of(job: JobView, run: RunRecord | null): Kept {
    const key = run?.runId ?? job.jobId;
    const version = versionOf(job, run);
    const before = this.#kept.get(key);
    this.#kept.delete(key);
    const kept = before?.version === version ? before : this.#read(key, version, job, run);
    this.#kept.set(key, kept);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT_MAX) break;
      this.#kept.delete(oldest);
    }
    return kept;
  }

  #read(key: string, version: string, job: JobView, run: RunRecord | null): Kept {
    const kept: Kept = { version, evidence: readEvidence(this.#parts, job, run), index: null };
    // A failure is not kept.
    kept.evidence.catch(() => {
      if (this.#kept.get(key) === kept) this.#kept.delete(key);
    });
    return kept;
  }
}

const NOT_THERE = "The evidence of this job does not hold this.";

/** The libraries for it are loaded with the first question. */
async function indexOf(evidence: Promise<Evidence>): Promise<EvidenceIndex> {
  const [{ EvidenceIndex }, { items }] = await Promise.all([import("./evidence-index.ts"), evidence]);
  return EvidenceIndex.of(items);
}

const limitsText = (cut: Evidence["cut"]) =>
  cut.length === 0 ? "the first passages" : cut.map(({ id, limit }) => `of ${id} ${limit}`).join("; ");

/** Changes with everything that evidence is made of. */
const versionOf = (job: JobView, run: RunRecord | null) =>
  JSON.stringify([
    job.revision,
    job.status,
    ...(run === null
      ? []
      : [run.status, run.updatedAtMs, run.progress.eventCount, run.label, run.openLetters]),
  ]);
