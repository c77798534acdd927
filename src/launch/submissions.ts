// What is submitted to the runtime itself: a manifest, or a registered bundle with inputs and configuration.

import { scheduler } from "node:timers/promises";
import type { Bundles } from "../bundles/bundles.ts";
import type { Graph } from "../engine/graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { LARGE_JSON_CHARS } from "../engine/large-json.ts";
import { manifestProblemsText, manifestSteps } from "../engine/manifest.ts";
import { holdsSealed } from "../engine/sealed.ts";
import { defaultTerms, isPriority, isWeight, type Terms, WEIGHT_MAX } from "../engine/share.ts";
import type { Submission } from "../engine/submission.ts";
import { DomainError, type DomainErrorEntry } from "../lib/domain-error.ts";
import { inSlices } from "../lib/slices.ts";
import type { DeclaredModels } from "../models/serving/declared-models.ts";
import type { Capacity } from "../resources/capacity.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import { hasTooManySecrets, secretPathsIn, TOO_MANY_SECRETS } from "../security/secret-detection.ts";
import type { Services } from "../services/services.ts";
import { withInputs } from "./inputs.ts";

/** A submission, but for the trace of its caller. */
export type Untraced = Omit<Submission, "trace">;

export interface SubmissionParts {
  readonly bundles: Bundles;
  readonly secrets: ConfigurationSecrets;
  readonly services: Pick<Services, "unmet">;
  readonly capacity: Pick<Capacity, "refuseUnsatisfiable">;
  readonly declaredModels: Pick<DeclaredModels, "refuseUnserved">;
}

type ManifestParts = Omit<SubmissionParts, "bundles">;

const invalid = (message: string) => new DomainError("validation_failed", message);

/** What is wrong in many places of a submission, in one line. */
const invalidValues = (errors: readonly DomainErrorEntry[]) =>
  new DomainError(
    "validation_failed",
    errors.map(({ path, message }) => `${path} ${message}`).join("; "),
    errors,
  );

export interface BundleSubmission {
  readonly bundleId: string;
  readonly inputs: JsonValue | undefined;
  /** Laid over the bundle's own. */
  readonly config: JsonObject | undefined;
  readonly terms: Terms;
}

const KNOWN_MANIFESTS = 32;
const KNOWN_CHARS_MAX = 16 * 1024;

/**
 * Submissions by the text of their manifest, which many jobs repeat. Not those with secrets, which are encrypted anew each
 * time, and not those that require services or resources, which are looked for.
 */
let knownManifests = new Map<string, Untraced>();

/** What the same text was read as before; null when it is not known. */
export function knownManifest(text: string): Untraced | null {
  return text.length > KNOWN_CHARS_MAX ? null : (knownManifests.get(text) ?? null);
}

function remember(submission: Untraced): void {
  const { manifestJson, graph } = submission;
  if (manifestJson.length > KNOWN_CHARS_MAX || graph.requiredServices.length > 0 || dependsOnMachines(graph))
    return;
  if (knownManifests.size >= KNOWN_MANIFESTS) knownManifests = new Map();
  knownManifests.set(manifestJson, submission);
}

/**
 * A manifest. @param text the manifest as JSON
 *
 * @throws DomainError `validation_failed`; `requirements_not_met` when a service that it requires is not passing;
 *   `resource_unsatisfiable`
 */
