// The public face of the client: what programs import.

export type { BlueprintsResource } from "./blueprints.ts";
export type { BundleSource, BundlesResource } from "./bundles.ts";
export { TroupeClient } from "./client.ts";
export type { DeploymentsResource } from "./deployments.ts";
export { type ProblemEntry, TroupeProblem, TroupeUnreachable } from "./errors.ts";
export { type FollowOptions, terminalEventTypes } from "./follow.ts";
export type { JsonObject, ProblemCode } from "./generated.ts";
export type { JobsResource } from "./jobs.ts";
export type { ModelsResource } from "./models.ts";
export type { OperationsResource } from "./operations.ts";
export type { Page, Pages } from "./pages.ts";
export type * from "./records.ts";
export type { RunsResource } from "./runs.ts";
export {
  type RuntimeArtifact,
  type RuntimeBundle,
  type RuntimeEvent,
  type RuntimeJob,
  type RuntimeJobDetail,
  type RuntimeSchedule,
  TroupeRuntime,
} from "./runtime.ts";
export type { SchedulesResource } from "./schedules.ts";
export type { ServicesResource } from "./services.ts";
export type { SessionsResource } from "./sessions.ts";
export { readServerSentEvents, type ServerSentEvent } from "./sse.ts";
export type { SystemResource } from "./system.ts";
export {
  addressOf,
  type CallOptions,
  type KeyedOptions,
  type StartOptions,
  type TroupeClientOptions,
} from "./transport.ts";
export type { TriggerEventsResource } from "./trigger-events.ts";
