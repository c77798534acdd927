// The gateway's records under the names that people use for them.

import type { JsonObject } from "./generated.ts";
import type { AnswerOf, OperationId, RequestOf } from "./transport.ts";

type ItemOf<Id extends OperationId> =
  AnswerOf<Id> extends { readonly items: readonly (infer Item)[] } ? Item : never;
type QueryOf<Id extends OperationId> =
  RequestOf<Id> extends { readonly query?: infer Query } ? NonNullable<Query> : never;
type BodyOf<Id extends OperationId> = RequestOf<Id> extends { readonly body: infer Body } ? Body : never;

export type Bundle = AnswerOf<"getBundle">;
export type BundlesQuery = QueryOf<"listBundles">;

export type Job = ItemOf<"listJobs">;
/** A job, with what a change of it must name. */
export type TaggedJob = Job & Tag;
/** view=full adds the manifest, the graph, recent runs and events, and services. */
export type JobDetail = AnswerOf<"getJob"> & Tag;
export type NewJob = BodyOf<"createJob">;
export type JobPatch = BodyOf<"updateJob">;
export type JobsQuery = QueryOf<"listJobs">;
export type JobEventsQuery = QueryOf<"listJobEvents">;
export type JobGridQuery = QueryOf<"getJobGrid">;
export type JobRunsQuery = QueryOf<"listJobRuns">;
export type DeadLettersQuery = QueryOf<"listJobDeadLetters">;
export type DeadLetter = ItemOf<"listJobDeadLetters">;
export type JobGrid = AnswerOf<"getJobGrid">;
export type WorkflowProgress = AnswerOf<"getWorkflowProgress">;
/** What pausing, resuming or cancelling a job did to its runs. */
export type JobControl = AnswerOf<"cancelJob">;

/** A question about a job and its latest run, or another one. */
export interface JobQuestion {
  readonly question: string;
  readonly run_id?: string;
  /** For a follow-up: ids that earlier answers have cited; what they name is looked at first. */
  readonly earlier_ids?: readonly string[];
}

export interface JobAnswer {
  readonly answer: string;
  /** false: what the job has published does not hold an answer. */
  readonly answered: boolean;
  /** Where the answer stands, word for word. */
  readonly citations: readonly { readonly id: string; readonly quote: string }[];
  /** Whether only a part was searched; the answer says which. */
  readonly truncated: boolean;
}

/** The version of a record that was read. */
interface Tag {
  /** For If-Match, quotes included. */
  readonly etag: string;
}

/** Which version of which job is to be changed; "*" in place of the ETag: whatever it is by now. */
export interface JobVersion {
  readonly job_id: string;
  readonly etag: string;
}

/** A rule by which runs of a job are started. */
export type Schedule = AnswerOf<"getSchedule">;
/** A schedule, with what a change of it must name. */
export type TaggedSchedule = Schedule & Tag;
export type NewSchedule = BodyOf<"createSchedule">;
export type SchedulePatch = BodyOf<"updateSchedule">;
export type SchedulesQuery = QueryOf<"listSchedules">;

/** Instances of a service graph, which are kept running and replaced. */
export type Deployment = AnswerOf<"getDeployment">;
/** A deployment, with what a change of it must name. */
export type TaggedDeployment = Deployment & Tag;
export type NewDeployment = BodyOf<"createDeployment">;
export type DeploymentPatch = BodyOf<"updateDeployment">;
export type DeploymentsQuery = QueryOf<"listDeployments">;

/** Which version of which deployment is to be changed; "*" in place of the ETag: whatever it is by now. */
export interface DeploymentVersionTag {
  readonly deployment_id: string;
  readonly etag: string;
}

