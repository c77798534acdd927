// Each method of the runtime protocol as the HTTP request that does the same: the routes of src/http/resources check, do and
// render it, and a method is nothing but this line and its messages in proto/.

import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { DeploymentService } from "./gen/svc/runtime/v1/deployment_pb.ts";
import { JobService } from "./gen/svc/runtime/v1/job_pb.ts";
import { NodeService } from "./gen/svc/runtime/v1/node_pb.ts";
import { ResourceService } from "./gen/svc/runtime/v1/resource_pb.ts";
import { ScheduleService } from "./gen/svc/runtime/v1/schedule_pb.ts";
import { ServiceService } from "./gen/svc/runtime/v1/service_pb.ts";

export interface Rule {
  readonly api: "gateway" | "runtime";
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below /api/v1; `{name}` is a field of the request. */
  readonly path: string;
  /**
   * The fields of the request of which one is the body; none: all are the query, as those of a GET are; when absent, the body
   * is an object of all fields that are not in the path. A field `etag` is sent as If-Match.
   */
  readonly body?: readonly string[];
  /** The field of the response that the answer is; when absent, the answer's fields are the response's. */
  readonly answer?: string;
}

type RulesOf<Service extends DescService> = Readonly<Record<keyof Service["method"] & string, Rule>>;

type More = Pick<Rule, "body" | "answer">;

const rule =
  (api: Rule["api"], method: Rule["method"]) =>
  (path: string, more: More = {}): Rule => ({ api, method, path, ...more });

const get = rule("gateway", "GET");
const post = rule("gateway", "POST");
const put = rule("gateway", "PUT");
const patch = rule("gateway", "PATCH");
const remove = rule("gateway", "DELETE");
const runtimeGet = rule("runtime", "GET");
const runtimePost = rule("runtime", "POST");

const nodes: RulesOf<typeof NodeService> = {
  listNodes: get("/nodes"),
  getNode: get("/nodes/{node_id}", { answer: "node" }),
  reconcileNode: post("/nodes/{node_id}/reconcile"),
  drainNode: post("/nodes/{node_id}/drain", { answer: "drain" }),
  cancelNodeDrain: post("/nodes/{node_id}/undrain", { answer: "drain" }),
  setNodeMaintenance: post("/nodes/{node_id}/maintenance", { answer: "drain" }),
  getNodeDrainStatus: get("/nodes/{node_id}/drain", { answer: "drain" }),
};

const services: RulesOf<typeof ServiceService> = {
  listServices: get("/services"),
  checkServices: post("/services:check", { body: [] }),
  resolveService: get("/services/{name}/resolve", { answer: "service" }),
};

const resources: RulesOf<typeof ResourceService> = {
  getResource: get("/resource", { answer: "resource" }),
  setResource: put("/resource", { answer: "resource" }),
  changeResource: post("/resource", { answer: "resource" }),
  removeVolume: remove("/resource/volumes/{volume}"),
};

const schedules: RulesOf<typeof ScheduleService> = {
  create: post("/schedules", { answer: "schedule" }),
  update: patch("/schedules/{schedule_id}", { body: ["changes"], answer: "schedule" }),
  list: get("/schedules"),
  getStatus: get("/schedules/{schedule_id}", { answer: "schedule" }),
  pause: post("/schedules/{schedule_id}/pause", { answer: "schedule" }),
  resume: post("/schedules/{schedule_id}/resume", { answer: "schedule" }),
  delete: remove("/schedules/{schedule_id}"),
  dispatch: post("/schedules/{schedule_id}/dispatch"),
  emitEvent: post("/events", { answer: "event" }),
  listEvents: get("/events"),
};

const deployments: RulesOf<typeof DeploymentService> = {
  deploy: post("/deployments", { answer: "deployment" }),
  update: patch("/deployments/{deployment_id}", { body: ["changes"], answer: "deployment" }),
  list: get("/deployments"),
  getStatus: get("/deployments/{deployment_id}", { answer: "deployment" }),
  promote: post("/deployments/{deployment_id}/promote", { answer: "deployment" }),
  rollback: post("/deployments/{deployment_id}/rollback", { answer: "deployment" }),
  pause: post("/deployments/{deployment_id}/pause", { answer: "deployment" }),
  resume: post("/deployments/{deployment_id}/resume", { answer: "deployment" }),
  fail: post("/deployments/{deployment_id}/fail", { answer: "deployment" }),
};

const jobs: RulesOf<typeof JobService> = {
  submitJob: runtimePost("/jobs", { body: ["manifest", "bundle"] }),
  getJob: runtimeGet("/jobs/{job_id}"),
  listJobs: runtimeGet("/jobs"),
  cancelJob: runtimePost("/jobs/{job_id}/cancel"),
  watchJob: runtimeGet("/jobs/{job_id}/events/stream"),
};

export const protocol: readonly {
  readonly service: DescService;
  readonly rules: Readonly<Record<DescMethod["localName"], Rule>>;
}[] = [
  { service: NodeService, rules: nodes },
  { service: ServiceService, rules: services },
  { service: ResourceService, rules: resources },
  { service: ScheduleService, rules: schedules },
  { service: DeploymentService, rules: deployments },
  { service: JobService, rules: jobs },
];
