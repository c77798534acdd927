// What the tests of execution share: a runner on a temporary home, and a listener that can be waited for.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "../../src/app/clock.ts";
import type { DeclaredOutput, ExecutorConfig } from "../../src/engine/graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../../src/engine/json.ts";
import { limits } from "../../src/engine/limits.ts";
import type { Clock } from "../../src/engine/ports.ts";
import type {
  TaskEvent,
  TaskListener,
  TaskOutcome,
  TaskRef,
  TaskStart,
  WorkerActions,
} from "../../src/engine/task-port.ts";
import { type ProcessSource, procSource } from "../../src/execution/process/process-table.ts";
import type { HostLocalOptions } from "../../src/execution/runner/host-local.ts";
import { payloadsIn } from "../../src/execution/runner/paths.ts";
import type { RunEventsPlace } from "../../src/execution/runner/worker-contract.ts";
import { SandboxNetworks } from "../../src/execution/sandbox/network/sandbox-networks.ts";
import { Sandboxes } from "../../src/execution/sandbox/sandboxes.ts";
import { LocalTaskRunner, type LocalTaskRunnerOptions } from "../../src/execution/task-runner.ts";
import { ConfigurationSecrets } from "../../src/security/configuration.ts";
import { SecretKey } from "../../src/security/secret-key.ts";
import { FileBlobs } from "../../src/store/blobs.ts";
import { testedEngine } from "./engines.ts";

/** The real clock; a test that ends leaves no timer behind that would keep its process. */
export const realClock: Clock = {
  nowMs: () => Date.now(),
  steadyMs: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
  soon: (run) => {
    setImmediate(run);
  },
};

/** The real clock, on which a worker that is asked to end has a tenth of the usual time. */
export const hastyClock: Clock = {
  ...realClock,
  after: (delayMs, run) => realClock.after(delayMs === limits.killGraceMs ? delayMs / 10 : delayMs, run),
};

/**
 * A clock on which what waits for exactly `delayMs` waits until the test decides: a limit that must not be hit by a
 * machine that stands still for a while.
 *
 * @returns `fire` lets it happen, once for each that waits and was not taken back
 */
export function holding(
  delayMs: number,
  base: Clock = realClock,
): { readonly clock: Clock; readonly fire: () => void } {
  const held = new Set<() => void>();
  const after: Clock["after"] = (givenMs, run) => {
    if (givenMs !== delayMs) return base.after(givenMs, run);
    const once = () => run();
    held.add(once);
    return () => held.delete(once);
  };
  const fire = () => {
    // Not what they make wait in their turn.
    for (const run of [...held]) {
      held.delete(run);
      run();
    }
  };
  return { clock: { ...base, after }, fire };
}

/** Looks at processes as on a machine where limits cannot be set. */
export const unmarkedSource: ProcessSource = {
  ...procSource,
  showsMarks: () => false,
  read: async () => (await procSource.read()).map((entry) => ({ ...entry, mark: null })),
};

/** How long a broken program can hold up a test; no test asserts on it. */
const LIMIT_MS = 120_000;
const SHOWN_CHARS_MAX = 2_000;

export function executorConfig(changes: Partial<ExecutorConfig> = {}): ExecutorConfig {
  return {
    kind: "executor",
    command: ["true"],
    pool: "default",
    poolSlots: 1,
    nodeLabels: {},
    demand: null,
    ports: [],
    volumes: [],
    timeoutSeconds: 300,
    maxAttempts: 1,
    retryBackoffMs: 500,
    environment: {},
    passEnv: [],
    uploadPaths: [],
    workdir: null,
    sandboxUploadPath: null,
    runnerModule: "HostLocal",
    sandbox: null,
    policyFile: null,
    outputMessageType: "executor_result",
    module: null,
    longLived: false,
    safeToRetry: true,
    runEvents: false,
    llm: null,
    optional: false,
    ...changes,
  };
}

export interface TaskChanges extends Partial<Omit<TaskStart, "config" | "envelope">> {
  readonly config?: TaskStart["config"];
  readonly body?: JsonValue;
}

let lastTaskSeq = 0;

