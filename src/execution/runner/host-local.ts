// The host-local runner: one attempt of a command as a pipeline of stage, start, stream, collect, report.
//
// - Whatever goes wrong, an attempt ends in an outcome: what the worker does is the worker's failure, what the
//   machine does is an infrastructure failure that may be tried again.
// - When the outcome is reported no process of the worker's group is left, and the attempt's folder is out of
//   the way.
// - A worker's secrets reach the worker only: logs, events, failures and carried output are redacted.

import { basename, dirname, relative } from "node:path";
import { scheduler } from "node:timers/promises";
import { type DeclaredOutput, type ExecutorConfig, isKnownRunner, outputName } from "../../engine/graph.ts";
import type { Clock, EngineLog } from "../../engine/ports.ts";
import {
  type ArtifactRecord,
  type CommandResult,
  noActions,
  type TaskOutcome,
  type TaskStart,
} from "../../engine/task-port.ts";
import { Semaphore } from "../../lib/async.ts";
import { makeFolder } from "../../lib/files.ts";
import { OpenFolder } from "../../lib/open-folder.ts";
import { type BlobStore, collectArtifacts } from "../output/artifacts.ts";
import { AttemptOutput, redactActions } from "../output/attempt-output.ts";
import { logEvent } from "../output/event-stream.ts";
import { growingRedactor, type Redactor, Redactors, secretsOf } from "../output/redaction.ts";
import type { NamedOutput } from "../output/result.ts";
import { SpawnerLost } from "../process/spawner.ts";
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
import {
  type CommandEnd,
  failureOfEnd,
  failureOfLoss,
  failureOfLostStart,
  failureOfSpawn,
  failureOfSystem,
} from "./command-failure.ts";
import { type AgentFolders, agentFolders, attemptFolder, type PayloadOf } from "./paths.ts";
import { SpareFolders } from "./spare-folders.ts";
import { StagingError } from "./staging.ts";
import type { Trash } from "./trash.ts";
import {
  commandWords,
  findBrought,
  findWorkdir,
  type RunEventsPlace,
  type WorkerPlaces,
  workerEnvironment,
  writeAttemptFiles,
} from "./worker-contract.ts";
import { WorkerProcess, type WorkerTools } from "./worker-process.ts";
import { Workspaces } from "./workspace.ts";

/** Secrets that are opened and redacted without a pause in between. */
const SECRETS_AT_ONCE = 100;

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
  /** Where the live events of a run are read; null, or absent, when nobody serves them. */
  readonly runEvents?: (runId: string) => RunEventsPlace | null;
  readonly log: EngineLog;
}

export interface HostLocalTools extends WorkerTools {
  readonly trash: Trash;
}

/** What an attempt has on disk. */
interface Places extends WorkerPlaces {
  readonly folders: AgentFolders;
  /** The agent's folder; open until the attempt is over. */
  readonly agent: OpenFolder;
  /** Whether they were another attempt's before. */
  readonly isSpare: boolean;
}

/** One attempt on its way through the pipeline. */
interface Attempt {
  readonly task: TaskStart;
  readonly config: ExecutorConfig;
  readonly control: AttemptControl;
  readonly report: AttemptReport;
  readonly redactor: Redactor;
  readonly runEvents: RunEventsPlace | null;
}

export class HostLocalRunner {
  readonly #options: HostLocalOptions;
  readonly #tools: HostLocalTools;
  readonly #workspaces = new Workspaces();
  readonly #spareFolders: SpareFolders;
  readonly #turns = new Semaphore(1);
  readonly #redactors = new Redactors();

  constructor(options: HostLocalOptions, tools: HostLocalTools) {
    this.#options = options;
    this.#tools = tools;
    this.#spareFolders = new SpareFolders(options.home, tools.trash, options.clock, options.log);
  }

  /** Removes what is kept for further commands. To be called when no attempt is under way. */
  async close(): Promise<void> {
    await this.#spareFolders.close();
  }

  async run(
    task: OpenedTask,
    config: ExecutorConfig,
    control: AttemptControl,
    report: AttemptReport,
  ): Promise<TaskOutcome> {
    if (!isKnownRunner(config.runnerModule)) {
      return failed("executor.runner_unavailable", `There is no runner "${config.runnerModule}" here.`);
    }
    const runEvents = config.runEvents ? (this.#options.runEvents?.(task.runId) ?? null) : null;
    const given = [
      ...task.secrets,
      ...this.#options.runtimeSecrets,
      ...(runEvents?.token == null ? [] : [runEvents.token]),
    ];
    const secrets = secretsOf(config, given, this.#options.runtimeEnv);
    // Hundreds have just taken milliseconds to open, and take as long to make a redactor of.
    if (secrets.length > SECRETS_AT_ONCE) await scheduler.yield();
    const redactor = config.longLived
      ? growingRedactor(this.#redactors, secrets, control.secrets)
      : this.#redactors.of(secrets);
    const attempt = { task, config, control, report, redactor, runEvents };
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

  async #attempt(attempt: Attempt): Promise<TaskOutcome> {
    const { control } = attempt;
    await this.#turn();
    const places = await this.#prepare(attempt);
    let ended: CommandRun | null = null;
    try {
      if (control.reason !== null) return endedBeforeStart(control.reason);
      ended = await this.#runCommand(attempt, places);
      return ended.outcome;
    } finally {
      await this.#putAway(places, ended).catch((error: unknown) => {
        this.#options.log.warn(
          { folder: places.files.folder, error: String(error) },
          "An attempt's folder is left.",
        );
      });
      places.agent[Symbol.dispose]();
    }
  }

