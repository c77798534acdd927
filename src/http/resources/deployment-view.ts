// A deployment as the API takes and shows it (CONTRACTS section 9).

import { COUNT_MAX, type DeploymentPatch, type NewDeployment } from "../../deployments/deployments.ts";
import { healthyOf } from "../../deployments/events.ts";
import { versionOf } from "../../deployments/health.ts";
import {
  type Deployment,
  type DeploymentSource,
  type DeploymentVersion,
  defaultStrategy,
  deploymentStatuses,
  type Instance,
  type Strategy,
  strategyKinds,
  VERSIONS_MAX,
} from "../../deployments/records.ts";
import { isoTime } from "../../engine/event.ts";
import { DomainError } from "../../lib/domain-error.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { type Static, Type } from "../core/type.ts";

const DAY_SECONDS = 86_400;
const seconds = (text: string, minimum: number) => Type.Integer(text, { minimum, maximum: DAY_SECONDS });

const of = defaultStrategy;
/** Without default values, which would be laid over what a change does not mention. */
export const StrategyInput = Type.Input(
  {
    kind: Type.OneOf(
      strategyKinds,
      "rolling (the default): one after the other. canary: some instances first. blue_green: a whole second set first.",
    ),
    max_parallel: Type.Integer(`Instances beyond count at a time. Default: ${of.maxParallel}.`, {
      minimum: 1,
      maximum: COUNT_MAX,
    }),
    canaries: Type.Integer(`Instances of the new version that serve first. Default: ${of.canaries}.`, {
      minimum: 1,
      maximum: COUNT_MAX,
    }),
    min_healthy_seconds: seconds(
      `How long an instance is healthy before it serves. Default: ${of.minHealthySeconds}.`,
      0,
    ),
    healthy_deadline_seconds: seconds(
      `An instance that is not healthy by then fails the rollout. Default: ${of.healthyDeadlineSeconds}.`,
      1,
    ),
    progress_deadline_seconds: seconds(
      `So long without an instance more that is healthy, and the rollout fails. Default: ${of.progressDeadlineSeconds}.`,
      1,
    ),
    auto_promote: Type.Boolean(
      `Whether it needs no promotion behind the canaries or the second set. Default: ${of.autoPromote}.`,
    ),
    auto_rollback: Type.Boolean(
      `Whether a rollout that fails goes back to the version before. Default: ${of.autoRollback}.`,
    ),
    drain_seconds: seconds(
      `How long an old instance goes on when it is not found by its name any more. Default: ${of.drainSeconds}.`,
      0,
    ),
  },
  { description: "How instances of one version are replaced by those of another." },
);

export const SourceInput = Type.Input(
  {
    bundle_id: Type.String("An uploaded bundle."),
    blueprint_id: Type.String("A blueprint of the catalog."),
  },
  {
    description:
      'What each instance is made of: exactly one of them, with "type": "service" in its manifest.',
  },
);

const Name = Type.String("For people.", { minLength: 1, maxLength: 200 });
const Count = Type.Integer("How many instances there are to be.", { minimum: 0, maximum: COUNT_MAX });
const Config = Type.JsonObject("Laid over the configuration of the source, as that of a job.", {
  language: "en",
});

export const CreateDeploymentBody = Type.Input(
  { name: Name, source: SourceInput, config: Config, count: Count, strategy: StrategyInput },
  {
    required: ["name", "source"],
    examples: [
      {
        name: "search",
        source: { bundle_id: "bundle_3f1c0a9d2b7e4856" },
        count: 3,
        strategy: { kind: "canary" },
      },
    ],
  },
);

export const UpdateDeploymentBody = Type.Input(
  { name: Name, source: SourceInput, config: Type.Nullable(Config), count: Count, strategy: StrategyInput },
  {
    description:
      'A JSON merge patch (RFC 7396): null takes a key of config away, "********" keeps the secret that is stored. Another source or config is a new version, and the rollout begins at once; count, strategy and name are not.',
    examples: [{ config: { language: "de" } }],
  },
);