/** A model that was registered, with where it is installed. */
export type Model = AnswerOf<"getModel">;
/** A model, with what a change of it must name. */
export type TaggedModel = Model & Tag;
export type NewModel = BodyOf<"registerModel">;
export type ModelPatch = BodyOf<"updateModel">;
export type ModelInstallation = AnswerOf<"getModelInstallation">;
export type TaggedModelInstallation = ModelInstallation & Tag;
export type ModelValidation = AnswerOf<"validateModel">;
/** What a removal of a model takes. */
export type ModelServeSettings = BodyOf<"serveModel">;
export type ModelServing = AnswerOf<"getModelServing">;
export type ModelRemoval = BodyOf<"uninstallModel">;

/** Which version of which model is to be changed; "*" in place of the ETag: whatever it is by now. */
export interface ModelVersionTag {
  readonly model_id: string;
  readonly etag: string;
}

/** The same for one of its installations. */
export interface ModelInstallationTag extends ModelVersionTag {
  readonly installation_id: string;
}

/** Something that happened in a deployment. */
export interface DeploymentEvent {
  readonly id: number;
  readonly deployment_id: string;
  readonly timestamp: string;
  /** Such as `instance_serving`, or `deployment_succeeded`. */
  readonly type: string;
  readonly payload: JsonObject;
}

export type TriggerEvent = AnswerOf<"emitEvent">;
export type NewTriggerEvent = BodyOf<"emitEvent">;
export type TriggerEventsQuery = QueryOf<"listEvents">;

/** Which version of which schedule is to be changed; "*" in place of the ETag: whatever it is by now. */
export interface ScheduleVersion {
  readonly schedule_id: string;
  readonly etag: string;
}

export type Run = AnswerOf<"createRun">;
/** A run with the summary of what happened in it. */
export type ObservabilitySummary = AnswerOf<"getObservabilitySummary">;
export type RunStatus = Run["status"];
export type NewRun = BodyOf<"createRun">;
/** The outcome of one item of a batch: `id`, and `run` once it has ended; or `error`. */
export type StartedRun = ItemOf<"createRuns">;
export type RunsQuery = QueryOf<"listRuns">;
export type RunResult = AnswerOf<"getRunResult">;
export type RunEvent = ItemOf<"listRunEvents">;
export type EventsQuery = QueryOf<"listRunEvents">;
export type LogRecord = ItemOf<"listRunLogs">;
export type LogsQuery = QueryOf<"listRunLogs">;
export type LogPage = AnswerOf<"listRunLogs">;
/** How many records there are over time. */
export type LogHistogram = AnswerOf<"countRunLogs">;
export type LogHistogramQuery = QueryOf<"countRunLogs">;
export type LogFilters = QueryOf<"streamRunLogs">;
export type TimelineRecord = ItemOf<"listRunTimeline">;
export type TimelineQuery = QueryOf<"listRunTimeline">;
export type Artifact = ItemOf<"listRunArtifacts">;
export type Output = ItemOf<"listRunOutputs">;
export type ArtifactsQuery = QueryOf<"listRunArtifacts">;
export type OutputsQuery = QueryOf<"listRunOutputs">;

/** A question of a worker to people. */
export type HumanRequest = AnswerOf<"getHumanRequest">;
export type HumanRequestsQuery = QueryOf<"listHumanRequests">;
export type AllHumanRequestsQuery = QueryOf<"listAllHumanRequests">;
export type HumanAnswer = BodyOf<"answerHumanRequest">;
export type RunDeadLettersQuery = QueryOf<"listRunDeadLetters">;
export type AllDeadLettersQuery = QueryOf<"listDeadLetters">;
/** The body with which a dead letter is sent again; `{}`: its own. */
export type RetryDeadLetter = BodyOf<"retryRunDeadLetter">;
/** Result of the retry of dead letters. */
export type Retried = AnswerOf<"retryRunDeadLetters">;

export type Channel = "events" | "logs" | "timeline" | "human";