  /**
   * Resolves in a turn of the event loop of its own: the files of many commands that start or end together would hold up
   * everything else.
   */
  #turn(): Promise<void> {
    return this.#turns.run(() => scheduler.yield());
  }

  async #prepare({ task, config, report }: Attempt): Promise<Places> {
    const { home, payloadOf } = this.#options;
    const folders = agentFolders(home, task.runId, task.agentId);
    const folder = attemptFolder(folders, task.ref);
    const payload = payloadOf(task);
    using opened = new DisposableStack();
    try {
      const uploads = config.uploadPaths;
      const spare = uploads.length === 0 ? this.#spareFolders.take(folders, basename(folder)) : null;
      if (spare !== null) this.#workspaces.adopt(folders);
      const isSpare = spare !== null;
      const agent = opened.use(spare ?? this.#agentFolder(folders));
      const changes = await this.#workspaces.prepare({ folders, agent, payload, uploads });
      if (changes.length > 0) {
        const event = { attempt: task.ref.attempt, changes, action: "staged_afresh" };
        report.events([{ type: "workspace_modified", payload: event }]);
      }
      const workdir = await findWorkdir(config, folders.work);
      const files = await writeAttemptFiles(task, { path: folders.agent, open: agent, isSpare }, folder);
      const brought = findBrought(home, task);
      const { work: workspace, shared: runFolder } = folders;
      opened.move();
      return { files, workspace, workdir, runFolder, brought, folders, agent, isSpare };
    } catch (error) {
      if (error instanceof StagingError) throw new AttemptFailure("executor.staging_failed", error.message);
      throw failureOfSystem("The agent's workspace could not be prepared", error);
    }
  }

  /** Removes the attempt's folder; all of the agent's when the command has left nothing in its workspace. */
  async #putAway({ files, folders, agent }: Places, ended: CommandRun | null): Promise<void> {
    const { trash } = this.#tools;
    if (ended?.hasLeftNothing !== true) return await trash.discard(files.folder);
    this.#workspaces.forget(folders);
    if (ended.isTreeGone && this.#spareFolders.keep(folders, agent, basename(files.folder))) return;
    await trash.discard(files.folder);
    await trash.discard(folders.agent);
  }

  /** Makes what an agent shares with its run, and opens its own folder. @throws SymlinkInPath */
  #agentFolder({ shared, agent }: AgentFolders): OpenFolder {
    const runFolder = dirname(shared);
    using run = OpenFolder.madeBelow(this.#options.home, relative(this.#options.home, runFolder));
    makeFolder(run.path(basename(shared)), 0o700);
    return run.made(relative(runFolder, agent));
  }

  async #runCommand(attempt: Attempt, places: Places): Promise<CommandRun> {
    const { task, config, control, report, redactor } = attempt;
    const output = new AttemptOutput({
      attempt: task.ref.attempt,
      longLived: config.longLived,
      redactor,
      report,
    });
    const startedAtMs = performance.now();
    const worker = await this.#spawn(attempt, places, output);
    control.onEnd(() => void worker.end());
    control.responses.connect(this.#options.home, places.files.humanResponses);
    if (config.longLived) control.input.connect(worker);
    const exit = await worker.ended;
    await this.#turn();
    control.responses.close();
    output.flush();
    if (exit === null && !worker.askedToEnd) throw failureOfLoss();
    const { exitCode, signal, usage } = exit ?? killed;
    const command: CommandResult = {
      exitCode,
      signal,
      usage,
      ...output.carried(),
      durationMs: Math.round(performance.now() - startedAtMs),
    };
    const isWorkspaceEmpty = await this.#settle(places);
    const end: CommandEnd = {
      program: redactor.text(programOf(config)),
      command,
      reason: worker.askedToEnd ? control.reason : null,
      timeoutMs: task.timeoutMs,
      answerError: control.answerError,
    };
    const outcome = await this.#conclude(attempt, places, output, end);
    const hasLeftNothing = isWorkspaceEmpty && config.uploadPaths.length === 0;
    return { outcome, isTreeGone: worker.isTreeGone, hasLeftNothing };
  }

  async #spawn(attempt: Attempt, places: Places, output: AttemptOutput): Promise<WorkerProcess> {
    const { task, config, report, redactor, runEvents } = attempt;
    const { workerEnvPrefixes: prefixes, runtimeEnv } = this.#options;
    const { trees } = this.#tools;
    const words = commandWords(config, task, places);
    const mark = trees.newMark();
    try {
      using folder = places.agent.folder(relative(places.folders.agent, places.files.folder));
      return await WorkerProcess.start(
        {
          ...words,
          cwd: places.workdir,
          env: workerEnvironment({ config, task, places, prefixes, runEvents, runtimeEnv }),
          mark,
          eventStreamPath: folder.path(basename(places.files.eventStream)),
          hasEventStream: places.isSpare,
          takesInput: config.longLived,
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
        throw failureOfSpawn(redactor.text(words.file), places.workdir, error);
      // It may have started the worker before it was lost. What this misses is found by the next sweep (process-trees.ts).
      await trees.sweep().catch(() => 0);
      throw failureOfLostStart();
    }
  }

  /** @returns whether the workspace is empty */
  async #settle({ folders, agent }: Places): Promise<boolean> {
    try {
      return await this.#workspaces.settle(folders, agent);
    } catch (error) {
      this.#options.log.warn(
        { folder: folders.agent, error: String(error) },
        "The state of an agent's workspace could not be noted; changes by others will not be noticed.",
      );
      return false;
    }
  }

  /** Turns a command that has ended into its outcome: why it ended, what it asked for, what it left. */
  async #conclude(
    attempt: Attempt,
    places: WorkerPlaces,
    output: AttemptOutput,
    end: CommandEnd,
  ): Promise<TaskOutcome> {
    const { redactor } = attempt;
    const { command } = end;
    if (end.reason === "stopped" || end.reason === "draining") return interrupted(end.reason);
    if (end.reason === "answer_unwritten") {
      const { ref, agentId } = attempt.task;
      const fields = { job_id: ref.jobId, agent_id: agentId, error: String(end.answerError) };
      this.#options.log.warn(fields, "A person's answer could not be written; the attempt was ended.");
    }
    const reading = output.result();
    const named = reading.kind === "result" ? reading.outputs : output.outputs;
    let artifacts: readonly ArtifactRecord[] = [];
    let failure = failureOfEnd(end);
    if (failure === null && reading.kind === "invalid")
      failure = new AttemptFailure(reading.code, reading.message);
    try {
      artifacts = await this.#collect(attempt, places, named);
    } catch (error) {
      failure ??= new AttemptFailure(
        "executor.artifact_failed",
        `An artifact could not be kept: ${String(error)}`,
      );
    }
    if (failure !== null) {
      return {
        kind: "failed",
        code: failure.code,
        message: redactor.text(failure.message),
        command,
        artifacts,
      };
    }
    const actions = reading.kind === "result" ? redactActions(reading.actions, redactor) : noActions;
    return { kind: "succeeded", actions, command, artifacts, observation: null };
  }

  async #collect(
    { task, report, redactor }: Attempt,
    places: WorkerPlaces,
    named: readonly NamedOutput[],
  ): Promise<readonly ArtifactRecord[]> {
    const { blobs, newId, clock, declaredOutputs } = this.#options;
    const warn = (message: string) =>
      report.events([logEvent("warn", "worker", redactor.text(message), task.ref.attempt)]);
    const artifacts = await collectArtifacts({
      home: this.#options.home,
      folder: places.files.output,
      agentId: task.agentId,
      blobs,
      newId,
      nowMs: clock.nowMs(),
      outputs: [...declaredOutputs(task.ref.jobId), ...named],
      warn,
    });
    const kept = new Set(artifacts.map(({ name }) => name));
    const missing = named.filter((output) => !kept.has(outputName(output)));
    if (missing.length > 0) {
      const names = missing.slice(0, 10).map(({ path }) => JSON.stringify(path));
      warn(`The result names outputs that are no regular files in SVC_OUTPUT_DIR: ${names.join(", ")}.`);
    }
    return artifacts.map((artifact) => ({
      ...artifact,
      name: redactor.text(artifact.name),
      title: artifact.title === null ? null : redactor.text(artifact.title),
    }));
  }
}

/** A command that has ended. */
interface CommandRun {
  readonly outcome: TaskOutcome;
  /** Whether no process of it is left for sure. */
  readonly isTreeGone: boolean;
  /** Whether its agent's workspace is empty, and has nothing to be staged. */
  readonly hasLeftNothing: boolean;
}

/** What failures call the command by: its program, or all of a shell script. */
function programOf({ command }: ExecutorConfig): string {
  return typeof command === "string" ? command : (command[0] ?? "");
}

/** How a worker ends that was asked to, unseen: whatever is left of it is killed. */
const killed = { exitCode: null, signal: "SIGKILL", usage: null } as const;

function endedBeforeStart(reason: EndReason): TaskOutcome {
  if (reason === "stopped" || reason === "draining") return interrupted(reason);
  return failed("executor.timeout", "The time was over before the command could be started.");
}