export async function submittedManifest(
  parts: ManifestParts,
  given: JsonObject,
  text: string,
): Promise<Untraced> {
  const known = knownManifest(text);
  if (known !== null) return known;
  const terms = termsOf(given);
  const { secrets, services, capacity, declaredModels } = parts;
  // Looking through inputs of megabytes takes milliseconds, and so does what comes after each look.
  const isLarge = text.length >= LARGE_JSON_CHARS;
  const { initial_inputs: inputs } = given;
  let [manifest, manifestJson] = [given, text];
  if (isObject(inputs)) {
    const encrypted = await secrets.encryptAddressed(inputs, {
      at: "/initial_inputs",
      paths: secretPathsIn(given),
    });
    if (encrypted.kind === "invalid") throw invalidValues(encrypted.errors);
    if (isLarge) await scheduler.yield();
    if (holdsSealed(encrypted.value)) {
      manifest = { ...given, initial_inputs: encrypted.value };
      manifestJson = JSON.stringify(manifest);
    }
  }
  const parsed = await inSlices(manifestSteps(manifest));
  if (parsed.kind === "invalid") throw invalid(manifestProblemsText(parsed.problems));
  await capacity.refuseUnsatisfiable(parsed.graph);
  await declaredModels.refuseUnserved(parsed.graph);
  await requireServices(services, parsed.graph.requiredServices);
  if (isLarge) await scheduler.yield();
  const submission = {
    graph: parsed.graph,
    identity: null,
    manifestJson,
    bundleFingerprint: null,
    hasOwnPayload: false,
    configurationJson: null,
    ...terms,
  };
  if (manifest === given) remember(submission);
  return submission;
}

/**
 * A registered bundle, launched with its own manifest and configuration.
 *
 * @param held its snapshot is noted here, and is the caller's to release
 * @throws DomainError `bundle_not_found`, and as for a manifest
 */
export async function submittedBundle(
  { secrets, bundles, services, capacity, declaredModels }: SubmissionParts,
  { bundleId, inputs, config, terms }: BundleSubmission,
  held: string[],
): Promise<Untraced> {
  const launch = await bundles.launch(bundleId, config ?? {});
  if (launch === null) throw new DomainError("bundle_not_found", `Bundle ${bundleId} not found`);
  held.push(launch.fingerprint);
  const paths = secretPathsIn(launch.manifest);
  if (config !== undefined && hasTooManySecrets(config, paths)) throw invalid(`config ${TOO_MANY_SECRETS}`);
  const encryptedInputs = isObject(inputs) ? await secrets.encryptInputs(inputs, { paths }) : null;
  if (encryptedInputs?.kind === "invalid") throw invalidValues(encryptedInputs.errors);
  const answer = withInputs(
    secrets.withEncryptedInputs(launch.graph, paths),
    encryptedInputs?.value ?? inputs,
  );
  if (answer.kind === "invalid") throw invalid(answer.problems.join("; "));
  await capacity.refuseUnsatisfiable(answer.graph);
  await declaredModels.refuseUnserved(answer.graph);
  await requireServices(services, answer.graph.requiredServices);
  const { configuration } = launch;
  return {
    graph: answer.graph,
    identity: null,
    manifestJson: launch.manifestJson,
    bundleFingerprint: launch.fingerprint,
    hasOwnPayload: false,
    // What the journal keeps has no secret in plaintext.
    configurationJson: configuration === null ? null : JSON.stringify(secrets.encrypt(configuration, paths)),
    ...terms,
  };
}

/** @throws DomainError `validation_failed` */
export function termsOf(body: JsonObject): Terms {
  const { priority = defaultTerms.priority, weight = defaultTerms.weight } = body;
  const problems = [
    ...(isPriority(priority) ? [] : ["priority must be low, normal or high"]),
    ...(isWeight(weight) ? [] : [`weight must be a whole number from 1 to ${WEIGHT_MAX}`]),
  ];
  if (!isPriority(priority) || !isWeight(weight)) throw invalid(problems.join("; "));
  return { priority, weight };
}

const dependsOnMachines = ({ nodes }: Graph) =>
  nodes.some(({ config }) => config.kind === "executor" && (config.demand ?? config.llm) !== null);

async function requireServices(
  services: SubmissionParts["services"],
  required: Graph["requiredServices"],
): Promise<void> {
  const unmet = await services.unmet(required);
  if (unmet.length === 0) return;
  const reasons = unmet.map(({ reason }) => reason).join(" ");
  throw new DomainError(
    "requirements_not_met",
    `The graph requires services that are not passing. ${reasons}`,
  );
}
