// POST /jobs/{job_id}/cancel, /pause, /resume: the same for every run of the job that has not ended.

import type { FastifyInstance } from "fastify";
import type { DesiredState } from "../../jobs/records.ts";
import type { Static } from "../shared/type.ts";
import { sendIdempotent } from "./idempotent.ts";
import { idempotencyKeyHeader, responses } from "./schemas/common.ts";
import { JobControlSchema, JobIdParams } from "./schemas/jobs.ts";
import type { GatewayServices } from "./services.ts";

const actions: readonly {
  readonly name: string;
  readonly desired: DesiredState;
  readonly summary: string;
}[] = [
  { name: "cancel", desired: "cancelled", summary: "Cancel every open run of a job" },
  { name: "pause", desired: "paused", summary: "Pause every open run of a job" },
  { name: "resume", desired: "running", summary: "Resume every paused run of a job" },
];

export function jobControlRoutes(api: FastifyInstance, services: GatewayServices): void {
  for (const { name, desired, summary } of actions) {
    api.post<{ Params: Static<typeof JobIdParams> }>(
      `/jobs/:job_id/${name}`,
      {
        schema: {
          operationId: `${name}Job`,
          tags: ["jobs"],
          summary,
          params: JobIdParams,
          headers: idempotencyKeyHeader,
          response: responses({ 200: JobControlSchema }, [
            "job_not_found",
            "invalid_transition",
            "idempotency_key_reused",
            "unsupported_media_type",
          ]),
        },
      },
      (request, reply) =>
        sendIdempotent(services, request, reply, async () => {
          const jobId = request.params.job_id;
          const runs = await services.runs.controlAll(jobId, desired);
          const shown = runs.map((run) => ({ run_id: run.runId, status: run.status }));
          const body = JSON.stringify({ job_id: jobId, runs: shown });
          return async () => ({ status: 200, headers: {}, body });
        }),
    );
  }
}
