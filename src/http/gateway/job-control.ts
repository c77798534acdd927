// POST /jobs/{job_id}/cancel, /pause, /resume: the same for every run of the job that has not ended.
//
// What is asked of the runs and the promised answer are one transaction; then the runs are brought to it. A request that
// comes to nothing in between, because the runtime takes nothing or the process dies, has been heard all the same: a
// retry with its key finds the promise, and sees to it that it is kept.

import type { FastifyInstance } from "fastify";
import type { DesiredState } from "../../launch/records.ts";
import { addRoutes, post } from "../core/route.ts";
import { answerIdempotent, sendGiven } from "./idempotent.ts";
import { idempotencyKeyHeader } from "./schemas/common.ts";
import { JobControlSchema } from "./schemas/jobs.ts";
import type { GatewayServices } from "./services.ts";

const actions: readonly {
  readonly name: "cancel" | "pause" | "resume";
  readonly desired: DesiredState;
  readonly summary: string;
}[] = [
  { name: "cancel", desired: "cancelled", summary: "Cancel every open run of a job" },
  { name: "pause", desired: "paused", summary: "Pause every open run of a job" },
  { name: "resume", desired: "running", summary: "Resume every paused run of a job" },
];

export function jobControlRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { runs } = services;
  addRoutes(
    api,
    "jobs",
    actions.map(({ name, desired, summary }) =>
      post(`/jobs/:job_id/${name}`, {
        operationId: `${name}Job`,
        summary,
        headers: idempotencyKeyHeader,
        answers: { 200: JobControlSchema },
        problems: ["invalid_transition"],
        handle: async (request, reply) => {
          const jobId = request.params.job_id;
          const given = await answerIdempotent(services, request, async () => async (writes) => {
            const controlled = await runs.askAll(writes, jobId, desired);
            const shown = controlled.map(({ runId, status }) => ({ run_id: runId, status }));
            return { status: 200, headers: {}, body: JSON.stringify({ job_id: jobId, runs: shown }) };
          });
          await runs.settle(jobId);
          return sendGiven(reply, given);
        },
      }),
    ),
  );
}
