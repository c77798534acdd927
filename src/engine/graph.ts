// The graph: a manifest that was found valid, compiled so that a message finds its receivers by one look-up.

import type { JsonObject, JsonValue } from "./json.ts";
import type { Labels } from "./labels.ts";
import type { Demand, PortNeed, VolumeNeed } from "./resources.ts";
import type { SandboxPolicy } from "./sandbox.ts";
import type { RequiredService, ServiceSpec } from "./service.ts";

/** The one version of manifests. */
export const MANIFEST_VERSION = "1.0";

export type PlacementPolicy = "local" | "spread" | "binpack";
export type RecoveryPolicy = "local_restart" | "cluster_recover" | "manual_recover";
export type FailurePolicy = "fail_run" | "continue";

export interface RouterConfig {
  readonly kind: "router";
  /** Type of the emitted message; null keeps the type it came with. */
  readonly emitType: string | null;
}

export interface AggregatorConfig {
  readonly kind: "aggregator";
  /** Forms a result at this many messages; null waits for quiescence. */
  readonly completeAfter: number | null;
  readonly completeOnMessage: boolean;
  readonly outputMessageType: string | null;
  /** Whether a formed result that is not emitted completes the run. */
  readonly completeRun: boolean;
}

export interface SensorConfig {
  readonly kind: "sensor";
  readonly outputMessageType: string;
  /** Observations until the sensor is done; null observes until the job ends. */
  readonly completeAfter: number | null;
  readonly intervalMs: number | null;
  /** Wall time of a single timer; null has none. */
  readonly runAtMs: number | null;
  /** A file whose appearance is the observation; relative names lie in the job's payload folder. */
  readonly file: string | null;
}

export interface ExecutorConfig {
  readonly kind: "executor";
  /** A list is started as it is; a string goes through /bin/sh -c. */
  readonly command: readonly string[] | string;
  readonly pool: string;
  readonly poolSlots: number;
  /** Only nodes with all of these run its command. */
  readonly nodeLabels: Labels;
  /** What of its machine it has for itself while it runs; null: nothing. */
  readonly demand: Demand | null;
  /** Those of its demand, by the labels under which it is told of them. */
  readonly ports: readonly PortNeed[];
  readonly volumes: readonly VolumeNeed[];
  /** Seconds one attempt may take; 0 has no limit (the default of long-lived executors). */
  readonly timeoutSeconds: number;
  readonly maxAttempts: number;
  readonly retryBackoffMs: number;
  readonly environment: Readonly<Record<string, string>>;
  readonly passEnv: readonly string[];
  readonly uploadPaths: readonly Upload[];
  readonly workdir: string | null;
  /** The path that stands for the workspace inside commands and workdir; `/sandbox/job` always does. A sandbox has it there. */
  readonly sandboxUploadPath: string | null;
  /** One that `isKnownRunner` knows. */
  readonly runnerModule: string;
  /** What its sandbox may have; null: it runs on the machine as it is. */
  readonly sandbox: SandboxPolicy | null;
  /** The file of the payload that has its policy, in place of `sandbox`. */
  readonly policyFile: string | null;
  readonly outputMessageType: string | null;
  /** What a process of ours calls in its place; null: the command is the author's. */
  readonly module: ModuleCall | null;
  readonly longLived: boolean;
  /** False when a command that may have run must not run a second time. */
  readonly safeToRetry: boolean;
  /** Whether it is told where to read the live events of its run. */
  readonly runEvents: boolean;
  /** The model that it may ask; null: none. */
  readonly llm: LlmNeed | null;
  /** Whether the run goes on, whole, when it fails for good. */
  readonly optional: boolean;
}

/** A model that a worker may ask, and how much. */
export interface LlmNeed {
  /** Its model_id; with an endpoint, its name there. */
  readonly model: string;
  /** The base URL of a server of the OpenAI protocol that has it, and asks for no key; null: it is one that is served. */
  readonly endpoint: string | null;
  /** Whether no run is accepted while it is not served. */
  readonly required: boolean;
  /** Null: as much as it asks. */
  readonly budget: { readonly tokens: number | null; readonly requests: number | null };
  /** Whether it is also told under the names that clients of the OpenAI protocol look for. */
  readonly openaiEnv: boolean;
  /** Whether the budget is that of the run as a whole, and not of the agent. */
  readonly isOfRun: boolean;
}

/** A module as a process of its own is given it. */
export interface ModuleCall {
  /** ES module inside the payload, at the same place in the workspace. */
  readonly path: string;
  readonly config: JsonObject;
}

