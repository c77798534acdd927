// The checks of a launch, each by itself; preparation.ts says which is made when.

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { JsonObject } from "../../engine/json.ts";
import type { RunSideCommand } from "../../execution/process/side-command.ts";
import { Semaphore } from "../../lib/async.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { ConfigurationUnreadable } from "../../security/configuration-decryption.ts";
import { secretPathsIn } from "../../security/secret-detection.ts";
import type { Findings } from "./findings.ts";
import { brokenRules } from "./input-rules.ts";
import { planFolders, type UsedFolder } from "./local-folders.ts";
import { copyPayload, payloadRoots, tryClone, workingFolder } from "./payload.ts";
import { type Machine, unmetRequirements } from "./requirements.ts";
import { type LaunchSubject, type ResolvedLaunch, withoutBlankInputs } from "./resolved-launch.ts";
import { inputProblems, schemaProblems } from "./schemas.ts";
import { type Validation, Validators, validatorsIn } from "./validators.ts";

/** Checks whose validators run at the same moment; those of preparations are as few as preparations are. */
const VALIDATIONS_AT_ONCE = 4;
/** A file of the package that is larger, and that the disk cannot clone, is not copied for a check. */
const COPIED_FOR_CHECK_BYTES_MAX = 64 * 1024 * 1024;
/** From this size on it is worth asking whether copies take room at all. */
const CLONE_WORTH_BYTES = 64 * 1024 * 1024;

export interface LaunchChecksParts extends Machine {
  /** The payloads/ folder of a snapshot. */
  readonly snapshotPayload: (fingerprint: string) => string;
  readonly secrets: ConfigurationSecrets;
  readonly sideCommand: RunSideCommand;
  readonly workerEnvPrefixes: readonly string[];
  readonly newId: () => string;
}

/** A launch that is being checked. */
export interface CheckedLaunch {
  readonly subject: LaunchSubject;
  readonly resolved: ResolvedLaunch;
  readonly findings: Findings;
  readonly signal: AbortSignal;
}

export class LaunchChecks {
  readonly #parts: LaunchChecksParts;
  readonly #validators: Validators;
  readonly #validations = new Semaphore(VALIDATIONS_AT_ONCE);

  constructor(parts: LaunchChecksParts) {
    this.#parts = parts;
    this.#validators = new Validators(parts.sideCommand, parts.workerEnvPrefixes);
  }

  /** The package's own payload; null for a blueprint that is not added. */
  payloadOf({ fingerprint }: LaunchSubject): string | null {
    return fingerprint === null ? null : this.#parts.snapshotPayload(fingerprint);
  }

  /** Validates the configuration and the inputs by the package's schemas. */
  schemas({ subject, resolved, findings }: CheckedLaunch): void {
    const { configuration, folders } = resolved;
    const { inputSchema, configSchema } = subject.description;
    if (configSchema !== null) {
      const place = { part: "configuration", path: "" } as const;
      findings.errors(schemaProblems(configSchema, configuration, place));
    }
    if (inputSchema === null) return;
    const inputs = withoutBlankInputs(subject.inputs, folders, configuration);
    const hasInitialInputs = subject.definition.graph.initialInputs.size > 0;
    findings.errors(inputProblems(inputSchema, inputs, hasInitialInputs));
  }

  /** Lists the folders that the launch takes along. @returns those that it uses */
  async folders({ subject, resolved, findings, signal }: CheckedLaunch): Promise<readonly UsedFolder[]> {
    const { configuration, folders: declared } = resolved;
    const { home } = this.#parts;
    const plan = await planFolders({
      declared,
      configuration,
      payload: this.payloadOf(subject),
      home,
      signal,
    });
    findings.add(plan);
    return plan.used;
  }

  /**
   * Checks a configuration by the package's rules.
   *
   * @param payload where relative paths are looked for; null: they are not judged
   */
  async rules(
    { subject, resolved, findings }: CheckedLaunch,
    configuration: JsonObject,
    payload: string | null,
  ): Promise<void> {
    const { graph } = subject.definition;
    const roots = payload === null ? [] : payloadRoots(payload, resolved.folders, graph);
    findings.errors(await brokenRules(subject.description.inputRules, configuration, roots));
  }

