// A service as both APIs show it.

import { isoTime } from "../../engine/event.ts";
import { addressOf } from "../../services/check.ts";
import type { ServiceView } from "../../services/instance.ts";

/** How an API names whose service it is; null: it does not know them. */
export interface ServiceOwner {
  readonly jobId: string | null;
  readonly runId: string | null;
}

export interface ServiceRendering {
  readonly owner: ServiceOwner;
  /** The machine that it runs on. */
  readonly nodeName: string;
  /** What a browser is given; null: nothing. */
  readonly publicUrl: string | null;
}

export function renderService(view: ServiceView, { owner, nodeName, publicUrl }: ServiceRendering) {
  const { spec, agentId, status, checks } = view;
  const identity = { run_id: owner.runId, job_id: owner.jobId, node: nodeName };
  return {
    service_id: view.serviceId,
    name: spec.name,
    status,
    tags: spec.tags,
    meta: { ...spec.meta, ...(publicUrl !== null && { public_url: publicUrl }), ...identity },
    address: addressOf(view),
    port: spec.port,
    public_url: publicUrl,
    ...identity,
    agent_id: agentId,
    checks: checks.map(({ check, status: ofCheck, failures, output, checkedAtMs }) => ({
      name: check.name,
      type: check.kind,
      status: ofCheck,
      output,
      failures,
      last_checked_at: checkedAtMs === null ? null : isoTime(checkedAtMs),
    })),
    registered_at: isoTime(view.registeredAtMs),
    updated_at: isoTime(view.updatedAtMs),
  };
}

/** The tags of a query: separated by commas, or the parameter given several times. */
export function tagsIn(given: string | readonly string[] | undefined): readonly string[] {
  return [given ?? []].flat().flatMap((text) => text.split(",").filter((tag) => tag !== ""));
}
