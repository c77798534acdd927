// The runner of commands, on the machine as it is or in a sandbox: one attempt as a pipeline of stage, start, stream, collect,
// report. A sandbox differs in how the command is started, and in what its worker is told of where its things are.
//
// - A command that is to run in a sandbox runs in one, or not at all.
// - Whatever goes wrong, an attempt ends in an outcome: what the worker does is the worker's failure, what the
//   machine does is an infrastructure failure that may be tried again.
// - When the outcome is reported no process of the worker's group is left, and the attempt's folder is out of
//   the way.
// - A worker's secrets reach the worker only: logs, events, failures and carried output are redacted.

import { scheduler } from "node:timers/promises";
import {
  type DeclaredOutput,
  type ExecutorConfig,
  isKnownRunner,
  isSandboxRunner,
  type LlmNeed,
} from "../../engine/graph.ts";
import type { Clock, EngineLog } from "../../engine/ports.ts";
import type { CommandResult, TaskOutcome, TaskStart } from "../../engine/task-port.ts";
import { Semaphore } from "../../lib/async.ts";
import type { BlobStore } from "../output/artifacts.ts";
import { AttemptOutput } from "../output/attempt-output.ts";
import { logEvent } from "../output/event-stream.ts";
import { growingRedactor, type Redactor, Redactors, secretsOf } from "../output/redaction.ts";
import { type ControlGroups, joining } from "../process/control-groups.ts";
import { requireExecutable } from "../process/executable.ts";
import { inheritedFrom } from "../process/side-command.ts";
import { SpawnerLost } from "../process/spawner.ts";
import { keptAmounts, withPolicy } from "../sandbox/config.ts";
import { type Sandboxes, sandboxEnvironment } from "../sandbox/sandboxes.ts";
import type { Volumes } from "../volumes.ts";
import { type Around, openAround } from "./around.ts";
import {
  type AttemptControl,
  AttemptFailure,
  type AttemptReport,
  armTimeout,
  type EndReason,
  failed,
  interrupted,
  type OpenedTask,
} from "./attempt.ts";
import { AttemptPlaces, type Left, type Places } from "./attempt-places.ts";
import { type CommandEnd, failureOfLoss, failureOfLostStart, failureOfSpawn } from "./command-failure.ts";
import { conclude } from "./conclusion.ts";
import { startWords } from "./module-process.ts";
import { findModule, timeoutOf } from "./module-reply.ts";
import type { PayloadOf } from "./paths.ts";
import type { Trash } from "./trash.ts";
import { type LlmPlace, type RunEventsPlace, workerEnvironment } from "./worker-contract.ts";
import { WorkerProcess, type WorkerTools } from "./worker-process.ts";

export interface HostLocalOptions {
  /** SVC_HOME; only one runtime at a time may use it. */
  readonly home: string;
  readonly blobs: BlobStore;
  readonly payloadOf: PayloadOf;
  /** What the job's manifest declares as outputs. */
  readonly declaredOutputs: (jobId: string) => readonly DeclaredOutput[];
  readonly newId: () => string;
  readonly clock: Clock;
  /** Prefixes beside SVC_ under which workers find the contract's variables. */
  readonly workerEnvPrefixes: readonly string[];
  /** The runtime's own environment, from which workers inherit PATH, HOME, LANG, TZ, TMPDIR and pass_env. */
  readonly runtimeEnv: Readonly<Record<string, string | undefined>>;
  /** Those of the runtime itself, which no worker may show. */
  readonly runtimeSecrets: readonly string[];
  /** Whether commands run in sandboxes only. */
  readonly requireSandbox: () => boolean;
  /** Where the live events of a run are read; null, or absent, when nobody serves them. */
  readonly runEvents?: (runId: string) => RunEventsPlace | null;
  /** Lets an attempt ask the model that its node declares, until it is closed; absent: nobody serves any. */
  readonly openLlm?: (attempt: AskingAttempt) => Promise<LlmPlace & { close(): void }>;
  /** An agent's declared variables as they are on this machine; absent: as declared. */
  readonly environmentHere?: (
    agentId: string,
    declared: Readonly<Record<string, string>>,
  ) => Readonly<Record<string, string>>;
  readonly log: EngineLog;
}

/** An attempt whose node declares a model. */
export interface AskingAttempt {
  readonly runId: string;
  readonly agentId: string;
  readonly attempt: number;
  readonly need: LlmNeed;
  readonly tell: AttemptReport["events"];
}

export interface HostLocalTools extends WorkerTools {
  readonly groups: ControlGroups;
  readonly trash: Trash;
  readonly volumes: Volumes;
  readonly sandboxes: Sandboxes;
}

/** One attempt on its way through the pipeline. */
export interface Attempt {
  readonly task: TaskStart;
  readonly config: ExecutorConfig;
  readonly control: AttemptControl;
  readonly report: AttemptReport;
  readonly redactor: Redactor;
  readonly runEvents: RunEventsPlace | null;
  readonly llm: LlmPlace | null;
}