  /** Checks that the machine has what the package requires. */
  async requirements(
    { subject, findings }: Pick<CheckedLaunch, "subject" | "findings">,
    used: readonly UsedFolder[],
  ): Promise<void> {
    findings.unmet(await unmetRequirements(subject, await this.#bytesToCopy(used), this.#parts));
  }

  /** 0 when the disk can clone: a copy takes no room then. */
  async #bytesToCopy(used: readonly UsedFolder[]): Promise<number> {
    const scans = used.flatMap((folder) => (folder.kind === "native" ? [folder.scan] : []));
    const bytes = scans.reduce((sum, scan) => sum + scan.bytes, 0);
    if (bytes < CLONE_WORTH_BYTES) return bytes;
    const largest = scans
      .flatMap(({ files }) => files)
      .reduce((one, other) => (other.sizeBytes > one.sizeBytes ? other : one));
    const cloned = await this.#withTemporary("clone", (folder) =>
      tryClone(largest.source, join(folder, "probe")),
    );
    return cloned ? 0 : bytes;
  }

  /** Asks the package's validators about native paths, in a copy of its payload that is removed afterwards. */
  async validatorsOnNative(launch: CheckedLaunch, timeoutMs: number): Promise<void> {
    const { subject, resolved, signal } = launch;
    const payload = this.payloadOf(subject);
    if (payload === null || !(await this.hasValidators(subject))) return;
    await this.#validations.run(() =>
      this.#withTemporary("check", async (folder) => {
        const copy = join(folder, "payload");
        await copyPayload(payload, copy, { signal, linkFromBytes: COPIED_FOR_CHECK_BYTES_MAX });
        const given = { stage: "native", payload: copy, timeoutMs } as const;
        await this.#ask(launch, resolved.configuration, given);
      }),
    );
  }

  /** Asks them again, about the configuration that workers will be given, in the run's own payload. */
  async validatorsOnStaged(
    launch: CheckedLaunch,
    configuration: JsonObject,
    given: Pick<Validation, "payload" | "timeoutMs">,
  ): Promise<void> {
    await this.#ask(launch, configuration, { ...given, stage: "staged" });
  }

  async #ask(
    { subject, resolved, findings, signal }: CheckedLaunch,
    configuration: JsonObject,
    given: Pick<Validation, "stage" | "payload" | "timeoutMs">,
  ): Promise<void> {
    const opened = await this.openable(subject, configuration, findings);
    if (opened === null) return;
    const folder = workingFolder(given.payload, resolved.folders);
    await mkdir(folder, { recursive: true });
    const validation = { ...given, folder, configurationJson: opened.json, secrets: opened.secrets, signal };
    findings.add(await this.#validators.ask(await this.#validatorsOf(subject), validation));
  }

  /**
   * The configuration as workers are given it.
   * @returns null, and says why, when the machine lacks what it takes to open it
   */
  async openable({ definition }: LaunchSubject, configuration: JsonObject, findings: Findings) {
    const { secrets, runtimeEnv } = this.#parts;
    const paths = secretPathsIn(definition.manifest);
    try {
      const encrypted = JSON.stringify(secrets.encrypt(configuration, paths));
      return await secrets.decryptForWorker(encrypted, runtimeEnv);
    } catch (error) {
      if (!(error instanceof ConfigurationUnreadable)) throw error;
      findings.addUnreadable(error);
      return null;
    }
  }

  async hasValidators(subject: LaunchSubject): Promise<boolean> {
    return (await this.#validatorsOf(subject)).length > 0;
  }

  async #validatorsOf({ fingerprint }: LaunchSubject): Promise<readonly string[]> {
    return fingerprint === null ? [] : validatorsIn(this.#parts.snapshotPayload(fingerprint));
  }

  async #withTemporary<Result>(what: string, use: (folder: string) => Promise<Result>): Promise<Result> {
    const folder = join(this.#parts.home, "tmp", `${what}-${this.#parts.newId()}`);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    try {
      return await use(folder);
    } finally {
      await removeTree(folder);
    }
  }
}