/** An event of a run, as several channels see it together; those that do not show it are absent. */
export interface MergedEvent {
  readonly id: number;
  readonly run_id: string;
  readonly channels: {
    readonly events?: RunEvent;
    readonly logs?: LogRecord;
    readonly timeline?: TimelineRecord;
    readonly human?: JsonObject;
  };
}

/** A package of the catalog. */
export type Blueprint = ItemOf<"listBlueprints">;
export type BlueprintDetail = AnswerOf<"getBlueprint">;
export type BlueprintsQuery = QueryOf<"listBlueprints">;
export type BlueprintAddition = BodyOf<"addBlueprint">;
export type BlueprintRemoval = BodyOf<"removeBlueprint">;
export type BlueprintToCheck = BodyOf<"validateBlueprint">;
export type BlueprintCheck = AnswerOf<"validateBlueprint">;
export type BlueprintLaunch = BodyOf<"launchBlueprint">;
export type { LaunchedBlueprint } from "./generated.ts";

/** Long-running background work. */
export type Operation = AnswerOf<"getOperation">;
export type OperationsQuery = QueryOf<"listOperations">;

/** Something that happened in an operation. */
export interface OperationEvent {
  readonly id: number;
  readonly operation_id: string;
  readonly timestamp: string;
  readonly type:
    | "operation_pending"
    | "operation_running"
    | "operation_progress"
    | "operation_completed"
    | "operation_failed";
  readonly payload: Operation["progress"] & Partial<Pick<Operation, "result" | "error">>;
}

/** A list whose changes can be followed. */
export type ListTopic = "runs" | "human" | "dead-letters" | "services" | "operations" | "deployments";

/** Something that has changed in the gateway's lists. */
export type ListEvent =
  | { readonly event_id: string; readonly type: "reset" }
  | {
      readonly event_id: string;
      readonly type: "change";
      readonly topic: ListTopic;
      /** Of the record. */
      readonly id: string;
      /** What the record is now; null: it is gone. */
      readonly changes: Readonly<Record<string, unknown>> | null;
    };

/** A session of a browser, or a link that opens one. */
export type Session = ItemOf<"listSessions">;
export type SessionsQuery = QueryOf<"listSessions">;
export type NewSession = BodyOf<"createSession">;

/** A long-lived process that an open run offers. */
export type Service = ItemOf<"listServices">;
export type ServicePage = AnswerOf<"listServices">;
export type ServicesQuery = QueryOf<"listServices">;
export type ResolveQuery = QueryOf<"resolveService">;

export type Health = AnswerOf<"getHealth">;
export type RuntimeHealth = AnswerOf<"getRuntimeHealth">;
export type RuntimeStatus = AnswerOf<"getRuntimeStatus">;
export type Doctor = AnswerOf<"getRuntimeDoctor">;
/** What the program that answers was started with. */
export type Settings = AnswerOf<"getSettings">;
export type SystemSummary = AnswerOf<"getSystemSummary">;
export type CollectReport = AnswerOf<"collectGarbage">;
export type CollectGarbage = BodyOf<"collectGarbage">;
/** What the machines have, and what commands may have of it. */
export type Resource = AnswerOf<"getResource">;
export type LimitsInput = BodyOf<"setResourceLimits">["limits"];
export type Node = ItemOf<"listNodes">;
export type NodesQuery = QueryOf<"listNodes">;
export type NodeDrain = AnswerOf<"getNodeDrain">;
export type DrainNode = BodyOf<"drainNode">;
export type SetMaintenance = BodyOf<"setNodeMaintenance">;
export type AddNode = BodyOf<"addNode">;
export type AddedNode = AnswerOf<"addNode">;
export type JoinCluster = BodyOf<"joinCluster">;
export type RemoveNode = BodyOf<"removeNode">;
export type LeaveCluster = BodyOf<"leaveCluster">;
export type ReconcileNode = BodyOf<"reconcileNode">;
export type Reconciliation = AnswerOf<"reconcileNode">;
export type Metrics = AnswerOf<"getMetrics">;
