// POST /system/gc: removes what is not kept, or tells what would go.

import type { FastifyInstance } from "fastify";
import { renderRetention } from "../core/retention-report.ts";
import { addRoutes, post } from "../core/route.ts";
import { CollectBody, CollectReportSchema } from "./schemas/retention.ts";
import type { GatewayServices } from "./services.ts";

export function retentionRoutes(api: FastifyInstance, { retention }: GatewayServices): void {
  addRoutes(api, "system", [
    post("/system/gc", {
      operationId: "collectGarbage",
      summary: "Remove what is not kept any more",
      description:
        "Ended runs that are older than they are kept, or more than fit, with everything of theirs; and what lies in SVC_HOME without belonging to anything. The same happens by itself every hour. Answers when it is done, after others that are under way; it goes on when the caller leaves.",
      body: CollectBody,
      answers: { 200: CollectReportSchema },
      handle: async (request) => {
        const {
          dry_run: isPreview = false,
          confirm = false,
          older_than_days,
          max_bytes,
        } = request.body ?? {};
        const { olderThanDays, bytesMax } = retention.limits;
        const limits = { olderThanDays: older_than_days ?? olderThanDays, bytesMax: max_bytes ?? bytesMax };
        return renderRetention(await retention.collect({ limits, isPreview, isConfirmed: confirm }));
      },
    }),
  ]);
}
