// Launch preparation: from a requested run to the graph that the engine is given.
//
// A launch is checked twice. `check` runs before a run is accepted: on native paths, for 10 s at most, and it
// changes nothing. `prepare` runs once the run is there: it checks everything again, makes the run's own payload
// and its final configuration, and asks the package's rules and validators about the staged form.
//
// - What the user can fix is returned as problems, all at once; `check` does not throw for it.
// - A preparation leaves something only when it is whole: after a failure, an abort or a killed process nothing of it
//   counts, and preparing again starts from the beginning.
// - No secret is written as plaintext: validators get the configuration through their environment, and it is encrypted in
//   what comes back.
// - `isNeeded` finds the packages that need none of this; they cost nothing further.

import { join } from "node:path";
import type { PackageDescription } from "../../blueprints/package-description.ts";
import type { Graph } from "../../engine/graph.ts";
import type { JsonObject } from "../../engine/json.ts";
import { manifestProblemsText, manifestSteps } from "../../engine/manifest.ts";
import type { Clock } from "../../engine/ports.ts";
import { inSlices } from "../../lib/slices.ts";
import { OperationFailed } from "../../operations/failures.ts";
import { ConfigurationUnreadable } from "../../security/configuration-decryption.ts";
import { secretPathsIn } from "../../security/secret-detection.ts";
import { injectWebUi, NoRoomForWebUi, type WebUiPlace } from "../../web/inject.ts";
import { WEB_UI_PORT } from "../../web/ports.ts";
import { checkPage, writeWebUi } from "../../web/write-web-ui.ts";
import { type CheckedLaunch, LaunchChecks, type LaunchChecksParts } from "./checks.ts";
import { Findings, type LaunchCheck, PreparationFailed } from "./findings.ts";
import { type UsedFolder, withRuntimePaths } from "./local-folders.ts";
import { buildPayload, type PreparationProgress } from "./payload.ts";
import { findModel, type ModelPlaces, modelIdsOf, modelMissing, modelName } from "./requirements.ts";
import {
  declaresLaunch,
  type LaunchSubject,
  type ResolvedLaunch,
  resolveLaunch,
  withoutBlankInitialInputs,
  withoutBlankInputs,
} from "./resolved-launch.ts";
import { RunFolders, type RunFoldersParts } from "./run-folders.ts";

/** What CONTRACTS §6 allows before the answer. */
const CHECK_MS = 10_000;
/** Of that, what validators may have in all; the rest is for what comes before and after. */
const NATIVE_VALIDATORS_MS = 8_000;
const STAGED_VALIDATORS_MS = 60_000;
const ASKING_VALIDATORS = "Asking the package's validators";

/** What a prepared run is submitted with. */
export interface PreparedLaunch {
  readonly graph: Graph;
  readonly manifestJson: string;
  /** Secrets encrypted; null when there is none. */
  readonly configurationJson: string | null;
  readonly hasOwnPayload: boolean;
  /** Without values that are blank where a folder was staged. */
  readonly inputs: JsonObject;
}

export interface PreparingRun {
  readonly runId: string;
  readonly jobId: string;
  /** By label. */
  readonly ports: ReadonlyMap<string, number>;
  /**
   * Whether its package was there when the run was accepted. The validators of one that was not could not be asked about
   * native paths then, and are asked now.
   */
  readonly wasChecked: boolean;
}

export interface PreparationParts extends LaunchChecksParts, ModelPlaces, RunFoldersParts {
  /** Where the resources of a blueprint are now: absolute folders by name. */
  readonly resourceFolders: (blueprintId: string) => Promise<ReadonlyMap<string, string>>;
  /**
   * Makes the resources and models of an added blueprint where they are not yet.
   * @throws OperationFailed when one cannot be made
   */
  readonly bringAssets: (blueprintId: string, progress: PreparationProgress) => Promise<void>;
  readonly webUiPlace: WebUiPlace;
  readonly clock: Clock;
}

export class Preparation {
  readonly #parts: PreparationParts;
  readonly #folders: RunFolders;
  readonly #checks: LaunchChecks;
  /** Places of models' content that preparations under way have found, by run. */
  readonly #found = new Map<string, string[]>();

