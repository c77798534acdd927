// The long-lived processes that open runs offer: GET /services, POST /services:check and GET /services/{name}/resolve, in both
// APIs.

import type { FastifyReply, FastifyRequest } from "fastify";
import { isoTime } from "../../engine/event.ts";
import type { ServiceFilter } from "../../services/registry.ts";
import type { ServiceView } from "../../services/service-view.ts";
import type { Services } from "../../services/services.ts";
import { Problem } from "../core/problem.ts";
import { get, post } from "../core/route.ts";
import type { RunTokens } from "../core/run-token.ts";
import { type Static, Type } from "../core/type.ts";
import type { Api } from "./api.ts";
import type { List } from "./lists.ts";
import { pageOf, pageQuery } from "./schemas.ts";

export interface Parts {
  readonly services: Services;
  /** Makes the keys that dashboards ask browsers for; absent where they are not given away. */
  readonly runTokens?: Pick<RunTokens, "of">;
}

const Status = Type.OneOf(
  ["passing", "critical"],
  "passing only while every check has found it reachable; critical before the first time, and after failures.",
);

const CheckSchema = Type.Object({
  name: Type.String(),
  type: Type.OneOf(["http", "tcp", "grpc", "script"]),
  status: Status,
  output: Type.String("What was found, for people.", { examples: ["HTTP 200"] }),
  failures: Type.Integer("Failures in a row, up to now."),
  last_checked_at: Type.Nullable(Type.Time("When it was made last; null before the first time.")),
});

const ofThisApi = "Null for a service of a job that was submitted to the runtime API.";

const ServiceSchema = Type.Object(
  {
    service_id: Type.String("The same for every attempt of its agent, and after a restart.", {
      examples: ["svc_4f1c08a2b97d6e35"],
    }),
    name: Type.String({ examples: ["blueprint-web-ui"] }),
    status: Status,
    tags: Type.Array(Type.String()),
    meta: Type.JsonObject("As declared, with public_url, run_id, job_id and node."),
    address: Type.String("The host that callers use; 127.0.0.1 is its node itself.", {
      examples: ["127.0.0.1"],
    }),
    port: Type.Nullable(Type.Integer("Null without one.")),
    public_url: Type.Nullable(Type.String("What a browser is given; null without one.")),
    job_id: Type.Nullable(Type.String(ofThisApi)),
    run_id: Type.Nullable(Type.String(ofThisApi)),
    agent_id: Type.Nullable(Type.String("The agent whose command offers it; null for the job as a whole.")),
    node: Type.String("The name of the node that it runs on."),
    checks: Type.Array(CheckSchema),
    registered_at: Type.Time("When its job, or the command of its agent, began."),
    updated_at: Type.Time("When its status changed last."),
  },
  "A long-lived process that an open run offers, found by its name.",
);

const ServicePageSchema = Type.Object(
  {
    ...pageOf(ServiceSchema, "services, by name").properties,
    unreachable_nodes: Type.Array(
      Type.String(),
      "Names of the nodes that do not answer now, whose services are left out.",
    ),
  },
  "A page of services, by name.",
);

const Tags = Type.String(
  "Tags that it must have, all of them: separated by commas, or the parameter repeated.",
  { examples: ["blueprint,document-digest"] },
);

const ServicesQuery = Type.Input({
  name: Type.String("Services of this name only."),
  tag: Tags,
  status: Status,
  run_id: Type.String("Services of this run."),
  ...pageQuery,
});

const ResolveQuery = Type.Input({
  tag: Tags,
  node: Type.String("Name or id of the node that it must run on."),
});

/** By the names that clients see. */
export const schemas = { Service: ServiceSchema, ServicePage: ServicePageSchema };

const RETRY_SECONDS = "2";

