// Registered bundles: names for snapshots, taken from a folder on this machine or from a zip.
//
// - A record names a snapshot only after the snapshot is on disk; a crash in between leaves the old record.
// - Registrations and reloads of one id are serialized. A received upload's record is saved by its receiver, in any
//   order: its id is derived from its content, so two records of one id are equal.
// - A job keeps the snapshot it was submitted with (it holds the fingerprint, not the id).
// - What is refused changes nothing.
// - An unreferenced snapshot is removed at once, or when the last submission that has read its record was stored or
//   refused.

import { createReadStream } from "node:fs";
import { basename, resolve } from "node:path";
import type { Readable } from "node:stream";
import { isoTime } from "../engine/event.ts";
import type { Graph } from "../engine/graph.ts";
import { isObject, type JsonObject } from "../engine/json.ts";
import { KeyedMutex } from "../lib/async.ts";
import { DomainError } from "../lib/domain-error.ts";
import { type Definition, DefinitionCache, readDefinition } from "./definition.ts";
import { openFolder } from "./folder-source.ts";
import { bundleLimits } from "./layout.ts";
import { memorySource } from "./memory-source.ts";
import { merged } from "./merge.ts";
import { BundleProblem, messagesOf, shown } from "./problem.ts";
import type { BundleOrigin, BundleRecord, BundleRecords } from "./records.ts";
import type { SharedFolders } from "./shared-folders.ts";
import { type Snapshot, Snapshots } from "./snapshots.ts";
import { openZip } from "./zip-source.ts";

export interface BundlesOptions {
  /** SVC_HOME; the snapshots lie in its folder `bundles`, which is made if needed. */
  readonly home: string;
  readonly records: BundleRecords;
  /** Wall time in ms since 1970. */
  readonly nowMs: () => number;
  /** SVC_BUNDLE_MAX_BYTES: bytes of an upload; a bundle's files may have 20 times as many. */
  readonly bundleBytesMax: number;
  /** SVC_BUNDLES_MAX_BYTES: bytes of all snapshots together; 0 for no limit. */
  readonly bundlesBytesMax: number;
  /** The store that several machines share; null, or absent: this machine has its own. */
  readonly shared?: SharedFolders | null;
}

/** What a submission needs of a bundle, all from one held snapshot: release it once the submission has ended. */
export interface BundleLaunch {
  readonly graph: Graph;
  readonly manifest: JsonObject;
  readonly manifestJson: string;
  readonly fingerprint: string;
  /** For SVC_BLUEPRINT_CONFIG_JSON; null when neither the bundle nor the caller has a configuration. */
  readonly configuration: JsonObject | null;
}

/** An upload whose content is stored and held, and whose record is not saved yet: release the snapshot afterwards. */
export interface ReceivedBundle {
  /** As it would be saved; a record of the same id has the same content, and keeps its time of creation. */
  readonly record: BundleRecord;
  /** Hex, of the zip's own bytes, not of its content. */
  readonly uploadSha256: string;
}

/** The spec's "Bundle reload result". */
export interface BundleReload {
  readonly bundle_id: string;
  readonly changed: boolean;
  /** Whether the source was read again; a bundle from a zip has none. */
  readonly reloaded: boolean;
  readonly previous_fingerprint: string;
  readonly current_fingerprint: string;
  readonly reason: "api_request";
  readonly message: string;
  readonly timestamp: string;
}

const BUNDLE_ID_PATTERN = /^[A-Za-z0-9._-]{1,128}$/;
const FINGERPRINT_CHARS_IN_ID = 16;
const DEFINITIONS_KEPT = 256;
const DEFINITION_CHARS_KEPT = 32 * 1024 * 1024;

export class Bundles {
  readonly #records: BundleRecords;
  readonly #nowMs: () => number;
  readonly #uploadBytesMax: number;
  readonly #bytesMax: number;
  /** Where holds on snapshots end, and unreferenced ones are removed. */
  readonly snapshots: Snapshots;
  readonly #definitions: DefinitionCache;
  readonly #turns = new KeyedMutex();
  /** Counts the records that dropped their snapshot. */
  #detached = 0;

