// Definitions: durable jobs, made from uploaded bundles or from blueprints of the catalog.
//
// - A definition holds the snapshot it was made from; what happens to the bundle or the blueprint later does not
//   change it. A blueprint that is not added yet is: until then, its job has no snapshot and is not ready.
// - A change names the revision it was made for; it lands on that revision or not at all.
// - A deleted job is invisible at once; what it leaves is removed in the background, also after a restart.

import type { Blueprints } from "../blueprints/blueprints.ts";
import type { Bundles } from "../bundles/bundles.ts";
import { extensionsOf } from "../bundles/definition.ts";
import { mergePatch } from "../bundles/merge.ts";
import { BundleProblem } from "../bundles/problem.ts";
import type { Graph } from "../engine/graph.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import { defaultTerms } from "../engine/share.ts";
import { DomainError, type DomainErrorEntry } from "../lib/domain-error.ts";
import type { Operation } from "../operations/records.ts";
import { WorkQueue } from "../operations/work-queue.ts";
import type { Capacity } from "../resources/capacity.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import { noPaths, type SecretPaths, secretPathsIn } from "../security/secret-detection.ts";
import { type FoundSource, findSource, invalidJob } from "./job-sources.ts";
import type { GatewayRecords, GatewayWrites, JobDefinition, JobSource, JobView } from "./records.ts";
import { jobNotFound, type Runs } from "./runs.ts";

const PURGE_PAGE = 50;
const FORCED_DELETE_ATTEMPTS = 5;

export interface DefinitionsParts {
  readonly records: GatewayRecords;
  readonly bundles: Bundles;
  readonly blueprints: Blueprints;
  readonly runs: Runs;
  readonly secrets: ConfigurationSecrets;
  readonly capacity: Pick<Capacity, "refuseUnsatisfiable">;
  readonly clock: Clock;
  readonly newId: () => string;
  /** Removes the files of rows that are gone. */
  readonly collectGarbage: () => Promise<void>;
  readonly log: EngineLog;
}

export interface JobRequest {
  readonly source: JobSource;
  /** Null: the source's own. */
  readonly name: string | null;
  readonly configuration: JsonObject;
  /** 1 when absent. */
  readonly weight?: number;
}

export interface CreatedJob {
  readonly job: JobView;
  /** The addition of its blueprint that it waits for. */
  readonly addition: Operation | null;
}

/** A checked request: the job as it will most likely be, and what is still to be done, in a transaction. */
export interface JobDraft {
  readonly job: JobDefinition;
  readonly graph: Graph;
  /** `Definitions.created` is to be called after its commit. @throws DomainError when the source has gone meanwhile */
  insert(writes: GatewayWrites): Promise<CreatedJob>;
}

export interface JobPatch {
  readonly name?: string;
  /** A JSON merge patch; null takes the whole configuration away. */
  readonly resolved_configuration?: JsonObject | null;
  readonly weight?: number;
}

export class Definitions {
  readonly #parts: DefinitionsParts;
  readonly #purging: WorkQueue;