export function routes(api: Api, parts: Parts): void {
  const { services } = parts;
  const rendered = api.name === "gateway" ? gatewayService : runtimeService;
  const sendServices = (
    request: FastifyRequest<{ Querystring: Static<typeof ServicesQuery> }>,
    reply: FastifyReply,
    isChecked: boolean,
  ) => {
    const { name = null, tag, status = null, run_id: runId = null } = request.query;
    return api.sendList(request, reply, {
      ...servicesOf(services, { name, tags: tagsIn(tag), status, runId }, isChecked),
      render: (service) => JSON.stringify(rendered(parts, service)),
    });
  };
  api.add("services", [
    get("/services", {
      operationId: "listServices",
      summary: "List services",
      description:
        "The services that open runs offer right now, on all nodes, by name, whether their checks pass or not.",
      query: ServicesQuery,
      answers: { 200: ServicePageSchema },
      preValidation: joinTags,
      handle: (request, reply) => sendServices(request, reply, false),
    }),
    // The colon is doubled because a single one would begin a parameter.
    post("/services::check", {
      operationId: "checkServices",
      summary: "Check services now",
      description:
        "As the list, once each of their checks has been made again; one that takes more than two seconds is shown as it was, with its last_checked_at.",
      query: ServicesQuery,
      answers: { 200: ServicePageSchema },
      preValidation: joinTags,
      handle: (request, reply) => sendServices(request, reply, true),
    }),
    get("/services/:name/resolve", {
      operationId: "resolveService",
      summary: "Find a service by its name",
      description:
        "The newest one of that name, tags and node whose checks pass. Without a node, what listens on the loopback of another machine is not found. What was passing a moment ago may be gone now: be ready for a refused connection, and resolve again.",
      query: ResolveQuery,
      answers: { 200: ServiceSchema },
      problems: ["service_not_passing"],
      preValidation: joinTags,
      handle: async (request) => {
        const { tag, node = null } = request.query;
        const found = await services.resolve({ name: request.params.name, tags: tagsIn(tag), node });
        switch (found.kind) {
          case "resolved":
            return rendered(parts, found.service);
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

function gatewayService({ runTokens }: Parts, view: ServiceView) {
  const { definitionId, runId, publicUrl } = view;
  // A job of the runtime API has ids that this API does not know.
  const isOurs = definitionId !== null;
  const key = view.asksForKey ? runTokens?.of(runId) : undefined;
  return renderService(view, {
    owner: { jobId: definitionId, runId: isOurs ? runId : null },
    publicUrl: publicUrl === null || key === undefined ? publicUrl : withKey(publicUrl, key),
  });
}

/** Dashboards that are reached from other machines let those in who know their key. */
function withKey(publicUrl: string, key: string): string {
  const url = new URL(publicUrl);
  url.searchParams.set("key", key);
  return url.href;
}

function runtimeService(_parts: Parts, view: ServiceView) {
  const { jobId, definitionId, runId, publicUrl } = view;
  return renderService(view, { owner: { jobId: definitionId ?? jobId, runId }, publicUrl });
}

function servicesOf(
  services: Services,
  filter: ServiceFilter,
  isChecked: boolean,
): Omit<List<ServiceView>, "render"> {
  const unreachable = new Set<string>();
  return {
    rows: async (limit, after) => {
      const place = after === null ? null : { name: String(after[0]), serviceId: String(after[1]) };
      const listed = await services.list({ ...filter, limit, after: place }, isChecked);
      for (const node of listed.unreachable) unreachable.add(node);
      return listed.services;
    },
    positionOf: ({ name, serviceId }) => [name, serviceId],
    remarks: () => ({ unreachable_nodes: [...unreachable] }),
  };
}

/** How an API names whose service it is; null: it does not know them. */
interface ServiceOwner {
  readonly jobId: string | null;
  readonly runId: string | null;
}

interface ServiceRendering {
  readonly owner: ServiceOwner;
  /** What a browser is given; null: nothing. */
  readonly publicUrl: string | null;
}

function renderService(view: ServiceView, { owner, publicUrl }: ServiceRendering) {
  const { name, status, tags, meta, address, port, agentId, node, checks } = view;
  const identity = { run_id: owner.runId, job_id: owner.jobId, node };
  return {
    service_id: view.serviceId,
    name,
    status,
    tags,
    meta: { ...meta, ...(publicUrl !== null && { public_url: publicUrl }), ...identity },
    address,
    port,
    public_url: publicUrl,
    ...identity,
    agent_id: agentId,
    checks: checks.map((check) => ({
      name: check.name,
      type: check.kind,
      status: check.status,
      output: check.output,
      failures: check.failures,
      last_checked_at: check.checkedAtMs === null ? null : isoTime(check.checkedAtMs),
    })),
    registered_at: isoTime(view.registeredAtMs),
    updated_at: isoTime(view.updatedAtMs),
  };
}

/** The tags of a query: separated by commas, or the parameter given several times. */
function tagsIn(given: string | readonly string[] | undefined): readonly string[] {
  return [given ?? []].flat().flatMap((text) => text.split(",").filter((tag) => tag !== ""));
}