export class HostLocalRunner {
  readonly #options: HostLocalOptions;
  readonly #tools: HostLocalTools;
  readonly #places: AttemptPlaces;
  readonly #turns = new Semaphore(1);
  readonly #redactors = new Redactors();

  constructor(options: HostLocalOptions, tools: HostLocalTools) {
    this.#options = options;
    this.#tools = tools;
    this.#places = new AttemptPlaces(options, tools);
  }

  /** Whether an agent's folder is kept for further commands. */
  keeps(agent: string): boolean {
    return this.#places.keeps(agent);
  }

  /** Removes what is kept for further commands. To be called when no attempt is under way. */
  async close(): Promise<void> {
    await this.#places.close();
  }

  async run(
    task: OpenedTask,
    given: ExecutorConfig,
    control: AttemptControl,
    report: AttemptReport,
  ): Promise<TaskOutcome> {
    if (!isKnownRunner(given.runnerModule))
      return failed("executor.runner_unavailable", `There is no runner "${given.runnerModule}" here.`);
    if (isSandboxRunner(given.runnerModule) !== (given.sandbox !== null))
      throw new Error("A sandboxed command has no policy.");
    if (given.sandbox === null && this.#options.requireSandbox())
      return failed("sandbox.required", "SVC_REQUIRE_SANDBOX is true: commands run in sandboxes only.");
    await using open = new AsyncDisposableStack();
    const llm = await this.#openLlm(task, given.llm, report);
    if (llm !== null) open.defer(() => llm.close());
    const config = allowing(await withPolicy(given, task, this.#options.payloadOf), llm);
    if (config.module !== null) {
      const found = await findModule(task, config.module.path, this.#options.payloadOf);
      if (found.kind === "missing") return failed("module.load_failed", found.reason);
    }
    const runEvents = config.runEvents ? (this.#options.runEvents?.(task.runId) ?? null) : null;
    const shown = [
      ...task.secrets,
      ...this.#options.runtimeSecrets,
      ...(runEvents?.token == null ? [] : [runEvents.token]),
      ...(llm === null ? [] : [llm.key]),
    ];
    const secrets = secretsOf(config, shown, this.#options.runtimeEnv);
    const made = await this.#redactors.made(secrets);
    const redactor = config.longLived ? growingRedactor(this.#redactors, secrets, control.secrets) : made;
    const attempt = { task, config, control, report, redactor, runEvents, llm };
    const disarm = armTimeout(this.#options.clock, task, control);
    try {
      return await this.#attempt(attempt);
    } catch (error) {
      if (!(error instanceof AttemptFailure)) throw error;
      // Readers of a run must not learn where the home is on this machine.
      const message = error.message.replaceAll(this.#options.home, "SVC_HOME");
      return failed(error.code, attempt.redactor.text(message));
    } finally {
      disarm();
    }
  }

  async #openLlm({ runId, agentId, ref }: TaskStart, need: LlmNeed | null, report: AttemptReport) {
    const { openLlm } = this.#options;
    if (need == null || openLlm === undefined) return null;
    return openLlm({ runId, agentId, attempt: ref.attempt, need, tell: (events) => report.events(events) });
  }

  async #attempt(attempt: Attempt): Promise<TaskOutcome> {
    const { control } = attempt;
    await this.#turn();
    const places = await this.#places.prepare(attempt.task, attempt.config, attempt.report);
    let ended: CommandRun | null = null;
    try {
      if (control.reason !== null) return endedBeforeStart(attempt.task, attempt.config, control.reason);
      await using around = await openAround(attempt, places, { ...this.#tools, log: this.#options.log });
      ended = await this.#runCommand(attempt, places, around);
      return ended.outcome;
    } finally {
      await this.#places.putAway(places, ended);
    }
  }

  /**
   * Resolves in a turn of the event loop of its own: the files of many commands that start or end together would hold up
   * everything else.
   */
  #turn(): Promise<void> {
    return this.#turns.run(() => scheduler.yield());
  }

  async #runCommand(attempt: Attempt, places: Places, around: Around): Promise<CommandRun> {
    const { task, config, control, report, redactor } = attempt;
    const { group } = around;
    const kept = keptAmounts(config);
    const output = new AttemptOutput({
      attempt: task.ref.attempt,
      longLived: config.longLived,
      redactor,
      report,
    });
    const startedAtMs = performance.now();
    const worker = await this.#spawn(attempt, places, output, around);
    control.onEnd((graceMs) => void worker.end(graceMs));
    control.peaks = () => worker.peaks();
    control.responses.connect(this.#options.home, places.files.humanResponses);
    if (config.longLived) control.input.connect(worker);
    const exit = await worker.ended;
    await this.#turn();
    control.responses.close();
    output.flush();
    if (exit === null && !worker.askedToEnd) throw failureOfLoss();
    const ownCode = worker.askedToEnd ? 0 : (exit?.exitCode ?? 0);
    const unmade = ownCode === 0 ? null : around.sandbox?.failureOf(ownCode, output.carried().stderr);
    if (unmade != null) throw unmade;
    const { exitCode, signal, usage, memory } = exit ?? killed;
    const command: CommandResult = {
      exitCode,
      signal,
      usage,
      ...output.carried(),
      durationMs: Math.round(performance.now() - startedAtMs),
      ...(kept !== null && {
        enforcement: group?.enforcement ?? (memory === null ? "none" : "prlimit"),
      }),
    };
    const isMemoryShort = (await group?.ranOutOfMemory()) ?? (memory?.exceededBytes ?? null) !== null;
    const isWorkspaceEmpty = await this.#places.settle(places);
    if (places.volumes.length > 0) await this.#tellOverfull(attempt, places);
    const end: CommandEnd = {
      program: redactor.text(programOf(config)),
      command,
      reason: worker.askedToEnd ? control.reason : null,
      timeoutMs: task.timeoutMs,
      answerError: control.answerError,
      memoryExceeded: isMemoryShort
        ? { ownBytes: kept?.memoryBytes ?? 0, heldBytes: memory?.exceededBytes ?? null }
        : null,
    };
    const outcome = await conclude(attempt, places, output, end, this.#options);
    return { outcome, isTreeGone: worker.isTreeGone, isWorkspaceEmpty };
  }

  /** The next command that writes to them is refused. */
  async #tellOverfull({ task, report }: Attempt, { volumes }: Places): Promise<void> {
    for (const { need } of volumes) {
      if (!(await this.#tools.volumes.isOverfull(need))) continue;
      const text = `Volume "${need.name}" holds more now than its size_mb, or folders nested too deep: remove something before the next command that writes to it.`;
      report.events([logEvent("warn", "worker", text, task.ref.attempt)]);
    }
  }

  async #spawn(
    attempt: Attempt,
    places: Places,
    output: AttemptOutput,
    { sandbox, group }: Around,
  ): Promise<WorkerProcess> {
    const { task, report, redactor, runEvents, llm } = attempt;
    const { workerEnvPrefixes: prefixes, runtimeEnv, environmentHere } = this.#options;
    const { environment } = attempt.config;
    const config = {
      ...attempt.config,
      environment: environmentHere?.(task.agentId, environment) ?? environment,
    };
    const { trees } = this.#tools;
    const seen = sandbox?.places ?? places;
    const words = startWords(config, task, seen);
    const base = sandbox === null ? inheritedFrom(runtimeEnv) : sandboxEnvironment;
    const env = workerEnvironment({ config, task, places: seen, prefixes, runEvents, llm, runtimeEnv, base });
    const mark = trees.newMark();
    try {
      if (group !== null && sandbox === null)
        await requireExecutable(words.file, { cwd: places.workdir, path: env.PATH });
      const started = sandbox?.wrap(words, env) ?? { ...words, cwd: places.workdir, env, files: [] };
      return await WorkerProcess.start(
        {
          ...started,
          ...(group !== null && joining(group.joinPaths, started)),
          mark,
          pipes: places.pipes,
          takesInput: config.longLived,
          memoryBytes: group === null ? keptAmounts(config)?.memoryBytes || null : null,
          wrapped: sandbox,
        },
        {
          tools: this.#tools,
          sinks: {
            stdout: (chunk) => output.stdout(chunk),
            stderr: (chunk) => output.stderr(chunk),
            events: (chunk) => output.events(chunk),
            backpressure: () => report.backpressure(),
          },
        },
      );
    } catch (error) {
      trees.ended(mark, null);
      if (!(error instanceof SpawnerLost))
        throw failureOfSpawn(redactor.text(words.file), places.workdir, error, sandbox !== null);
      // It may have started the worker before it was lost. What this misses is found by the next sweep (process-trees.ts).
      await trees.sweep().catch(() => 0);
      await places.pipes.finish(async () => {});
      output.flush();
      throw failureOfLostStart();
    }
  }
}

/** A sandbox reaches the address at which its worker asks a model, whatever its policy lists. */
function allowing(config: ExecutorConfig, llm: LlmPlace | null): ExecutorConfig {
  const { sandbox } = config;
  if (sandbox === null || llm === null) return config;
  const { network } = sandbox;
  const allow = [...network.allow, new URL(llm.baseUrl).host];
  return { ...config, sandbox: { ...sandbox, network: { ...network, allow } } };
}

interface CommandRun extends Left {
  readonly outcome: TaskOutcome;
}

/** What failures call the command by: its program, or all of a shell script. */
function programOf({ command }: ExecutorConfig): string {
  return typeof command === "string" ? command : (command[0] ?? "");
}

/** How a worker ends that was asked to, unseen: whatever is left of it is killed. */
const killed = { exitCode: null, signal: "SIGKILL", usage: null, memory: null } as const;

function endedBeforeStart(task: TaskStart, { module }: ExecutorConfig, reason: EndReason): TaskOutcome {
  if (reason === "stopped" || reason === "draining") return interrupted(reason);
  if (module !== null) return timeoutOf(module.path, task.timeoutMs);
  return failed("executor.timeout", "The time was over before the command could be started.");
}