/** A task of its own; every one has a new number. */
export function taskStart({ body = {}, ...changes }: TaskChanges = {}): TaskStart {
  const ref = changes.ref ?? { jobId: "graph-1", taskSeq: ++lastTaskSeq, attempt: 1 };
  const agentId = changes.agentId ?? "worker";
  return {
    ref,
    kind: "command",
    publicJobId: ref.jobId,
    runId: "run_1",
    agentId,
    config: executorConfig(),
    maxAttempts: 1,
    idempotencyKey: `key-${ref.taskSeq}`,
    sandboxName: "sandbox-1",
    lease: null,
    agentState: null,
    workflow: { graph_id: "graph", job_name: null, type: "batch" },
    bundleFingerprint: null,
    hasOwnPayload: false,
    configurationJson: null,
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    humanResponses: [],
    timeoutMs: null,
    envelope: envelope(ref, agentId, body),
    ...changes,
  };
}

export function envelope(ref: TaskRef, to: string, body: JsonValue): TaskStart["envelope"] {
  return {
    message_id: `msg_${ref.taskSeq}`,
    job_id: ref.jobId,
    from: null,
    to,
    type: "init",
    class: "command",
    correlation_id: "correlation-1",
    causation_id: null,
    attempt: ref.attempt,
    priority: 0,
    ttl_ms: null,
    timestamp: "2026-01-01T00:00:00.000Z",
    content_type: "application/json",
    headers: {},
    body,
    artifacts: [],
    stream: null,
  };
}

/** Keeps what is reported; `until` resolves as soon as what was reported satisfies a test. */
export class RecordingListener implements TaskListener {
  readonly events: TaskEvent[] = [];
  readonly actions: WorkerActions[] = [];
  /** Types of events and "actions", in the order in which they came. */
  readonly order: string[] = [];
  readonly outcomes = new Map<string, TaskOutcome[]>();
  backpressure: () => Promise<void> | null = () => null;
  /** Set to see events without keeping them. */
  onEvents: ((events: readonly TaskEvent[]) => void) | null = null;
  #waiting: (() => void)[] = [];

  taskEvents(_ref: TaskRef, events: readonly TaskEvent[]): void {
    if (this.onEvents !== null) this.onEvents(events);
    else {
      this.events.push(...events);
      this.order.push(...events.map(({ type }) => type));
    }
    this.#changed();
  }

  taskActions(_ref: TaskRef, actions: WorkerActions): void {
    this.actions.push(actions);
    this.order.push("actions");
    this.#changed();
  }

  taskEnded(ref: TaskRef, outcome: TaskOutcome): void {
    const key = JSON.stringify(ref);
    this.outcomes.set(key, [...(this.outcomes.get(key) ?? []), outcome]);
    this.#changed();
  }

  async until(test: () => boolean): Promise<void> {
    let isLate = false;
    const limit = setTimeout(() => {
      isLate = true;
      this.#changed();
    }, LIMIT_MS);
    try {
      while (!test()) {
        if (isLate) throw new Error(`What was waited for was not reported. There was ${this.#shown()}`);
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
    } finally {
      clearTimeout(limit);
    }
  }

  async outcome(ref: TaskRef): Promise<TaskOutcome> {
    const key = JSON.stringify(ref);
    await this.until(() => this.outcomes.has(key));
    const [outcome] = this.outcomes.get(key) ?? [];
    if (outcome === undefined) throw new Error("There is no outcome.");
    return outcome;
  }

  /** Payloads of the events of one type. */
  payloads(type: string): JsonObject[] {
    return this.events.flatMap(({ type: found, payload }) =>
      found === type && isObject(payload) ? [payload] : [],
    );
  }

  /** Messages of the logs of one stream. */
  logs(stream: string): JsonValue[] {
    return this.payloads("log").flatMap((log) => (log.stream === stream ? [log.message ?? null] : []));
  }

  /** What was reported last, for a message. */
  #shown(): string {
    const { events, actions, outcomes } = this;
    return JSON.stringify({ outcomes: [...outcomes], actions, events }).slice(0, SHOWN_CHARS_MAX);
  }