const Source = Type.Object({
  bundle_id: Type.Optional(Type.String()),
  blueprint_id: Type.Optional(Type.String()),
});

const InstanceSchema = Type.Object({
  instance: Type.Integer("Its number among all that were ever started."),
  run_id: Type.String(),
  version: Type.Integer(),
  phase: Type.OneOf(
    ["starting", "serving", "draining", "stopping"],
    "Only one that serves is found by the names of its services.",
  ),
  health: Type.OneOf(
    ["passing", "critical", "unknown"],
    "That of its services; without any, passing while its run is running.",
  ),
  node: Type.Nullable(Type.String("Where its services are; null while that is not known.")),
  started_at: Type.Time("When its run was started."),
});

const VersionSchema = Type.Object({
  version: Type.Integer(),
  source: Source,
  config: Type.JsonObject("Secrets are masked."),
  job_id: Type.String("Whose runs its instances are."),
  has_succeeded: Type.Boolean("Whether all instances were of it once."),
  created_at: Type.Time("When it was deployed."),
});

export const DeploymentSchema = Type.Object(
  {
    deployment_id: Type.String({ examples: ["deployment_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    name: Type.String(),
    status: Type.OneOf(
      deploymentStatuses,
      "Of the rollout. In the last three it is over; instances that end are replaced nonetheless.",
    ),
    source: Source,
    config: Type.JsonObject("Of the version; secrets are masked."),
    version: Type.Integer("The version that all instances are to be of."),
    stable_version: Type.Nullable(Type.Integer("The one that all instances were of last; null: none yet.")),
    is_rolling_back: Type.Boolean(),
    count: Type.Integer(),
    strategy: Type.Object({
      kind: Type.OneOf(strategyKinds),
      max_parallel: Type.Integer(),
      canaries: Type.Integer(),
      min_healthy_seconds: Type.Integer(),
      healthy_deadline_seconds: Type.Integer(),
      progress_deadline_seconds: Type.Integer(),
      auto_promote: Type.Boolean(),
      auto_rollback: Type.Boolean(),
      drain_seconds: Type.Integer(),
    }),
    desired: Type.Integer("How many instances are to serve."),
    healthy: Type.Integer("How many serve and are healthy, of whatever version."),
    instances: Type.Array(InstanceSchema, "Until they have ended."),
    placement: Type.Record(Type.Integer(), "How many instances are on each node, as far as that is known."),
    versions: Type.Array(VersionSchema, `Oldest first; the last ${VERSIONS_MAX}.`),
    last_failure: Type.Nullable(
      Type.Object({
        at: Type.Time("When it was noticed."),
        version: Type.Integer(),
        reason: Type.String("For people."),
      }),
    ),
    last_event_id: Type.Integer("As Last-Event-ID of the event stream, it follows what happens from now on."),
    revision: Type.Integer(),
    created_at: Type.Time("When it was made."),
    updated_at: Type.Time("Last change of anything that is shown."),
  },
  "So many instances of a service graph, which are kept running and replaced without an outage.",
);

export function renderDeployment(deployment: Deployment, secrets: ConfigurationSecrets): string {
  const { versions, instances, lastFailure, count, version } = deployment;
  const current = versionOf(deployment, version);
  return JSON.stringify({
    deployment_id: deployment.deploymentId,
    name: deployment.name,
    status: deployment.status,
    source: current === undefined ? {} : shownSource(current.source),
    config: secrets.mask(current?.config ?? {}),
    version,
    stable_version: deployment.stable?.version ?? null,
    is_rolling_back: deployment.isRollingBack,
    count,
    strategy: shownStrategy(deployment.strategy),
    desired: count,
    healthy: healthyOf(deployment),
    instances: instances.map(shownInstance),
    placement: placementOf(instances),
    versions: versions.map((one) => shownVersion(one, secrets)),
    last_failure:
      lastFailure === null
        ? null
        : { at: isoTime(lastFailure.atMs), version: lastFailure.version, reason: lastFailure.reason },
    last_event_id: deployment.eventSeq,
    revision: deployment.revision,
    created_at: isoTime(deployment.createdAtMs),
    updated_at: isoTime(deployment.updatedAtMs),
  });
}

const shownSource = (source: DeploymentSource) =>
  source.kind === "bundle" ? { bundle_id: source.bundleId } : { blueprint_id: source.blueprintId };

const shownStrategy = (strategy: Strategy) => ({
  kind: strategy.kind,
  max_parallel: strategy.maxParallel,
  canaries: strategy.canaries,
  min_healthy_seconds: strategy.minHealthySeconds,
  healthy_deadline_seconds: strategy.healthyDeadlineSeconds,
  progress_deadline_seconds: strategy.progressDeadlineSeconds,
  auto_promote: strategy.autoPromote,
  auto_rollback: strategy.autoRollback,
  drain_seconds: strategy.drainSeconds,
});

const shownInstance = ({ number, runId, version, phase, health, node, startedAtMs }: Instance) => ({
  instance: number,
  run_id: runId,
  version,
  phase,
  health,
  node,
  started_at: isoTime(startedAtMs),
});

const shownVersion = (one: DeploymentVersion, secrets: ConfigurationSecrets) => ({
  version: one.version,
  source: shownSource(one.source),
  config: secrets.mask(one.config),
  job_id: one.jobId,
  has_succeeded: one.hasSucceeded,
  created_at: isoTime(one.createdAtMs),
});

function placementOf(instances: readonly Instance[]): Readonly<Record<string, number>> {
  const nodes = instances.flatMap(({ node }) => (node === null ? [] : [node]));
  return Object.fromEntries([...Map.groupBy(nodes, (node) => node)].map(([node, all]) => [node, all.length]));
}

/** @throws DomainError `validation_failed` */
export function newDeployment(body: Static<typeof CreateDeploymentBody>): NewDeployment {
  return {
    name: body.name,
    source: sourceOf(body.source),
    config: body.config ?? {},
    count: body.count ?? 1,
    strategy: strategyOf(body.strategy ?? {}, defaultStrategy),
  };
}

/** @throws DomainError `validation_failed` */
export function deploymentPatch(
  body: Static<typeof UpdateDeploymentBody>,
  before: Deployment,
): DeploymentPatch {
  return {
    ...(body.name !== undefined && { name: body.name }),
    ...(body.source !== undefined && { source: sourceOf(body.source) }),
    ...(body.config !== undefined && { config: body.config }),
    ...(body.count !== undefined && { count: body.count }),
    ...(body.strategy !== undefined && { strategy: strategyOf(body.strategy, before.strategy) }),
  };
}

function strategyOf(given: Static<typeof StrategyInput>, before: Strategy): Strategy {
  return {
    kind: given.kind ?? before.kind,
    maxParallel: given.max_parallel ?? before.maxParallel,
    canaries: given.canaries ?? before.canaries,
    minHealthySeconds: given.min_healthy_seconds ?? before.minHealthySeconds,
    healthyDeadlineSeconds: given.healthy_deadline_seconds ?? before.healthyDeadlineSeconds,
    progressDeadlineSeconds: given.progress_deadline_seconds ?? before.progressDeadlineSeconds,
    autoPromote: given.auto_promote ?? before.autoPromote,
    autoRollback: given.auto_rollback ?? before.autoRollback,
    drainSeconds: given.drain_seconds ?? before.drainSeconds,
  };
}

function sourceOf({
  bundle_id: bundleId,
  blueprint_id: blueprintId,
}: Static<typeof SourceInput>): DeploymentSource {
  if (bundleId !== undefined && blueprintId === undefined) return { kind: "bundle", bundleId };
  if (blueprintId !== undefined && bundleId === undefined) return { kind: "blueprint", blueprintId };
  const message = "exactly one of bundle_id and blueprint_id must be given";
  const code = bundleId === undefined ? "missing" : "not_allowed";
  throw new DomainError("validation_failed", `Invalid deployment: ${message}.`, [
    { path: "/source", code, message },
  ]);
}
