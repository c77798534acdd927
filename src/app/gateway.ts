// The gateway's part of a running program: durable jobs, their runs, and their maintenance.

import { randomBytes } from "node:crypto";
import { DeploymentController } from "../deployments/controller.ts";
import { Deployments } from "../deployments/deployments.ts";
import { IDEMPOTENCY_MS, IdempotentRequests } from "../http/core/idempotency.ts";
import { Paging } from "../http/core/paging.ts";
import { Tickets } from "../http/core/tickets.ts";
import { Acceptance } from "../launch/acceptance.ts";
import { BlueprintLaunches } from "../launch/blueprint-launches.ts";
import { Definitions } from "../launch/definitions.ts";
import { DeployedRuns } from "../launch/deployed-runs.ts";
import { Housekeeping } from "../launch/housekeeping.ts";
import { LaunchPlans } from "../launch/launch-plans.ts";
import { Launcher } from "../launch/launcher.ts";
import { RunEndEvents } from "../launch/run-end-events.ts";
import { RunEnds } from "../launch/run-ends.ts";
import { Runs } from "../launch/runs.ts";
import { ScheduledRuns } from "../launch/scheduled-runs.ts";
import { KeyedMutex } from "../lib/async.ts";
import { RegisteredServables } from "../models/registered-servables.ts";
import type { Join } from "../nodes/joining.ts";
import { NodeChanges } from "../nodes/node-changes.ts";
import { DeploymentCounts } from "../observability/metrics/deployment-counts.ts";
import { ScheduleCounts } from "../observability/metrics/schedule-counts.ts";
import { Takeover } from "../operations/takeover.ts";
import type { Capacity } from "../resources/capacity.ts";
import { Scheduler } from "../schedules/scheduler.ts";
import { Schedules } from "../schedules/schedules.ts";
import { TriggerEvents } from "../schedules/trigger-events.ts";
import { Webhooks } from "../schedules/webhooks.ts";
import { Sessions } from "../security/sessions.ts";
import { sqlRecordCounter } from "../store/sql/definitions.ts";
import { sqlWorkOwners } from "../store/sql/work-owners.ts";
import { openBlueprints } from "./blueprints.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import type { Config } from "./config.ts";
import type { Core } from "./core.ts";
import { joinedOf } from "./joined.ts";
import { openModelServing } from "./model-serving.ts";
import { openModels } from "./models.ts";

export type Gateway = ReturnType<typeof openGateway>;

