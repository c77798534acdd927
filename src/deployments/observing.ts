// How the instances of a deployment are: their runs by the records, their services by the nodes that check them.

import type { Failure } from "../engine/failure.ts";
import type { ServiceFilter } from "../services/registry.ts";
import type { ServiceView } from "../services/service-view.ts";
import type { Services } from "../services/services.ts";
import { type Observed, versionOf } from "./health.ts";
import type { Deployment, DeploymentRecords, Health, InstanceRun } from "./records.ts";

const PAGE = 500;

export interface ObservingParts {
  readonly records: Pick<DeploymentRecords, "instanceRuns">;
  readonly services: Pick<Services, "list">;
}

export async function observe(
  { records, services }: ObservingParts,
  deployment: Deployment,
): Promise<Observed> {
  const runs = await records.instanceRuns(deployment.deploymentId);
  const used = new Set(deployment.instances.map(({ version }) => version));
  const offering = [...used].flatMap((version) => {
    const { jobId, services: declared } = versionOf(deployment, version) ?? { jobId: "", services: 0 };
    return declared === 0 ? [] : [jobId];
  });
  const views = await Promise.all(offering.map((jobId) => servicesOf(services, jobId)));
  const byRun = Map.groupBy(views.flat(), ({ runId }) => runId);
  const health = new Map(
    deployment.instances.map(({ runId, version }) => {
      const declared = versionOf(deployment, version)?.services ?? 0;
      const offered = byRun.get(runId) ?? [];
      const isRunning = runs.some((run) => run.runId === runId && run.status === "running");
      return [runId, { health: healthOf(declared, offered, isRunning), node: offered[0]?.node ?? null }];
    }),
  );
  const ended = new Map(runs.filter(({ hasEnded }) => hasEnded).map((run) => [run.runId, endOf(run)]));
  return { health, ended, refused: new Map() };
}

/** Without services it is healthy while its agents run. */
function healthOf(declared: number, offered: readonly ServiceView[], isRunning: boolean): Health {
  if (!isRunning) return "unknown";
  if (declared === 0) return "passing";
  if (offered.some(({ status }) => status === "critical")) return "critical";
  return offered.length >= declared ? "passing" : "unknown";
}

async function servicesOf(services: Pick<Services, "list">, jobId: string): Promise<readonly ServiceView[]> {
  const filter: ServiceFilter = { name: null, tags: [], status: null, runId: null, definitionId: jobId };
  const found: ServiceView[] = [];
  for (;;) {
    const last = found.at(-1);
    const after = last === undefined ? null : { name: last.name, serviceId: last.serviceId };
    const page = await services.list({ ...filter, limit: PAGE, after });
    found.push(...page.services.filter(({ definitionId }) => definitionId === jobId));
    if (page.services.length < PAGE) return found;
  }
}

function endOf({ status, failureJson }: InstanceRun): string {
  if (status === null) return "its run was deleted";
  if (failureJson === null) return `its run is ${status}`;
  return (JSON.parse(failureJson) as Failure).desc;
}
