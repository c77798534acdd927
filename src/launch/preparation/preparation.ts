// Launch preparation: what stands between a run that is asked for and a graph that the engine is given.
//
// A launch is looked at twice. `check` is asked before a run is accepted: on native paths, for 10 s at most, and it
// changes nothing. `prepare` is asked once the run is there: it looks at everything again, makes the run's own payload
// and its final configuration, and asks the package's rules and validators about the staged form.
//
// N1. What can be mended by the user comes back as problems, all at once; `check` throws for nothing of that.
// N2. A preparation leaves something only when it is whole: after a failure, an abort or a killed process nothing of it
//     counts, and preparing again begins anew.
// N3. No secret is written in clear: the configuration goes to validators through their environment, and is sealed in
//     what comes back.
// N4. Packages that need none of this are told by `isNeeded`, and cost nothing further.

import { join } from "node:path";
import type { PackageDescription } from "../../blueprints/package-description.ts";
import type { Graph } from "../../engine/graph.ts";
import type { JsonObject } from "../../engine/json.ts";
import { manifestProblemsText, parseManifest } from "../../engine/manifest.ts";
import type { Clock } from "../../engine/ports.ts";
import { ConfigurationUnreadable } from "../../security/open-configuration.ts";
import { secretPathsIn } from "../../security/secret-paths.ts";
import { injectWebUi, NoRoomForWebUi, type WebUiPlace } from "../../web/inject.ts";
import { WEB_UI_PORT } from "../../web/ports.ts";
import { checkPage, writeWebUi } from "../../web/write-web-ui.ts";
import { Examination, type ExaminationParts, type Examined } from "./examination.ts";
import { Findings, type LaunchCheck, PreparationFailed } from "./findings.ts";
import { withRuntimePaths } from "./local-folders.ts";
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

/** What a prepared run is submitted with. */
export interface PreparedLaunch {
  readonly graph: Graph;
  readonly manifestJson: string;
  /** Sealed; null when there is none. */
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
  readonly wasExamined: boolean;
}

export interface PreparationParts extends ExaminationParts, ModelPlaces, RunFoldersParts {
  /** Where the resources of a blueprint are now: absolute folders by name. */
  readonly resourceFolders: (blueprintId: string) => Promise<ReadonlyMap<string, string>>;
  readonly webUiPlace: WebUiPlace;
  readonly clock: Clock;
}

export class Preparation {
  readonly #parts: PreparationParts;
  readonly #folders: RunFolders;
  readonly #examination: Examination;

  constructor(parts: PreparationParts) {
    this.#parts = parts;
    this.#folders = new RunFolders(parts);
    this.#examination = new Examination(parts);
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
      (await this.#examination.validatorsOf(subject)).length > 0
    );
  }