  constructor(parts: PreparationParts) {
    this.#parts = parts;
    this.#folders = new RunFolders(parts);
    this.#checks = new LaunchChecks(parts);
  }

  /**
   * Whether a launch has to be checked and prepared at all. The answer depends on the package, the job's configuration
   * and the run's overrides alone: without overrides it may be remembered per revision of a job.
   */
  async isNeeded(subject: LaunchSubject): Promise<boolean> {
    const { requirements, inputRules, inputSchema, configSchema, resources, models } = subject.description;
    const { cpuCores, memoryBytes, diskBytes, pools, ...lists } = requirements;
    const asked = [inputSchema, configSchema, cpuCores, memoryBytes, diskBytes];
    const declared = [inputRules, resources, models, Object.keys(pools), ...Object.values(lists)];
    return (
      asked.some((one) => one !== null) ||
      declared.some((list) => list.length > 0) ||
      declaresLaunch(subject) ||
      (await this.#checks.hasValidators(subject))
    );
  }

  /**
   * Checks a launch before its run is accepted. Takes 10 s at most: a check that is not done by then is an error of the code `check_timeout`.
   */
  async check(subject: LaunchSubject): Promise<LaunchCheck> {
    const findings = new Findings();
    const timeout = new AbortController();
    const late = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(CHECK_MS, () => {
      timeout.abort();
      late.resolve();
    });
    // Does not wait for a disk that does not answer.
    const work = this.#check(subject, findings, timeout.signal).catch((error: unknown) => {
      if (!timeout.signal.aborted) throw error;
    });
    await Promise.race([work, late.promise]).finally(cancel);
    if (timeout.signal.aborted) findings.addTimeout(CHECK_MS);
    return findings.result();
  }

  async #check(subject: LaunchSubject, findings: Findings, signal: AbortSignal): Promise<void> {
    const resolved = await this.#resolve(subject, findings);
    if (resolved === null) return;
    const checks = this.#checks;
    const launch: CheckedLaunch = { subject, resolved, findings, signal };
    await this.#checkRoomForWebUi(launch);
    checks.schemas(launch);
    const used = await checks.folders(launch);
    await checks.rules(launch, resolved.configuration, checks.payloadOf(subject));
    await checks.requirements(launch, used);
    await checks.openable(subject, resolved.configuration, findings);
    await checks.validatorsOnNative(launch, NATIVE_VALIDATORS_MS);
  }

  async #checkRoomForWebUi({ subject, resolved: { webUi }, findings }: CheckedLaunch): Promise<void> {
    if (webUi === null) return;
    const { blueprintId, definition } = subject;
    try {
      // Whatever run and port it will be: the answer is the same.
      const run = { webUi, port: 1, runId: "run", jobId: "job", blueprintId };
      injectWebUi(definition.manifest, run, this.#parts.webUiPlace);
      const payload = this.#checks.payloadOf(subject);
      if (payload !== null) await checkPage(payload, webUi);
    } catch (error) {
      if (!(error instanceof NoRoomForWebUi)) throw error;
      const { message } = error;
      findings.errors([{ part: "configuration", path: "/web_ui", code: "no_room_for_web_ui", message }]);
    }
  }

  async #resolve(subject: LaunchSubject, findings: Findings): Promise<ResolvedLaunch | null> {
    try {
      const resolved = await resolveLaunch(subject, this.#parts.secrets);
      findings.add(resolved);
      findings.webUi = resolved.webUi;
      findings.placed = resolved.placed;
      return resolved;
    } catch (error) {
      if (!(error instanceof ConfigurationUnreadable)) throw error;
      findings.addUnreadable(error);
      return null;
    }
  }

  /** The names of the services that a package requires and that are not passing, or were not a second ago. */
  async missingServices({ requirements }: PackageDescription): Promise<readonly string[]> {
    const unmet = await this.#parts.services.unmetLately(requirements.services);
    return unmet.map(({ service }) => service);
  }

  /**
   * Prepares a run that was accepted; may be asked again after whatever has happened to an earlier preparation.
   *
   * @throws PreparationFailed; ConfigurationUnreadable; the signal's reason when it is aborted; errors of the system
   */
  async prepare(
    run: PreparingRun,
    subject: LaunchSubject,
    progress: PreparationProgress,
  ): Promise<PreparedLaunch> {
    try {
      return await this.#prepare(run, subject, progress);
    } catch (error) {
      await this.#folders.discard(run.runId);
      progress.signal.throwIfAborted();
      throw error;
    } finally {
      this.#found.delete(run.runId);
    }
  }

  /** The models' content that runs read here, or are about to: by its place one of the runs. */
  async modelsRead(): Promise<ReadonlyMap<string, string>> {
    const read = new Map(await this.#folders.modelsRead());
    for (const [runId, places] of this.#found) for (const place of places) read.set(place, runId);
    return read;
  }

  async #prepare(
    run: PreparingRun,
    subject: LaunchSubject,
    progress: PreparationProgress,
  ): Promise<PreparedLaunch> {
    const payload = this.#checks.payloadOf(subject);
    if (payload === null) throw new Error("Only a package that is there can be launched.");
    const root = await this.#folders.begin(run.runId);
    progress.report("Checking the configuration");
    const resolved = await resolveLaunch(subject, this.#parts.secrets);
    const launch: CheckedLaunch = { subject, resolved, findings: new Findings(), signal: progress.signal };
    const used = await this.#checkNative(launch, run, progress);
    const hasOwnPayload = await this.#makePayload({ ...run, root, payload }, launch, used, progress);
    const own = hasOwnPayload ? join(root, "payload") : payload;
    const configuration = withRuntimePaths(resolved.configuration, used);
    await this.#checkStaged(launch, configuration, own, progress);
    const { graph, manifestJson } = await this.#graphOf(run, launch, own);
    progress.signal.throwIfAborted();
    if (hasOwnPayload) {
      progress.report("Writing the payload to disk");
      await this.#folders.finish(run.runId, progress.signal);
    } else await this.#folders.discard(run.runId);
    return { manifestJson, hasOwnPayload, ...this.#encrypted(launch, graph, configuration) };
  }

  /** Checks the launch as its user asked for it. @returns the folders that it uses */
  async #checkNative(
    launch: CheckedLaunch,
    { wasChecked }: PreparingRun,
    progress: PreparationProgress,
  ): Promise<readonly UsedFolder[]> {
    const { subject, resolved, findings } = launch;
    const checks = this.#checks;
    findings.errors(resolved.errors);
    checks.schemas(launch);
    findings.failIfAny("preparation.input_invalid");
    const used = await checks.folders(launch);
    await checks.requirements(launch, used);
    findings.failIfAny("preparation.folder_failed");
    if (!wasChecked && (await checks.hasValidators(subject))) {
      progress.report(ASKING_VALIDATORS);
      await checks.validatorsOnNative(launch, STAGED_VALIDATORS_MS);
      findings.failIfAny("preparation.input_invalid");
    }
    return used;
  }

  /** Makes the run's own payload, if the package's is not enough. @returns whether it was made */
  async #makePayload(
    { runId, root, payload }: { readonly runId: string; readonly root: string; readonly payload: string },
    { subject, resolved }: CheckedLaunch,
    used: readonly UsedFolder[],
    progress: PreparationProgress,
  ): Promise<boolean> {
    await this.#bringAssets(subject, progress);
    const resources = await this.#resourcesOf(subject);
    const models = await this.#modelsOf(runId, subject);
    const isNeeded =
      used.some(({ kind }) => kind === "native") ||
      resolved.webUi !== null ||
      resources.size + models.size > 0 ||
      (await this.#checks.hasValidators(subject));
    if (isNeeded) await buildPayload(root, { payload, used, resources, models }, progress);
    return isNeeded;
  }

  /** Checks the configuration that workers will be given, in the payload that they will have. */
  async #checkStaged(
    launch: CheckedLaunch,
    configuration: JsonObject,
    payload: string,
    progress: PreparationProgress,
  ): Promise<void> {
    const { subject, findings } = launch;
    await this.#checks.rules(launch, configuration, payload);
    await this.#checks.openable(subject, configuration, findings);
    if (await this.#checks.hasValidators(subject)) {
      progress.report(ASKING_VALIDATORS);
      const given = { payload, timeoutMs: STAGED_VALIDATORS_MS };
      await this.#checks.validatorsOnStaged(launch, configuration, given);
    }
    findings.failIfAny("preparation.input_invalid");
  }

  /** What is stored of the launch, its secrets encrypted. */
  #encrypted(
    { subject, resolved: { folders } }: CheckedLaunch,
    graph: Graph,
    configuration: JsonObject,
  ): Pick<PreparedLaunch, "graph" | "configurationJson" | "inputs"> {
    const { secrets } = this.#parts;
    const paths = secretPathsIn(subject.definition.manifest);
    const isEmpty = Object.keys(configuration).length === 0;
    const inputs = withoutBlankInputs(subject.inputs, folders, configuration);
    return {
      graph: secrets.withEncryptedInputs(withoutBlankInitialInputs(graph, folders, configuration), paths),
      configurationJson: isEmpty ? null : JSON.stringify(secrets.encrypt(configuration, paths)),
      inputs: secrets.encryptOwnInputs(inputs, paths),
    };
  }

  async #bringAssets(
    { blueprintId, description: { resources, models } }: LaunchSubject,
    progress: PreparationProgress,
  ): Promise<void> {
    if (blueprintId === null || resources.length + models.length === 0) return;
    try {
      await this.#parts.bringAssets(blueprintId, progress);
    } catch (error) {
      if (!(error instanceof OperationFailed)) throw error;
      throw new PreparationFailed("preparation.requirement_unmet", error.message);
    }
  }

  async #resourcesOf({ blueprintId, description }: LaunchSubject): Promise<ReadonlyMap<string, string>> {
    if (blueprintId === null || description.resources.length === 0) return new Map();
    const folders = await this.#parts.resourceFolders(blueprintId);
    // Some may be left of an older version of the package.
    return new Map([...folders].filter(([name]) => description.resources.some((one) => one.name === name)));
  }

  async #modelsOf(runId: string, subject: LaunchSubject): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    const places: string[] = [];
    this.#found.set(runId, places);
    for (const modelId of modelIdsOf(subject.description)) {
      const file = await findModel(modelId, subject, this.#parts);
      if (file === null) {
        const { message } = modelMissing(modelId, subject);
        throw new PreparationFailed("preparation.requirement_unmet", message);
      }
      places.push(file);
      found.set(modelName(modelId), file);
    }
    return found;
  }

  /** The graph, with the node of the web interface if there is one, whose files go into the payload. */
  async #graphOf(
    run: PreparingRun,
    { subject, resolved }: CheckedLaunch,
    payload: string,
  ): Promise<Pick<PreparedLaunch, "graph" | "manifestJson">> {
    const { graph, manifest, manifestJson } = subject.definition;
    const { webUi } = resolved;
    if (webUi === null) return { graph, manifestJson };
    const port = run.ports.get(WEB_UI_PORT);
    if (port === undefined) throw new Error(`The run ${run.runId} has no port for its web interface.`);
    try {
      const { blueprintId } = subject;
      const changed = injectWebUi(manifest, { ...run, webUi, port, blueprintId }, this.#parts.webUiPlace);
      await checkPage(payload, webUi);
      await writeWebUi(payload, manifest, webUi.title);
      const parsed = await inSlices(manifestSteps(changed));
      if (parsed.kind === "valid") return { graph: parsed.graph, manifestJson: JSON.stringify(changed) };
      throw new PreparationFailed("manifest.invalid", manifestProblemsText(parsed.problems));
    } catch (error) {
      if (error instanceof NoRoomForWebUi) throw new PreparationFailed("manifest.invalid", error.message);
      throw error;
    }
  }

  /** What was fetched for a run goes when it has ended. */
  keepUntilEnded(runId: string): Promise<void> {
    return this.#folders.keepUntilEnded(runId);
  }

  /** Removes what was prepared for a run that will not be launched; nothing happens when there is nothing. */
  discard(runId: string): Promise<void> {
    return this.#folders.discard(runId);
  }

  /** Removes what was prepared for runs that have ended meanwhile; to be called once after a start, beside launches. */
  sweep(): Promise<void> {
    return this.#folders.sweep();
  }
}
