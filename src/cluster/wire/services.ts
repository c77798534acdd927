// The services of a node as messages between nodes. A peer may be of the next version: what this one does not know of its
// states counts as critical.

import { create } from "@bufbuild/protobuf";
import type { JsonObject } from "../../engine/json.ts";
import type { ServiceCheck } from "../../engine/service.ts";
import type { Found, ServicePage } from "../../services/registry.ts";
import type { CheckView, ServiceStatus, ServiceView } from "../../services/service-view.ts";
import { orAbsent, orNull, parsed, WireProblem } from "./control.ts";
import {
  type FindServiceResponse,
  FindServiceResponseSchema,
  type ListServicesRequest,
  ListServicesRequestSchema,
  NoServiceSchema,
  OutOfReachSchema,
  ServiceCheckSchema,
  ServicePlaceSchema,
  ServiceSchema,
  type Service as WireService,
  type ServiceCheck as WireServiceCheck,
} from "./gen/svc/node/v1/node_pb.ts";

export function pageToWire(
  { limit, after, name, tags, status, runId, definitionId = null }: ServicePage,
  isChecked: boolean,
): ListServicesRequest {
  return create(ListServicesRequestSchema, {
    isChecked,
    limit,
    after: after === null ? undefined : create(ServicePlaceSchema, after),
    name: orAbsent(name),
    tags: [...tags],
    status: orAbsent(status),
    runId: orAbsent(runId),
    definitionId: orAbsent(definitionId),
  });
}

export function pageFromWire(request: ListServicesRequest): ServicePage {
  const { limit, after, name, tags, status, runId, definitionId } = request;
  return {
    limit,
    after: after === undefined ? null : { name: after.name, serviceId: after.serviceId },
    name: orNull(name),
    tags,
    status: status === undefined ? null : statusOf(status),
    runId: orNull(runId),
    definitionId: orNull(definitionId),
  };
}

export function foundToWire(found: Found): FindServiceResponse {
  return create(FindServiceResponseSchema, { found: caseOf(found) });
}

function caseOf(found: Found): FindServiceResponse["found"] {
  switch (found.kind) {
    case "passing":
      return { case: "passing", value: serviceToWire(found.service) };
    case "not_passing":
      return { case: "notPassing", value: found.reason };
    case "out_of_reach":
      return { case: "outOfReach", value: create(OutOfReachSchema) };
    case "none":
      return { case: "none", value: create(NoServiceSchema, { hasOthers: found.hasOthers }) };
    default:
      return found satisfies never;
  }
}

/** @throws WireProblem */
export function foundFromWire({ found }: FindServiceResponse): Found {
  switch (found.case) {
    case "passing":
      return { kind: "passing", service: serviceFromWire(found.value) };
    case "notPassing":
      return { kind: "not_passing", reason: found.value };
    case "outOfReach":
      return { kind: "out_of_reach" };
    case "none":
      return { kind: "none", hasOthers: found.value.hasOthers };
    case undefined:
      throw new WireProblem("The answer says nothing about the service.");
    default:
      return found satisfies never;
  }
}

export function serviceToWire(service: ServiceView): WireService {
  const { meta, port, publicUrl, definitionId, agentId, tags, checks, ...plain } = service;
  return create(ServiceSchema, {
    ...plain,
    tags: [...tags],
    metaJson: JSON.stringify(meta),
    port: orAbsent(port),
    publicUrl: orAbsent(publicUrl),
    definitionId: orAbsent(definitionId),
    agentId: orAbsent(agentId),
    checks: checks.map(({ checkedAtMs, ...check }) =>
      create(ServiceCheckSchema, { ...check, checkedAtMs: orAbsent(checkedAtMs) }),
    ),
  });
}

/** @throws WireProblem */
export function serviceFromWire(service: WireService): ServiceView {
  const { serviceId, name, tags, address, asksForKey, jobId, runId, node } = service;
  const { registeredAtMs, updatedAtMs } = service;
  return {
    serviceId,
    name,
    status: statusOf(service.status),
    tags,
    meta: parsed(service.metaJson) as JsonObject,
    address,
    port: orNull(service.port),
    publicUrl: orNull(service.publicUrl),
    asksForKey,
    jobId,
    runId,
    definitionId: orNull(service.definitionId),
    agentId: orNull(service.agentId),
    node,
    checks: service.checks.map(checkFromWire),
    registeredAtMs,
    updatedAtMs,
  };
}

function checkFromWire({ name, kind, status, failures, output, checkedAtMs }: WireServiceCheck): CheckView {
  return {
    name,
    kind: kind as ServiceCheck["kind"],
    status: statusOf(status),
    failures,
    output,
    checkedAtMs: orNull(checkedAtMs),
  };
}

const statusOf = (status: string): ServiceStatus => (status === "passing" ? "passing" : "critical");