  private constructor(options: BundlesOptions) {
    this.#records = options.records;
    this.#nowMs = options.nowMs;
    this.#uploadBytesMax = options.bundleBytesMax;
    this.#bytesMax = options.bundleBytesMax * bundleLimits.expansionMax;
    this.snapshots = new Snapshots(resolve(options.home, "bundles"), {
      bytesMax: this.#bytesMax,
      totalBytesMax: options.bundlesBytesMax,
      nowMs: options.nowMs,
      isNamed: (fingerprint) => options.records.isSnapshotNamed(fingerprint),
      shared: options.shared ?? null,
    });
    this.#definitions = new DefinitionCache({
      read: (fingerprint) => this.#readDefinition(fingerprint),
      entriesMax: DEFINITIONS_KEPT,
      charsMax: DEFINITION_CHARS_KEPT,
    });
  }

  /** Opens the folder of snapshots, and removes what a crash left there half-written. */
  static async open(options: BundlesOptions): Promise<Bundles> {
    const bundles = new Bundles(options);
    await bundles.snapshots.open();
    return bundles;
  }

  /**
   * Registers a folder on this machine, or registers it anew.
   *
   * @param request.path absolute
   * @param request.bundleId 1 to 128 of A-Z a-z 0-9 . _ -; the folder's name when absent
   * @throws BundleProblem with everything that is wrong with the folder
   */
  async registerFolder(request: {
    readonly path: string;
    readonly bundleId?: string;
  }): Promise<BundleRecord> {
    const { path } = request;
    const bundleId = checkedId(request.bundleId ?? basename(path));
    return this.#turns.run(bundleId, () => this.#registerFolder(bundleId, { kind: "folder", path }));
  }

  /**
   * Takes an uploaded zip in: checks it, and stores its content. Saves no record: the caller does, and then calls
   * `release`, which removes content without a record. Memory stays flat, whatever the zip's size.
   *
   * @param file a path, or the upload itself, which is read to its end or destroyed
   * @throws BundleProblem with everything that is wrong with the zip; of the code `upload_too_large` when it has more
   *   bytes than SVC_BUNDLE_MAX_BYTES. BundlesFull over SVC_BUNDLES_MAX_BYTES. Errors of the system (ENOSPC on a full disk) as they come. Nothing is kept then.
   */
  async receiveZip(file: string | Readable): Promise<ReceivedBundle> {
    return this.snapshots.withTemporary(async (folder) => {
      const upload = typeof file === "string" ? createReadStream(file) : file;
      const { path, sha256 } = await this.snapshots.receive(upload, folder, this.#uploadBytesMax);
      const source = await openZip(path, this.#bytesMax);
      const snapshot = await this.snapshots.take(source, folder, { isMarked: true });
      const bundleId = idOf(snapshot);
      return {
        record: recordOf(snapshot, { bundleId, source: { kind: "zip" }, nowMs: this.#nowMs() }),
        uploadSha256: sha256,
      };
    });
  }

  /**
   * Registers an uploaded zip.
   *
   * @param request.file as `receiveZip` takes it
   * @param request.bundleId `bundle_` and the fingerprint's start when absent: same content, same id
   * @throws as `receiveZip`
   */
  async registerZip(request: {
    readonly file: string | Readable;
    readonly bundleId?: string;
  }): Promise<BundleRecord> {
    const given = request.bundleId === undefined ? null : checkedId(request.bundleId);
    const { record } = await this.receiveZip(request.file);
    const bundleId = given ?? record.bundleId;
    try {
      return await this.#turns.run(bundleId, () => this.#save({ ...record, bundleId }));
    } finally {
      await this.snapshots.release(record.fingerprint);
    }
  }

  /**
   * Registers files that are at hand: the same files, the same id.
   *
   * @param files by relative path, as a folder would have them
   * @throws BundleProblem with everything that is wrong with them; BundlesFull
   */
  async registerFiles(files: ReadonlyMap<string, Buffer>): Promise<BundleRecord> {
    const snapshot = await this.snapshots.withTemporary((folder) =>
      this.snapshots.take(memorySource(files), folder, { isMarked: true }),
    );
    const bundleId = idOf(snapshot);
    const record = recordOf(snapshot, { bundleId, source: { kind: "zip" }, nowMs: this.#nowMs() });
    try {
      return await this.#turns.run(bundleId, () => this.#save(record));
    } finally {
      await this.snapshots.release(snapshot.fingerprint);
    }
  }

  /**
   * Reads a bundle's folder again; later submissions use what it holds now.
   *
   * @returns null when no bundle of this id is registered
   * @throws BundleProblem when the folder has gone or is invalid now; the registered version stays
   */
  async reload(bundleId: string): Promise<BundleReload | null> {
    return this.#turns.run(bundleId, async () => {
      const before = await this.#records.get(bundleId);
      if (before === null) return null;
      if (before.source.kind === "zip") {
        const message = `Bundle ${bundleId} was uploaded as a zip, which does not change; upload a new one to replace it.`;
        return this.#reloadResult(before, before.fingerprint, { reloaded: false, message });
      }
      const { fingerprint } = await this.#registerFolder(bundleId, before.source);
      const message =
        fingerprint === before.fingerprint
          ? `Bundle ${bundleId} was read again and has not changed.`
          : `Bundle ${bundleId} was reloaded: new submissions use the new version, running jobs keep theirs.`;
      return this.#reloadResult(before, fingerprint, { reloaded: true, message });
    });
  }

  #reloadResult(
    before: BundleRecord,
    fingerprint: string,
    { reloaded, message }: { reloaded: boolean; message: string },
  ): BundleReload {
    return {
      bundle_id: before.bundleId,
      changed: fingerprint !== before.fingerprint,
      reloaded,
      previous_fingerprint: before.fingerprint,
      current_fingerprint: fingerprint,
      reason: "api_request",
      message,
      timestamp: isoTime(this.#nowMs()),
    };
  }

  get(bundleId: string): Promise<BundleRecord | null> {
    return this.#records.get(bundleId);
  }

  /** @throws DomainError when no bundle of this id is registered */
  async existing(bundleId: string): Promise<BundleRecord> {
    const record = await this.#records.get(bundleId);
    if (record === null) throw notFound(bundleId);
    return record;
  }

  /** @throws DomainError when no bundle of this id is registered, or a job uses it */
  async delete(bundleId: string): Promise<void> {
    const record = await this.existing(bundleId);
    const outcome = await this.detach(record, () => this.#records.deleteUnused(bundleId));
    if (outcome === "missing") throw notFound(bundleId);
    if (outcome === "in_use") {
      throw new DomainError(
        "bundle_in_use",
        `Bundle ${bundleId} is used by at least one job. Delete those jobs first.`,
      );
    }
  }

  /** To be called before a record drops its reference to a snapshot; `release` it afterwards. */
  async holdForDetach(fingerprint: string): Promise<void> {
    await this.snapshots.holdMarked(fingerprint);
    this.#detached++;
  }

  /** Runs a change that drops a record's reference to its snapshot, and removes the snapshot if unreferenced. */
  async detach<Result>(record: BundleRecord, change: () => Promise<Result>): Promise<Result> {
    await this.holdForDetach(record.fingerprint);
    try {
      return await change();
    } finally {
      await this.snapshots.release(record.fingerprint);
    }
  }

  /**
   * Takes a folder in without a record of it. The caller stores the fingerprint within a day (snapshots.ts), and
   * calls `release`.
   *
   * @param path absolute
   * @throws BundleProblem with everything that is wrong with the folder; BundlesFull; errors of the system as they come
   */
  takeFolder(path: string): Promise<Snapshot> {
    return this.#takeFolder(path, { isMarked: false });
  }

  /** In the order of their ids, those after `after`; null begins with the first. */
  list(page: { readonly limit: number; readonly after: string | null }): Promise<readonly BundleRecord[]> {
    return this.#records.list(page);
  }

  /**
   * The content of a snapshot's JSON files. Cached: the same object may be returned again, so it must not be modified.
   *
   * @throws BundleProblem when the snapshot has been removed or damaged from outside
   */
  definition(fingerprint: string): Promise<Definition> {
    return this.#definitions.get(fingerprint);
  }

  /**
   * Reads what a submission of this bundle needs.
   *
   * @param override laid over the bundle's own configuration, key by key
   * @returns null when no bundle of this id is registered
   * @throws BundleProblem when the snapshot has been removed or damaged from outside
   */
  async launch(bundleId: string, override: JsonObject): Promise<BundleLaunch | null> {
    const record = await this.#held(bundleId);
    if (record === null) return null;
    const { fingerprint } = record;
    const { graph, manifest, manifestJson, configuration } = await this.definition(fingerprint).catch(
      async (error) => {
        await this.snapshots.release(record.fingerprint);
        throw error;
      },
    );
    const hasOverride = Object.keys(override).length > 0;
    const resolved = hasOverride ? merged(configuration ?? {}, override) : configuration;
    return { graph, manifest, manifestJson, fingerprint, configuration: resolved };
  }

  /** A bundle's record, with its snapshot held. It is read again when a record dropped its snapshot meanwhile. */
  async #held(bundleId: string): Promise<BundleRecord | null> {
    for (;;) {
      const before = this.#detached;
      const record = await this.#records.get(bundleId);
      if (record === null) return null;
      if (this.#detached !== before) continue;
      this.snapshots.hold(record.fingerprint);
      return record;
    }
  }

  async #readDefinition(fingerprint: string): Promise<Definition> {
    await this.snapshots.ensure(fingerprint);
    try {
      return await readDefinition(this.snapshots.folder(fingerprint));
    } catch (error) {
      if (!(error instanceof BundleProblem)) throw error;
      throw new BundleProblem(
        error.problems,
        `The stored content of the bundle has been removed or damaged from outside (${messagesOf(error.problems)}). Remove what is left of bundles/${fingerprint} in SVC_HOME, and register the bundle again.`,
      );
    }
  }

  async #registerFolder(
    bundleId: string,
    source: Extract<BundleOrigin, { kind: "folder" }>,
  ): Promise<BundleRecord> {
    const snapshot = await this.#takeFolder(source.path, { isMarked: true });
    try {
      return await this.#save(recordOf(snapshot, { bundleId, source, nowMs: this.#nowMs() }));
    } finally {
      await this.snapshots.release(snapshot.fingerprint);
    }
  }

  #takeFolder(path: string, options: { readonly isMarked: boolean }): Promise<Snapshot> {
    return this.snapshots.withTemporary(async (folder) => {
      const limits = { bytesMax: this.#bytesMax, keepOut: this.snapshots.root };
      return this.snapshots.take(await openFolder(path, limits), folder, options);
    });
  }

  /** @returns the record as it was saved: it keeps the time of creation of one with the same id */
  async #save(record: BundleRecord): Promise<BundleRecord> {
    const before = await this.#records.get(record.bundleId);
    const saved = { ...record, createdAtMs: before?.createdAtMs ?? record.createdAtMs };
    const save = () => this.#records.save(saved);
    if (before === null || before.fingerprint === record.fingerprint) await save();
    else await this.detach(before, save);
    return saved;
  }
}

const idOf = ({ fingerprint }: Snapshot) => `bundle_${fingerprint.slice(0, FINGERPRINT_CHARS_IN_ID)}`;

function recordOf(
  { fingerprint, sizeBytes, definition: { graph, manifest } }: Snapshot,
  given: { readonly bundleId: string; readonly source: BundleOrigin; readonly nowMs: number },
): BundleRecord {
  return {
    bundleId: given.bundleId,
    fingerprint,
    graphId: graph.graphId,
    name: nameOf(manifest) ?? graph.jobName ?? graph.graphId,
    source: given.source,
    sizeBytes,
    createdAtMs: given.nowMs,
    updatedAtMs: given.nowMs,
  };
}

function checkedId(bundleId: string): string {
  if (BUNDLE_ID_PATTERN.test(bundleId) && !/^\.+$/.test(bundleId)) return bundleId;
  throw BundleProblem.of(
    "/bundle_id",
    "invalid_bundle_id",
    `the bundle_id ${shown(bundleId)} must have 1 to 128 letters, digits, ".", "_" or "-", and not dots alone; give one as bundle_id`,
  );
}

function notFound(bundleId: string): DomainError {
  return new DomainError(
    "bundle_not_found",
    `Bundle ${bundleId} was not found. List the bundles to find its id.`,
  );
}

const NAME_CHARS_MAX = 200;

function nameOf(manifest: JsonObject): string | null {
  const { metadata } = manifest;
  const name = isObject(metadata) ? metadata.name : undefined;
  return typeof name === "string" && name !== "" ? name.slice(0, NAME_CHARS_MAX) : null;
}