  #changed(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

export const systemNetworks = () =>
  new SandboxNetworks({ clock: systemClock, log: { warn: () => {}, error: () => {} } });

/** A runner on a home of its own; disposing drains it and removes the home. */
export class RunnerFixture {
  readonly home: string;
  readonly payload: string;
  readonly listener = new RecordingListener();
  readonly blobs: FileBlobs;
  readonly secrets = new ConfigurationSecrets(new SecretKey(randomBytes(32)));
  readonly runner: LocalTaskRunner;
  readonly warnings: string[] = [];
  readonly networks = systemNetworks();
  outputs: readonly DeclaredOutput[] = [];
  requireSandbox = false;
  /** Called when an attempt with a bundle is being staged. */
  onStaging: () => void = () => {};
  runtimeEnv: Record<string, string | undefined> = { ...process.env };
  /** Where the live events of a run are read. */
  runEvents: (runId: string) => RunEventsPlace | null = () => null;
  environmentHere: NonNullable<HostLocalOptions["environmentHere"]> = (_agentId, declared) => declared;
  /** What a payload comes from that only another machine has. */
  fetching: () => Promise<void> = async () => {};

  constructor(
    home: string = mkdtempSync(join(realpathSync(tmpdir()), "troupe-execution-")),
    clock = realClock,
    changes: Partial<LocalTaskRunnerOptions> = {},
  ) {
    this.home = home;
    this.payload = join(home, "payloads");
    mkdirSync(this.payload, { recursive: true });
    this.blobs = new FileBlobs(join(home, "blobs"));
    let lastId = 0;
    this.runner = new LocalTaskRunner({
      home,
      blobs: this.blobs,
      payloadOf: payloadsIn({
        home,
        snapshotPayload: () => {
          this.onStaging();
          return this.payload;
        },
        ensureSnapshot: () => this.fetching(),
        ensurePrepared: () => this.fetching(),
      }),
      declaredOutputs: () => this.outputs,
      openConfiguration: (json) => this.secrets.decryptForWorker(json, this.runtimeEnv),
      openBody: (body) => this.secrets.decryptBody(body),
      newId: () => String(++lastId),
      clock,
      workerEnvPrefixes: ["SVC_"],
      runtimeEnv: this.runtimeEnv,
      runtimeSecrets: [],
      sandboxes: new Sandboxes(home, this.networks, testedEngine),
      requireSandbox: () => this.requireSandbox,
      runEvents: (runId) => this.runEvents(runId),
      environmentHere: (agentId, declared) => this.environmentHere(agentId, declared),
      log: {
        warn: (fields, message) => this.warnings.push(`${message} ${JSON.stringify(fields)}`),
        error: (fields, message) => this.warnings.push(`${message} ${JSON.stringify(fields)}`),
      },
      ...changes,
    });
    this.runner.setListener(this.listener);
  }

  /** Writes a file of the payload. */
  write(path: string, text: string, mode = 0o644): void {
    const target = join(this.payload, path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text, { mode });
  }

  /** Runs one task to its outcome. */
  async run(changes: TaskChanges): Promise<TaskOutcome> {
    const task = taskStart(changes);
    this.runner.start(task);
    return await this.listener.outcome(task.ref);
  }

  /** Runs a shell script as a command. */
  async sh(
    script: string,
    config: Partial<ExecutorConfig> = {},
    changes: TaskChanges = {},
  ): Promise<TaskOutcome> {
    return await this.run({
      ...changes,
      config: executorConfig({ command: ["sh", "-c", script], ...config }),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runner.drain(0);
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** Place of a process's memory size among the fields of /proc/<pid>/stat, counted from behind its name. */
const VSIZE_FIELD = 20;

/** Whether a process still runs; a zombie does not. */
export async function isRunning(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => null);
  if (stat === null) return !existsSync("/proc/self/stat");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A process that is ending has given its memory back before it becomes a zombie.
  return fields[0] !== "Z" && fields[0] !== "X" && fields[VSIZE_FIELD] !== "0";
}

/** Polls a fact about the machine that nothing announces. */
export async function eventually(test: () => boolean | Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + LIMIT_MS;
  while (!(await test())) {
    if (performance.now() > untilMs) throw new Error(`It did not come true: ${test}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The message of an outcome that must be a failure of this code. */
export function failedWith(outcome: TaskOutcome, code: string): string {
  assert.equal(outcome.kind, "failed", JSON.stringify(outcome));
  if (outcome.kind !== "failed") return "";
  assert.equal(outcome.code, code, outcome.message);
  return outcome.message;
}

/** How the command of an attempt that was not interrupted ended. */
export function commandOf(outcome: TaskOutcome) {
  assert.notEqual(outcome.kind, "interrupted");
  const command = outcome.kind === "interrupted" ? null : outcome.command;
  assert.ok(command !== null, JSON.stringify(outcome));
  return command;
}