  constructor(parts: DefinitionsParts) {
    this.#parts = parts;
    this.#purging = new WorkQueue({
      what: "the removal of what deleted jobs have left",
      keyName: "what",
      atOnceMax: 1,
      work: (_, signal) => this.#purge(signal),
      clock: parts.clock,
      log: parts.log,
    });
  }

  /**
   * Checks a request for a job; writes nothing.
   *
   * @throws DomainError `validation_failed` with every mistake; `conflict` when the bundle's content is gone;
   *   `resource_unsatisfiable`; `blueprint_busy`
   */
  async prepareCreate(request: JobRequest): Promise<JobDraft> {
    const { secrets } = this.#parts;
    const found = await findSource(this.#parts, request.source);
    const isFound = "settle" in found;
    const paths = isFound ? secretPathsIn(found.definition.manifest) : noPaths;
    const encrypted = await secrets.encryptGiven(request.configuration, {}, { paths });
    if (encrypted.kind === "invalid" || !isFound) {
      const ofSource = isFound ? [] : found;
      throw invalidJob([...(encrypted.kind === "invalid" ? encrypted.errors : []), ...ofSource]);
    }
    await this.#parts.capacity.refuseUnsatisfiable(found.definition.graph);
    return this.draft(found, { ...request, configuration: encrypted.value });
  }

  /** @param given.configuration with its secrets encrypted */
  draft(found: FoundSource, given: Pick<JobRequest, "name" | "configuration" | "weight">): JobDraft {
    const { graphId } = found.definition.graph;
    const nowMs = this.#parts.clock.nowMs();
    const job: JobDefinition = {
      jobId: `job_${this.#parts.newId()}`,
      name: given.name ?? found.name,
      status: found.fingerprint === null ? "preparing" : "ready",
      source: found.source,
      bundleFingerprint: found.fingerprint,
      graphId,
      configurationJson: JSON.stringify(given.configuration),
      weight: given.weight ?? defaultTerms.weight,
      extensions: extensionsOf(found.definition),
      revision: 1,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
    };
    return {
      job,
      graph: found.definition.graph,
      async insert(writes) {
        const { addition, ...settled } = await found.settle(writes);
        await writes.insertJob({ ...job, ...settled });
        return { job: { ...job, ...settled, latestRun: null, activeRuns: 0 }, addition };
      },
    };
  }

  /** To be called when the job is on disk: what it waits for is begun. */
  created({ addition }: CreatedJob): void {
    if (addition !== null) this.#parts.blueprints.begin(addition);
  }

  /**
   * Changes a job's name, weight or configuration (RFC 7396). `"********"` in place of a secret keeps the stored one.
   *
   * @param before the job as the caller saw it
   * @throws DomainError `validation_failed`; `precondition_failed` when it has changed since; `job_not_found`
   */
  async update(before: JobView, patch: JobPatch): Promise<JobView> {
    const { records, clock } = this.#parts;
    const job: JobDefinition = {
      ...before,
      name: patch.name ?? before.name,
      configurationJson: await this.#patched(before, patch.resolved_configuration),
      weight: patch.weight ?? before.weight,
      revision: before.revision + 1,
      updatedAtMs: Math.max(clock.nowMs(), before.updatedAtMs),
    };
    return records.write(async (writes) => {
      if (!(await writes.updateJob(job, before.revision))) throw await whyNot(writes, before.jobId);
      return { ...job, latestRun: before.latestRun, activeRuns: before.activeRuns };
    });
  }

  async #patched(before: JobDefinition, patch: JsonObject | null | undefined): Promise<string> {
    if (patch === undefined) return before.configurationJson;
    if (patch === null) return "{}";
    const stored = JSON.parse(before.configurationJson) as JsonObject;
    const { secrets } = this.#parts;
    // The patch is applied to what its author was shown, so that a secret it does not mention stays.
    const given = mergePatch(secrets.mask(stored), patch);
    const encrypted = await secrets.encryptGiven(given, stored, { paths: await this.#secretPathsOf(before) });
    if (encrypted.kind === "invalid") throw invalidJob(encrypted.errors);
    const json = JSON.stringify(encrypted.value);
    if (json.length > CONFIGURATION_CHARS_MAX) throw invalidJob([configurationTooLarge]);
    return json;
  }

  /** What the manifest of a job names as secret; nothing when its package is gone, so that it cannot run anyway. */
  async #secretPathsOf({ bundleFingerprint, source }: JobDefinition): Promise<SecretPaths> {
    const { bundles, blueprints } = this.#parts;
    try {
      if (bundleFingerprint !== null)
        return secretPathsIn((await bundles.definition(bundleFingerprint)).manifest);
      if (source.kind === "bundle") return noPaths;
      return secretPathsIn((await blueprints.forJob(source.blueprintId)).definition.manifest);
    } catch (error) {
      if (error instanceof BundleProblem || error instanceof DomainError) return noPaths;
      throw error;
    }
  }

  /**
   * Deletes a job with its runs and their files.
   *
   * @param before the job as the caller saw it
   * @param force cancels open runs first; without it they refuse the deletion
   * @throws DomainError `active_runs`, `precondition_failed`, `job_not_found`
   */
  async delete(before: JobView, { force }: { readonly force: boolean }): Promise<void> {
    const { records, runs } = this.#parts;
    const { jobId, revision } = before;
    for (let attempt = 1; ; attempt++) {
      const activeRuns = await records.write(async (writes) => {
        const job = await writes.job(jobId);
        if (job === null) throw jobNotFound(jobId);
        if (job.revision === revision && job.activeRuns > 0) return job.activeRuns;
        if (!(await writes.deleteJob(jobId, revision))) throw await whyNot(writes, jobId);
        return 0;
      });
      if (activeRuns === 0) break;
      if (!force || attempt > FORCED_DELETE_ATTEMPTS) throw hasActiveRuns(jobId, activeRuns);
      await runs.controlAll(jobId, "cancelled").catch((error: unknown) => {
        // They may have ended by themselves.
        if (!(error instanceof DomainError && error.code === "invalid_transition")) throw error;
      });
    }
    this.purge();
  }

  /** Removes what deleted jobs have left, in the background; also to be called at start. */
  purge(): void {
    this.#purging.add("deleted jobs");
  }

  /** Resolves when nothing of it is under way any more. */
  stop(): Promise<void> {
    return this.#purging.stop();
  }

  async #purge(signal: AbortSignal): Promise<void> {
    const { records, log } = this.#parts;
    try {
      let hasRemoved = false;
      // One small transaction after the other; the store lets others write in between.
      while (!signal.aborted && (await records.purgeDeleted(PURGE_PAGE))) hasRemoved = true;
      if (hasRemoved) await this.#parts.collectGarbage();
    } catch (error) {
      // The next housekeeping tries again: what makes this fail seldom passes within a second.
      log.warn({ error: String(error) }, "what deleted jobs have left could not be removed yet");
    }
  }
}

/** A patch is limited by its body; the result of many patches is limited here. */
const CONFIGURATION_CHARS_MAX = 8 * 1024 * 1024;

const configurationTooLarge: DomainErrorEntry = {
  path: "/resolved_configuration",
  code: "too_long",
  message: `the configuration would have more than ${CONFIGURATION_CHARS_MAX} characters; put large data into the bundle or the run's inputs`,
};

async function whyNot(writes: GatewayWrites, jobId: string): Promise<DomainError> {
  if ((await writes.job(jobId)) === null) return jobNotFound(jobId);
  return new DomainError(
    "precondition_failed",
    `Job ${jobId} has changed since this ETag was given. Get it again, look at what changed, and repeat the request with the new ETag.`,
  );
}

function hasActiveRuns(jobId: string, count: number): DomainError {
  return new DomainError(
    "active_runs",
    `Job ${jobId} has ${count} run${count === 1 ? "" : "s"} that ${count === 1 ? "has" : "have"} not ended. Cancel first, or delete with ?force=true, which cancels them.`,
  );
}
