// Registered bundles: names for snapshots, taken from a folder on this machine or from a zip.
//
// B1. A record names a snapshot only after the snapshot is on disk; a crash in between leaves the old record.
// B2. A bundle's record changes by register and reload only; both for one id happen one after the other.
// B3. A job keeps the snapshot it was submitted with (it holds the fingerprint, not the id).
// B4. What is refused changes nothing.

import { basename, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { isoTime } from "../engine/event.ts";
import type { Graph } from "../engine/graph.ts";
import { isObject, type JsonObject } from "../engine/json.ts";
import { readDefinition } from "./definition.ts";
import { openFolder } from "./folder-source.ts";
import { bundleLimits, PAYLOADS_FOLDER } from "./layout.ts";
import { merged } from "./merge.ts";
import { BundleProblem, shown } from "./problem.ts";
import type { BundleOrigin, BundleRecord, BundleRecords } from "./records.ts";
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
}

/** What a submission needs of a bundle, all from one snapshot. */
export interface BundleLaunch {
  readonly graph: Graph;
  readonly manifestJson: string;
  readonly fingerprint: string;
  /** For SVC_BLUEPRINT_CONFIG_JSON; null when neither the bundle nor the caller has a configuration. */
  readonly configurationJson: string | null;
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

export class Bundles {
  readonly #records: BundleRecords;
  readonly #nowMs: () => number;
  readonly #uploadBytesMax: number;
  readonly #bytesMax: number;
  readonly #snapshots: Snapshots;
  readonly #turns = new Map<string, Promise<unknown>>();

  private constructor(options: BundlesOptions) {
    this.#records = options.records;
    this.#nowMs = options.nowMs;
    this.#uploadBytesMax = options.bundleBytesMax;
    this.#bytesMax = options.bundleBytesMax * bundleLimits.expansionMax;
    this.#snapshots = new Snapshots(resolve(options.home, "bundles"), this.#bytesMax);
  }

  /** Opens the folder of snapshots, and removes what a crash left there half-written. */
  static async open(options: BundlesOptions): Promise<Bundles> {
    const bundles = new Bundles(options);
    await bundles.#snapshots.open();
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
    return this.#inTurn(bundleId, async () =>
      this.#save(bundleId, { kind: "folder", path }, await this.#snapshotOfFolder(path)),
    );
  }

  /**
   * Registers an uploaded zip. Memory stays flat, whatever its size.
   *
   * @param request.file a path, or the upload itself, which is read to its end or destroyed
   * @param request.bundleId `bundle_` and the fingerprint's start when absent: same content, same id
   * @throws BundleProblem with everything that is wrong with the zip
   */
  async registerZip(request: {
    readonly file: string | Readable;
    readonly bundleId?: string;
  }): Promise<BundleRecord> {
    const { file } = request;
    const given = request.bundleId === undefined ? null : checkedId(request.bundleId);
    const snapshot = await this.#snapshots.withTemporary(async (folder) => {
      const path =
        typeof file === "string" ? file : await this.#snapshots.receive(file, folder, this.#uploadBytesMax);
      return this.#snapshots.take(await openZip(path, this.#bytesMax), folder);
    });
    const bundleId = given ?? `bundle_${snapshot.fingerprint.slice(0, FINGERPRINT_CHARS_IN_ID)}`;
    return this.#inTurn(bundleId, () => this.#save(bundleId, { kind: "zip" }, snapshot));
  }

  /**
   * Reads a bundle's folder again; later submissions use what it holds now.
   *
   * @returns null when no bundle of this id is registered
   * @throws BundleProblem when the folder has gone or is invalid now; the registered version stays
   */
  async reload(bundleId: string): Promise<BundleReload | null> {
    return this.#inTurn(bundleId, async () => {
      const before = await this.#records.get(bundleId);
      if (before === null) return null;
      if (before.source.kind === "zip") {
        const message = `Bundle ${bundleId} was uploaded as a zip, which does not change; upload a new one to replace it.`;
        return this.#reloadResult(before, before.fingerprint, { reloaded: false, message });
      }
      const { fingerprint } = await this.#save(
        bundleId,
        before.source,
        await this.#snapshotOfFolder(before.source.path),
      );
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

  /** In the order of their ids, those after `after`; null begins with the first. */
  list(page: { readonly limit: number; readonly after: string | null }): Promise<readonly BundleRecord[]> {
    return this.#records.list(page);
  }

  /** @returns where a snapshot's payloads are; the folder is there as long as the snapshot is */
  payloadFolder(fingerprint: string): string {
    return join(this.#snapshots.folder(fingerprint), PAYLOADS_FOLDER);
  }

  /**
   * Reads what a submission of this bundle needs.
   *
   * @param override laid over the bundle's own configuration, key by key
   * @returns null when no bundle of this id is registered
   * @throws BundleProblem when the snapshot has been removed or damaged from outside
   */
  async launch(bundleId: string, override: JsonObject): Promise<BundleLaunch | null> {
    const record = await this.#records.get(bundleId);
    if (record === null) return null;
    const { fingerprint } = record;
    const { graph, manifestJson, configuration } = await readDefinition(this.#snapshots.folder(fingerprint));
    const hasOverride = Object.keys(override).length > 0;
    const resolved = hasOverride ? merged(configuration ?? {}, override) : configuration;
    const configurationJson = resolved === null ? null : JSON.stringify(resolved);
    return { graph, manifestJson, fingerprint, configurationJson };
  }

  #snapshotOfFolder(path: string): Promise<Snapshot> {
    return this.#snapshots.withTemporary(async (folder) => {
      const limits = { bytesMax: this.#bytesMax, keepOut: this.#snapshots.root };
      return this.#snapshots.take(await openFolder(path, limits), folder);
    });
  }

  async #save(bundleId: string, source: BundleOrigin, snapshot: Snapshot): Promise<BundleRecord> {
    const { graph, manifest } = snapshot.definition;
    const nowMs = this.#nowMs();
    const before = await this.#records.get(bundleId);
    const record: BundleRecord = {
      bundleId,
      fingerprint: snapshot.fingerprint,
      graphId: graph.graphId,
      name: nameOf(manifest) ?? graph.jobName ?? graph.graphId,
      source,
      sizeBytes: snapshot.sizeBytes,
      createdAtMs: before?.createdAtMs ?? nowMs,
      updatedAtMs: nowMs,
    };
    await this.#records.save(record);
    return record;
  }

  /** Runs `work` when everything asked before about this bundle has ended (B2). */
  async #inTurn<Result>(bundleId: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#turns.get(bundleId) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#turns.set(bundleId, mine);
    try {
      return await mine;
    } finally {
      if (this.#turns.get(bundleId) === mine) this.#turns.delete(bundleId);
    }
  }
}

function checkedId(bundleId: string): string {
  if (BUNDLE_ID_PATTERN.test(bundleId) && !/^\.+$/.test(bundleId)) return bundleId;
  throw BundleProblem.of(
    "/bundle_id",
    "invalid_bundle_id",
    `the bundle_id ${shown(bundleId)} must have 1 to 128 letters, digits, ".", "_" or "-", and not dots alone; give one as bundle_id`,
  );
}

const NAME_CHARS_MAX = 200;

function nameOf(manifest: JsonObject): string | null {
  const { metadata } = manifest;
  const name = isObject(metadata) ? metadata.name : undefined;
  return typeof name === "string" && name !== "" ? name.slice(0, NAME_CHARS_MAX) : null;
}
