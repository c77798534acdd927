// GET /services, GET /services/:name/resolve: the long-lived processes that open jobs offer.

import type { FastifyInstance } from "fastify";
import type { RequiredService } from "../../engine/service.ts";
import { serviceStatuses } from "../../services/check-state.ts";
import type { ServiceView } from "../../services/instance.ts";
import type { ServiceFilter, ServiceRegistry } from "../../services/registry.ts";
import { placeOf, type ServicePlace } from "../../services/service-index.ts";
import { renderService, tagsIn } from "../core/service-view.ts";
import { textStream } from "../core/text-stream.ts";
import { ApiError } from "./errors.ts";
import { type Query, readOneOf, readText } from "./query.ts";
import type { RuntimeServices } from "./services.ts";

const SERVICES_PER_PAGE = 100;

export function serviceRoutes(api: FastifyInstance, { services }: RuntimeServices): void {
  api.get<{ Querystring: Query }>("/services", async ({ query }, reply) => {
    const filter: ServiceFilter = {
      name: readText(query, "name"),
      tags: readTags(query),
      status: readOneOf(query, "status", serviceStatuses),
      runId: readText(query, "run_id"),
    };
    reply.type("application/json; charset=utf-8");
    return textStream(listAll(services, filter));
  });

  api.get<{ Params: { name: string }; Querystring: Query }>(
    "/services/:name/resolve",
    async ({ params, query }) => {
      const wanted = { name: params.name, tags: readTags(query), node: readText(query, "node") };
      const found = services.resolve(wanted);
      if (found.kind === "resolved") return rendered(services, found.service);
      throw new ApiError(found.kind === "unknown" ? 404 : 503, found.reason);
    },
  );
}

const readTags = ({ tag }: Query) => tagsIn(tag as string | readonly string[] | undefined);

/** All of them, a page at a time. */
function* listAll(services: ServiceRegistry, filter: ServiceFilter): Generator<string> {
  yield '{"data":[';
  let after: ServicePlace | null = null;
  for (;;) {
    const page: readonly ServiceView[] = services.list({ ...filter, limit: SERVICES_PER_PAGE, after });
    const last = page.at(-1);
    if (last === undefined) break;
    yield (after === null ? "" : ",") + page.map((one) => JSON.stringify(rendered(services, one))).join(",");
    after = placeOf(last);
  }
  yield "]}";
}

function rendered(services: ServiceRegistry, view: ServiceView) {
  const { jobId, definitionId, runId } = view.job;
  return renderService(view, {
    owner: { jobId: definitionId ?? jobId, runId },
    nodeName: services.nodeName,
    publicUrl: view.spec.publicUrl,
  });
}

/**
 * Refuses a graph whose services are not there.
 *
 * @throws ApiError 409 that names each of them
 */
export function requireServices(services: ServiceRegistry, required: readonly RequiredService[]): void {
  const unmet = services.unmet(required);
  if (unmet.length === 0) return;
  const reasons = unmet.map(({ reason }) => reason).join(" ");
  throw new ApiError(409, `The graph requires services that are not passing. ${reasons}`);
}