/** Durable jobs and their runs. They are maintained whatever API is served: their runs are the engine's. */
export function openGateway(
  config: Config,
  core: Core,
  { join, capacity }: { readonly join: Join; readonly capacity: Capacity },
) {
  const { bundles, engine, control, feed, secrets, store, ownership, gatewayRecords: records } = core;
  const { engineLog: log, webUiPorts } = core;
  const clock = systemClock;
  const opened = openBlueprints(config, core);
  const { blueprints, preparation } = opened;
  const models = openModels(core, opened);
  const serving = openModelServing(config, core, new RegisteredServables(opened.modelRecords, models));
  const ends = new RunEnds({ records, feed, clock });
  const plans = new LaunchPlans({ bundles, secrets, preparation });
  const turns = new KeyedMutex();
  const launcher = new Launcher({
    records,
    plans,
    preparation,
    blueprints: opened.blueprintRecords,
    ports: core.portRecords,
    webUiPorts,
    secrets,
    engine,
    control,
    ends,
    turns,
    ownership,
    clock,
    log,
  });
  const newId = systemRandomness.id;
  const newTraceId = () => randomBytes(16).toString("hex");
  const acceptance = new Acceptance({
    bundles,
    capacity,
    declaredModels: serving.declaredModels,
    plans,
    preparation,
    blueprints,
    webUiPorts,
    secrets,
    closed: () => engine.closed,
    clock,
  });
  const runs = new Runs({
    records,
    acceptance,
    launcher,
    turns,
    secrets,
    ownership,
    clock,
    newId,
    newTraceId,
  });
  const definitions = new Definitions({
    records,
    capacity,
    bundles,
    blueprints,
    runs,
    secrets,
    clock,
    newId,
    collectGarbage: async () => void (await core.cleanup.collectGarbage()),
    log,
  });
  // Runs of jobs that waited for their blueprint are to be launched, or fail.
  blueprints.onSettled((jobIds) => {
    for (const jobId of jobIds) launcher.settleSoon(jobId);
  });
  const { node } = core;
  const { sharedByNodes } = core.opened;
  const nodeChanges = new NodeChanges({
    records: opened.operationRecords,
    write: (work) => records.write(work),
    place:
      node === null || sharedByNodes === null
        ? { kind: "alone", join }
        : {
            kind: "node",
            cluster: {
              nodeId: node.nodeId,
              orders: node.orders,
              reads: sharedByNodes.reads,
              sealingKeyId: core.key.id,
              joined: joinedOf(core.home),
            },
          },
    ownership,
    feed,
    clock,
    newId,
    log,
  });
  const housekeeping = new Housekeeping({
    records,
    definitions,
    clock,
    log,
    idempotencyMs: IDEMPOTENCY_MS,
    operations: opened.operationRecords,
    retentionDays: config.retentionDays,
    forgetNodes: async () => core.opened.sharedByNodes?.forgetNodes(),
    takeDuty: (forMs) => core.takeDuty("housekeeping", forMs),
    sweepHome: async () => {
      await models.sweep();
      await blueprints.sweepAssets();
      // Of one that shares its records with nobody, what was prepared goes with the end of its run.
      if (ownership.owner() !== null) await preparation.sweep();
    },
  });
  const scheduledRuns = new ScheduledRuns({ acceptance, definitions, runs, launcher, secrets, clock });
  const scheduleCounts = new ScheduleCounts();
  const scheduler = new Scheduler({
    records,
    starts: scheduledRuns,
    closed: () => engine.closed,
    takeDuty: (forMs) => core.takeDuty("schedules", forMs),
    meter: scheduleCounts,
    onEnd: (ended) =>
      feed.subscribeAll((jobId, _firstSeq, _lines, isEnd) => {
        if (isEnd === true) ended(jobId);
      }),
    clock,
    log,
  });
  const schedules = new Schedules({
    records,
    starts: scheduledRuns,
    secrets,
    targetOf: (jobId) => scheduledRuns.targetOfJob(jobId),
    clock,
    newId,
  });
  const webhooks = new Webhooks({ records, secrets, nowMs: clock.nowMs });
  const triggerEvents = new TriggerEvents({ records, starts: scheduledRuns, clock, newId });
  const runEndEvents = new RunEndEvents({
    records,
    triggerEvents,
    emitted: (emitted) => scheduler.emitted(emitted),
    onEnd: (ended) =>
      feed.subscribeAll((_jobId, _firstSeq, _lines, isEnd) => {
        if (isEnd === true) ended();
      }),
    clock,
    log,
  });
  const deployedRuns = new DeployedRuns({
    definitions,
    runs,
    plans,
    launcher,
    nodes: async () => sharedByNodes?.reads.present() ?? [],
    ownership,
    tell: (address, runId) => node?.launches.tell(address, runId),
    clock,
  });
  const deploymentCounts = new DeploymentCounts();
  const deploymentController = new DeploymentController({
    records,
    meter: deploymentCounts,
    runs: deployedRuns,
    services: core.services,
    feed,
    closed: () => engine.closed,
    takeDuty: (forMs) => core.takeDuty("deployments", forMs),
    clock,
    log,
  });
  const deployments = new Deployments({
    records,
    draftVersion: (request) => deployedRuns.draftVersion(request),
    secrets,
    nowMs: () => deploymentController.nowMs(),
    clock,
    newId,
  });
  const takeover = new Takeover({
    ownership,
    closed: () => engine.closed,
    records: sqlWorkOwners(store.database),
    settle: async () => {
      await launcher.recover();
      await blueprints.recover();
      await models.recover();
      await serving.servings.recover();
      await nodeChanges.recover();
    },
    clock,
    log,
  });
  return {
    records,
    counter: sqlRecordCounter(core.database),
    storeProblem: () => store.problem(),
    ...opened,
    models,
    ...serving,
    nodeChanges,
    launches: new BlueprintLaunches({
      blueprints,
      definitions,
      runs,
      preparation,
      webUiPorts,
      secrets,
    }),
    definitions,
    runs,
    launcher,
    schedules,
    scheduler,
    triggerEvents,
    deployments,
    deploymentController,
    webhooks,
    scheduleCounts,
    deploymentCounts,
    scheduleTargets: scheduledRuns,
    idempotency: new IdempotentRequests({ records, nowMs: clock.nowMs }),
    sessions: new Sessions({
      records,
      key: core.key.derive("sessions"),
      apiTokens: config.apiTokens,
      nowMs: clock.nowMs,
      newId,
    }),
    tickets: new Tickets({ key: core.key.derive("tickets"), nowMs: clock.nowMs }),
    paging: new Paging({ key: core.key.derive("page tokens"), nowMs: clock.nowMs }),
    /** To be called when another program was lost, or this one has a new name. */
    programLost: () => takeover.lost(),
    async start() {
      await takeover.start();
      await launcher.recover();
      await blueprints.recover();
      await models.recover();
      await serving.servings.recover();
      await nodeChanges.recover();
      // What a predecessor has prepared for runs that have ended meanwhile; the start does not wait for this.
      preparation.sweep().catch((error: unknown) => {
        log.warn({ error: String(error) }, "preparation files of ended runs could not be removed yet");
      });
      housekeeping.start();
      scheduler.start();
      runEndEvents.start();
      deploymentController.start();
    },
    async stop() {
      await deploymentController.stop();
      await runEndEvents.stop();
      await scheduler.stop();
      await takeover.stop();
      await Promise.all([blueprints.stop(), models.stop(), serving.servings.stop(), nodeChanges.stop()]);
      await launcher.stop();
      await housekeeping.stop();
    },
  };
}
