// Every mutation, by the part of the program that it breaks.

import { askMutations } from "./ask.ts";
import { backupMutations } from "./backup.ts";
import { blueprintMutations } from "./blueprints.ts";
import { bundleMutations } from "./bundles.ts";
import { cliMutations } from "./cli.ts";
import { clusterMutations } from "./cluster.ts";
import { deploymentMutations } from "./deployments.ts";
import { doorMutations } from "./doors.ts";
import { drainMutations } from "./drain.ts";
import { engineMutations } from "./engine.ts";
import { executionMutations } from "./execution.ts";
import { filesMutations } from "./files.ts";
import { homesMutations } from "./homes.ts";
import { httpMutations } from "./http.ts";
import { launchMutations } from "./launch.ts";
import { modelMutations } from "./models.ts";
import type { Mutation } from "./mutation.ts";
import { nodeChangesMutations } from "./node-changes.ts";
import { nodesMutations } from "./nodes.ts";
import { postgresMutations } from "./postgres.ts";
import { reconcileMutations } from "./reconcile.ts";
import { resourceMutations } from "./resources.ts";
import { sandboxMutations } from "./sandbox.ts";
import { scheduleMutations } from "./schedules.ts";
import { serviceMutations } from "./services.ts";
import { servingMutations } from "./serving.ts";
import { sessionMutations } from "./sessions.ts";
import { sharedWorkMutations } from "./shared-work.ts";
import { simulatedGatewayMutations } from "./simulated-gateway.ts";
import { storeMutations } from "./store.ts";
import { triggerEventMutations } from "./trigger-events.ts";
import { turnMutations } from "./turns.ts";
import { webhookMutations } from "./webhooks.ts";

export const mutations: readonly Mutation[] = [
  ...engineMutations,
  ...executionMutations,
  ...modelMutations,
  ...sandboxMutations,
  ...storeMutations,
  ...filesMutations,
  ...homesMutations,
  ...postgresMutations,
  ...clusterMutations,
  ...nodesMutations,
  ...drainMutations,
  ...nodeChangesMutations,
  ...reconcileMutations,
  ...doorMutations,
  ...launchMutations,
  ...httpMutations,
  ...sessionMutations,
  ...bundleMutations,
  ...blueprintMutations,
  ...askMutations,
  ...backupMutations,
  ...cliMutations,
  ...resourceMutations,
  ...turnMutations,
  ...scheduleMutations,
  ...deploymentMutations,
  ...triggerEventMutations,
  ...webhookMutations,
  ...serviceMutations,
  ...servingMutations,
  ...sharedWorkMutations,
  ...simulatedGatewayMutations,
];