  /**
   * Says what stands against a launch, before a run is accepted. Takes 10 s at most: what could not be looked at by
   * then is an error of the code `check_timeout`.
   */
  async check(subject: LaunchSubject): Promise<LaunchCheck> {
    const findings = new Findings();
    const timeout = new AbortController();
    const late = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(CHECK_MS, () => {
      timeout.abort();
      late.resolve();
    });
    // A disk that does not answer holds nobody up.
    const work = this.#check(subject, findings, timeout.signal).catch((error: unknown) => {
      if (!timeout.signal.aborted) throw error;
    });
    await Promise.race([work, late.promise]).finally(cancel);
    if (timeout.signal.aborted) findings.addTimeout(CHECK_MS);
    return findings.result();
  }

  async #check(subject: LaunchSubject, findings: Findings, signal: AbortSignal): Promise<void> {
    const resolved = this.#resolve(subject, findings);
    if (resolved === null) return;
    const examination = this.#examination;
    const examined: Examined = { subject, resolved, findings, signal };
    await this.#checkRoomForWebUi(examined);
    await examination.schemas(examined);
    const used = await examination.folders(examined);
    await examination.rules(examined, resolved.configuration, examination.payloadOf(subject));
    await examination.requirements(examined, used);
    examination.openable(subject, resolved.configuration, findings);
    await examination.validatorsOnNative(examined, NATIVE_VALIDATORS_MS);
  }

  async #checkRoomForWebUi({ subject, resolved: { webUi }, findings }: Examined): Promise<void> {
    if (webUi === null) return;
    const { blueprintId, definition } = subject;
    try {
      // Whatever run and port it will be: the answer is the same.
      const run = { webUi, port: 1, runId: "run", jobId: "job", blueprintId };
      injectWebUi(definition.manifest, run, this.#parts.webUiPlace);
      const payload = this.#examination.payloadOf(subject);
      if (payload !== null) await checkPage(payload, webUi);
    } catch (error) {
      if (!(error instanceof NoRoomForWebUi)) throw error;
      const { message } = error;
      findings.errors([{ part: "configuration", path: "/web_ui", code: "no_room_for_web_ui", message }]);
    }
  }

  #resolve(subject: LaunchSubject, findings: Findings): ResolvedLaunch | null {
    try {
      const resolved = resolveLaunch(subject, this.#parts.secrets);
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

  /** The names of the services that a package requires and that are not passing at this moment. */
  missingServices({ requirements }: PackageDescription): readonly string[] {
    return this.#parts.unmetServices(requirements.services).map(({ service }) => service);
  }

  /**
   * Prepares a run that was accepted; may be asked again after whatever has happened to an earlier preparation (N2).
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
    }
  }

  async #prepare(
    run: PreparingRun,
    subject: LaunchSubject,
    progress: PreparationProgress,
  ): Promise<PreparedLaunch> {
    const examination = this.#examination;
    const payload = examination.payloadOf(subject);
    if (payload === null) throw new Error("Only a package that is there can be launched.");
    const root = await this.#folders.begin(run.runId);
    progress.report("Checking the configuration");
    const resolved = resolveLaunch(subject, this.#parts.secrets);
    const examined: Examined = { subject, resolved, findings: new Findings(), signal: progress.signal };
    const { findings } = examined;
    findings.errors(resolved.errors);
    await examination.schemas(examined);
    findings.failIfAny("preparation.input_invalid");
    const used = await examination.folders(examined);
    await examination.requirements(examined, used);
    findings.failIfAny("preparation.folder_failed");
    const hasValidators = (await examination.validatorsOf(subject)).length > 0;
    if (hasValidators && !run.wasExamined) {
      progress.report("Asking the package's validators");
      await examination.validatorsOnNative(examined, STAGED_VALIDATORS_MS);
      findings.failIfAny("preparation.input_invalid");
    }

    const configuration = withRuntimePaths(resolved.configuration, used);
    const resources = await this.#resourcesOf(subject);
    const takesFolders = used.some(({ kind }) => kind === "native");
    const models = await this.#modelsOf(subject);
    const links = resources.size + models.size > 0;
    const hasOwnPayload = takesFolders || resolved.webUi !== null || links || hasValidators;
    if (hasOwnPayload) await buildPayload(root, { payload, used, resources, models }, progress);
    const own = hasOwnPayload ? join(root, "payload") : payload;
    await examination.rules(examined, configuration, own);
    examination.openable(subject, configuration, findings);
    if (hasValidators) {
      progress.report("Asking the package's validators");
      const given = { payload: own, timeoutMs: STAGED_VALIDATORS_MS };
      await examination.validatorsOnStaged(examined, configuration, given);
    }
    findings.failIfAny("preparation.input_invalid");
    const launch = await this.#graphOf(run, examined, own);
    progress.signal.throwIfAborted();
    if (hasOwnPayload) {
      progress.report("Writing the payload to disk");
      await this.#folders.finish(run.runId, progress.signal);
    } else await this.#folders.discard(run.runId);
    const { secrets } = this.#parts;
    const paths = secretPathsIn(subject.definition.manifest);
    const graph = withoutBlankInitialInputs(launch.graph, resolved.folders, configuration);
    const isEmpty = Object.keys(configuration).length === 0;
    return {
      graph: secrets.withSealedInputs(graph, paths),
      manifestJson: launch.manifestJson,
      configurationJson: isEmpty ? null : JSON.stringify(secrets.seal(configuration, paths)),
      hasOwnPayload,
      inputs: secrets.sealOwnInputs(
        withoutBlankInputs(subject.inputs, resolved.folders, configuration),
        paths,
      ),
    };
  }

  async #resourcesOf({ blueprintId, description }: LaunchSubject): Promise<ReadonlyMap<string, string>> {
    if (blueprintId === null || description.resources.length === 0) return new Map();
    const folders = await this.#parts.resourceFolders(blueprintId);
    // Some may be left of an older version of the package.
    return new Map([...folders].filter(([name]) => description.resources.some((one) => one.name === name)));
  }

  async #modelsOf(subject: LaunchSubject): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    for (const modelId of modelIdsOf(subject.description)) {
      const file = await findModel(modelId, subject, this.#parts);
      if (file === null) {
        const { message } = modelMissing(modelId, subject);
        throw new PreparationFailed("preparation.requirement_unmet", message);
      }
      found.set(modelName(modelId), file);
    }
    return found;
  }

  /** The graph, with the node of the web interface if there is one, whose files go into the payload. */
  async #graphOf(
    run: PreparingRun,
    { subject, resolved }: Examined,
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
      const parsed = parseManifest(changed);
      if (parsed.kind === "valid") return { graph: parsed.graph, manifestJson: JSON.stringify(changed) };
      throw new PreparationFailed("manifest.invalid", manifestProblemsText(parsed.problems));
    } catch (error) {
      if (error instanceof NoRoomForWebUi) throw new PreparationFailed("manifest.invalid", error.message);
      throw error;
    }
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
