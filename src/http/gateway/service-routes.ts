// GET /services, GET /services/{name}/resolve: the long-lived processes that open runs offer.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ServiceStatus } from "../../services/check-state.ts";
import type { ServiceView } from "../../services/instance.ts";
import { placeOf } from "../../services/service-index.ts";
import { WEB_UI_SERVICE } from "../../web/inject.ts";
import { Problem } from "../core/problem.ts";
import { addRoutes, get } from "../core/route.ts";
import { renderService, tagsIn } from "../core/service-view.ts";
import { sendPage } from "./page.ts";
import { ResolveQuery, ServicePageSchema, ServiceSchema, ServicesQuery } from "./schemas/services.ts";
import type { GatewayServices } from "./services.ts";

const RETRY_SECONDS = "2";

export function serviceRoutes(api: FastifyInstance, gateway: GatewayServices): void {
  addRoutes(api, "services", [
    get("/services", {
      operationId: "listServices",
      summary: "List services",
      description: "The services that open runs offer right now, by name, whether their checks pass or not.",
      query: ServicesQuery,
      answers: { 200: ServicePageSchema },
      preValidation: joinTags,
      handle: (request, reply) => {
        const { name = null, tag, status, run_id: runId = null } = request.query;
        return sendPage(gateway, request, reply, {
          rows: async (limit, after) =>
            gateway.services.list({
              name,
              tags: tagsIn(tag),
              status: (status as ServiceStatus | undefined) ?? null,
              runId,
              limit,
              after: after === null ? null : { name: String(after[0]), serviceId: String(after[1]) },
            }),
          positionOf: (service) => [placeOf(service).name, service.serviceId],
          render: (service) => JSON.stringify(rendered(gateway, service)),
        });
      },
    }),

    get("/services/:name/resolve", {
      operationId: "resolveService",
      summary: "Find a service by its name",
      description:
        "The newest one of that name, tags and node whose checks pass. What was passing a moment ago may be gone now: be ready for a refused connection, and resolve again.",
      query: ResolveQuery,
      answers: { 200: ServiceSchema },
      problems: ["service_not_passing"],
      preValidation: joinTags,
      handle: async (request) => {
        const { tag, node = null } = request.query;
        const found = gateway.services.resolve({ name: request.params.name, tags: tagsIn(tag), node });
        switch (found.kind) {
          case "resolved":
            return rendered(gateway, found.service);
          case "unknown":
            throw new Problem("service_not_found", `${found.reason} GET /services lists those there are.`);
          case "not_passing":
            throw new Problem("service_not_passing", found.reason, {
              headers: { "retry-after": RETRY_SECONDS },
            });
          default:
            return found satisfies never;
        }
      },
    }),
  ]);
}

/** A parameter that is repeated becomes one, as if its values had been written with commas. */
function joinTags(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  const query = request.query as { tag?: string | readonly string[] };
  if (query.tag !== undefined) query.tag = tagsIn(query.tag).join(",");
  done();
}

function rendered({ services, dashboardKey }: GatewayServices, view: ServiceView) {
  const { job, spec } = view;
  // A job of the runtime API has ids that this API does not know.
  const isOurs = job.definitionId !== null;
  const key = spec.name === WEB_UI_SERVICE ? (dashboardKey?.(job.runId) ?? null) : null;
  return renderService(view, {
    owner: { jobId: job.definitionId, runId: isOurs ? job.runId : null },
    nodeName: services.nodeName,
    publicUrl: spec.publicUrl === null || key === null ? spec.publicUrl : withKey(spec.publicUrl, key),
  });
}

/** Dashboards that are reached from other machines let those in who know their key. */
function withKey(publicUrl: string, key: string): string {
  const url = new URL(publicUrl);
  url.searchParams.set("key", key);
  return url.href;
}