/** A file or folder of the payload that is copied into the agent's workspace under the name `as`. */
export interface Upload {
  readonly path: string;
  readonly as: string;
}

export interface ModuleConfig {
  readonly kind: "module";
  /** ES module inside the payload. */
  readonly module: string;
  readonly timeoutSeconds: number;
  readonly maxAttempts: number;
  readonly retryBackoffMs: number;
  readonly config: JsonObject;
}

export type AgentConfig = RouterConfig | AggregatorConfig | SensorConfig | ExecutorConfig | ModuleConfig;

export interface GraphNode {
  readonly index: number;
  readonly nodeId: string;
  readonly agentType: AgentConfig["kind"];
  /** The manifest's own `type` of the node, such as "stream"; null when it has none. */
  readonly type: string | null;
  readonly role: string | null;
  readonly config: AgentConfig;
  /** A worker that lives as long as the job and feeds it: the job is not quiescent before it has ended. */
  readonly isSource: boolean;
  /** Receivers of every message type, and of one; an edge carries one copy. */
  readonly toAll: readonly number[];
  readonly toByType: ReadonlyMap<string, readonly number[]>;
  /** They live as long as a command of this agent runs. */
  readonly services: readonly ServiceSpec[];
  /** Distance rank from the entrypoints: at quiescence, earlier aggregators form their result first. */
  readonly rank: number;
}

/**
 * Whether the node's command runs on the node of its job: others reach it by an address of that machine. A service of the job
 * as a whole may be any command's that lasts.
 */
export function staysWithJob(graph: Pick<Graph, "services">, node: GraphNode): boolean {
  return node.services.length > 0 || (isLongLived(node) && graph.services.length > 0);
}

/** Whether the node's command lives as long as its job, and is sent messages while it runs. */
export function isLongLived({ config }: GraphNode): boolean {
  return config.kind === "executor" && config.longLived;
}

/** Whether the run goes on without the agent, as if it had not been asked for anything. */
export function isOptional({ config }: GraphNode): boolean {
  return config.kind === "executor" && config.optional;
}

export interface Graph {
  readonly graphId: string;
  readonly jobName: string | null;
  readonly type: "batch" | "service";
  readonly placementPolicy: PlacementPolicy;
  readonly recoveryPolicy: RecoveryPolicy;
  readonly failurePolicy: FailurePolicy;
  /** Milliseconds the whole job may take; null has no limit. */
  readonly timeoutMs: number | null;
  readonly entrypoints: readonly number[];
  /** Bodies of each entrypoint's `init` messages. */
  readonly initialInputs: ReadonlyMap<number, readonly JsonValue[]>;
  readonly nodes: readonly GraphNode[];
  readonly indexOf: ReadonlyMap<string, number>;
  /** They live as long as the job. */
  readonly services: readonly ServiceSpec[];
  readonly requiredServices: readonly RequiredService[];
  /** File names that, left in SVC_OUTPUT_DIR, are outputs of the run. */
  readonly outputs: readonly DeclaredOutput[];
}

export interface DeclaredOutput {
  readonly path: string;
  readonly title: string | null;
  readonly primary: boolean;
}

/** An output's path as artifacts are named: below SVC_OUTPUT_DIR, without a leading "./". */
export function outputName(output: { readonly path: string }): string {
  return output.path.replace(/^(?:\.?\/)+/, "");
}

/** How commands are run: the last part of `runner_module`, which may be a module's path with dots. */
const HOST_LOCAL = "HostLocal";
const SANDBOX_RUNNER = /(?:Sandbox|OpenShell)$/;
/** The same, of all runners, for schemas. */
export const RUNNER_PATTERN = `(?:(?:^|\\.)${HOST_LOCAL}|Sandbox|OpenShell)$`;

export function isKnownRunner(runnerModule: string): boolean {
  return (
    isSandboxRunner(runnerModule) || runnerModule.slice(runnerModule.lastIndexOf(".") + 1) === HOST_LOCAL
  );
}

export function isSandboxRunner(runnerModule: string): boolean {
  return SANDBOX_RUNNER.test(runnerModule);
}

// Variables of the runtime that hold its own secrets, or lead to them. Nobody who writes a manifest or a configuration may
// have a worker given one. src/app/config.test.ts compares them with the table of settings.
const WITHHELD =
  /^SVC_(?:API_TOKEN|RUNTIME_API_TOKEN|SECRET_KEY|DATABASE_URL|NODE_TLS_KEY|TLS_KEY)(?:_FILE)?$/;

/** Whether a variable of the runtime's environment is never given to workers. */
export function isWithheldVariable(name: string): boolean {
  return WITHHELD.test(name);
}
