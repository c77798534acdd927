// POST /system/gc: removes what is not kept, or tells what would go.

import type { FastifyInstance } from "fastify";
import { renderRetention } from "../core/retention-report.ts";
import type { Static } from "../core/type.ts";
import { responses } from "./schemas/common.ts";
import { CollectBody, CollectReportSchema } from "./schemas/retention.ts";
import type { GatewayServices } from "./services.ts";

export function retentionRoutes(api: FastifyInstance, { retention }: GatewayServices): void {
  api.post<{ Body: Static<typeof CollectBody> | null }>(
    "/system/gc",
    {
      schema: {
        operationId: "collectGarbage",
        tags: ["system"],
        summary: "Remove what is not kept any more",
        description:
          "Ended runs that are older than they are kept, or more than fit, with everything of theirs; and what lies in SVC_HOME without belonging to anything. The same happens by itself every hour. Answers when it is done, after others that are under way; it goes on when the caller leaves.",
        body: CollectBody,
        response: responses({ 200: CollectReportSchema }, [
          "malformed_json",
          "unsupported_media_type",
          "payload_too_large",
          "validation_failed",
        ]),
      },
    },
    async (request) => {
      const { dry_run: isPreview = false, confirm = false, older_than_days, max_bytes } = request.body ?? {};
      const { olderThanDays, bytesMax } = retention.limits;
      const limits = { olderThanDays: older_than_days ?? olderThanDays, bytesMax: max_bytes ?? bytesMax };
      return renderRetention(await retention.collect({ limits, isPreview, isConfirmed: confirm }));
    },
  );
}
