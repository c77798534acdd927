// Runs tasks outside the engine: the TaskRunner port over commands, modules and file sensors.
//
// - Every `start` is answered by exactly one `taskEnded`, and by no call from within `start` itself.
// - After `drain` nothing runs: no process, thread or timer of any attempt is left.
// - Before the first start, `endPredecessors` ends what an earlier runtime of this home had left running.

import { dirname, join } from "node:path";
import { failureMessage } from "../engine/failure.ts";
import type { JsonValue } from "../engine/json.ts";
import type { Envelope } from "../engine/message.ts";
import type {
  RunningAttempt,
  TaskListener,
  TaskOutcome,
  TaskRef,
  TaskRunner,
  TaskStart,
} from "../engine/task-port.ts";
import { isInside } from "../lib/paths.ts";
import type { DecryptedBody, DecryptedConfiguration } from "../security/configuration.ts";
import { ConfigurationUnreadable } from "../security/configuration-decryption.ts";
import { Leftovers } from "./leftovers.ts";
import { ControlGroups } from "./process/control-groups.ts";
import { Daemons } from "./process/daemons.ts";
import { FifoSupply } from "./process/pipes.ts";
import { ProcessTrees } from "./process/process-trees.ts";
import { SideCommands } from "./process/side-command.ts";
import { Spawner } from "./process/spawner.ts";
import type { Peaks } from "./process/usage.ts";
import {
  AttemptControl,
  AttemptFailure,
  type AttemptReport,
  failed,
  interrupted,
  type OpenedTask,
} from "./runner/attempt.ts";
import { watchFile } from "./runner/file-sensor.ts";
import { type HostLocalOptions, HostLocalRunner } from "./runner/host-local.ts";
import { ModuleRunner } from "./runner/module-runner.ts";
import { agentFolders, attemptFolder } from "./runner/paths.ts";
import { Trash } from "./runner/trash.ts";
import type { Sandboxes } from "./sandbox/sandboxes.ts";
import { type VolumeOwners, Volumes } from "./volumes.ts";

export interface LocalTaskRunnerOptions extends HostLocalOptions {
  /**
   * Opens a job's stored configuration, and tells which texts in it must not be shown.
   *
   * @throws ConfigurationUnreadable
   */
  readonly openConfiguration: (json: string) => Promise<DecryptedConfiguration>;
  /** Opens the body of a message. @throws ConfigurationUnreadable */
  readonly openBody: (body: JsonValue) => DecryptedBody;
  readonly sandboxes: Sandboxes;
  /** Absent: no other node has the database. */
  readonly volumeOwners?: VolumeOwners;
  /** Absent: those of this machine. */
  readonly controlGroups?: ControlGroups;
}

interface Running {
  readonly task: TaskStart;
  readonly control: AttemptControl;
  readonly ended: Promise<void>;
}

/** How long after an attempt the machine is searched for processes that escaped it. */
const SWEEP_AFTER_MS = 5_000;
/** How long daemons may take to end when the runner drains. */
const DAEMON_GRACE_MS = 5_000;

export class LocalTaskRunner implements TaskRunner {
  /** Programs beside the tasks; they end when the runner drains. */
  readonly sideCommands: SideCommands;
  /** As they, and they run until they are told to end. */
  readonly daemons: Daemons;
  readonly leftovers: Leftovers;
  readonly volumes: Volumes;
  readonly #options: LocalTaskRunnerOptions;
  readonly #trees: ProcessTrees;
  readonly #spawner = new Spawner(
    (pid) => this.#trees.spare(pid),
    () => this.#onLeaseOver(),
  );
  readonly #groups: ControlGroups;
  readonly #fifos: FifoSupply;
  readonly #trash: Trash;
  readonly #commands: HostLocalRunner;
  readonly #modules: ModuleRunner;
  readonly #running = new Map<string, Running>();
  #listener: TaskListener | null = null;
  #draining = false;
  #mayRunUntilMs = Number.POSITIVE_INFINITY;
  #onLeaseOver: () => void = () => {};
  #cancelSweep: (() => void) | null = null;

  constructor(options: LocalTaskRunnerOptions) {
    this.#options = options;
    this.#groups = options.controlGroups ?? new ControlGroups();
    this.#trees = new ProcessTrees(options.home, options.clock);
    this.sideCommands = new SideCommands({ ...options, trees: this.#trees });
    this.#fifos = new FifoSupply(join(options.home, "tmp", "pipes"));
    this.daemons = new Daemons({
      trees: this.#trees,
      spawner: this.#spawner,
      fifos: this.#fifos,
      clock: options.clock,
    });
    const discarded = join(options.home, "tmp", "attempts");
    this.#trash = new Trash(options.home, discarded, options.clock, options.log);
    this.volumes = new Volumes(options.home, options.volumeOwners ?? null);
    this.#commands = new HostLocalRunner(options, {
      trees: this.#trees,
      spawner: this.#spawner,
      groups: this.#groups,
      fifos: this.#fifos,
      trash: this.#trash,
      volumes: this.volumes,
      sandboxes: options.sandboxes,
      clock: options.clock,
    });
    this.#modules = new ModuleRunner(options);
    this.leftovers = new Leftovers({
      home: options.home,
      trees: this.#trees,
      trash: this.#trash,
      isInUse: (path) => this.#isInUse(path),
    });
  }

  /** Sets whom outcomes and events are reported to; once, before the first start. */
  setListener(listener: TaskListener): void {
    this.#listener = listener;
  }

  /**
   * Ends every process that an earlier runtime of this home had started and left running. To be called before
   * jobs are recovered.
   *
   * @returns how many processes were ended
   * @throws when some do not end even so
   */
  async endPredecessors(): Promise<number> {
    const [ended] = await Promise.all([this.#trees.endStrays(), this.#groups.open()]);
    return ended;
  }

  start(task: TaskStart): void {
    const key = keyOf(task.ref);
    if (this.#running.has(key)) {
      this.#options.log.error(
        { job_id: task.ref.jobId, task: task.ref.taskSeq },
        "An attempt was started twice.",
      );
      return;
    }
    const control = new AttemptControl();
    if (this.#draining) control.end("draining");
    if (this.#options.clock.steadyMs() >= this.#mayRunUntilMs) control.end("stopped");
    // The promise job runs after `start` has returned.
    const ended = Promise.resolve().then(() => this.#run(task, control));
    this.#running.set(key, { task, control, ended });
  }

  stop(ref: TaskRef, graceMs?: number): void {
    this.#running.get(keyOf(ref))?.control.end("stopped", graceMs);
  }

  send(ref: TaskRef, envelope: Envelope): void {
    const running = this.#running.get(keyOf(ref));
    if (running === undefined || !isLongLived(running.task)) return;
    const { control } = running;
    const line = this.#openedLine(ref, envelope, control);
    if (line !== null && !control.input.send(line)) control.end("input_unread");
  }

  respond(ref: TaskRef, line: string): void {
    this.#running.get(keyOf(ref))?.control.responses.add(line);
  }

  /**
   * From now on attempts may run until `steadyMs` only: what runs then is ended from outside of this process.
   *
   * @param onOver told before any outcome that comes of that
   */
  mayRunUntil(steadyMs: number, onOver: () => void): void {
    this.#mayRunUntilMs = steadyMs;
    this.#onLeaseOver = onOver;
    this.#spawner.mayRunFor(() => steadyMs - this.#options.clock.steadyMs());
  }

  /** Whether an attempt is under way. */
  has(ref: TaskRef): boolean {
    return this.#running.has(keyOf(ref));
  }

  /** The most that the command of an attempt that runs here was seen to use; null when nothing was. */
  async peaksOf(ref: TaskRef): Promise<Peaks | null> {
    return (await this.#running.get(keyOf(ref))?.control.peaks()) ?? null;
  }

  /** The attempts that are under way and were not asked to end. */
  get attempts(): readonly RunningAttempt[] {
    const going = [...this.#running.values()].filter(({ control }) => control.reason === null);
    return going.map(({ task: { ref, runId } }) => ({ ref, runId }));
  }

  /** @param path of an attempt's folder, or of a run's */
  #isInUse(path: string): boolean {
    const { home } = this.#options;
    const isOf = ({ task: { runId, agentId, ref } }: Running) =>
      isInside(path, attemptFolder(agentFolders(home, runId, agentId), ref));
    return [...this.#running.values()].some(isOf) || this.#commands.keeps(dirname(dirname(path)));
  }

  /** Attempts that are under way. */
  get running(): number {
    return this.#running.size;
  }

  /** Resolves when no attempt is under way. */
  async ended(): Promise<void> {
    while (this.#running.size > 0) await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  /** Resolves when no attempt of the run is under way. */
  async commandsEnded(runId: string): Promise<void> {
    const ofRun = () => [...this.#running.values()].filter(({ task }) => task.runId === runId);
    for (let running = ofRun(); running.length > 0; running = ofRun()) {
      await Promise.all(running.map(({ ended }) => ended));
    }
  }

  /**
   * Shuts down: attempts get `graceMs` to end by themselves, except those that would never end; then they are
   * asked to. Attempts started from now on are reported as interrupted. Resolves when nothing is left running.
   */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true;
    for (const { task, control } of this.#running.values()) if (isEndless(task)) control.end("draining");
    await this.#allEndedOr(graceMs);
    for (const { control } of this.#running.values()) control.end("draining");
    await this.ended();
    this.#cancelSweep?.();
    await Promise.all([this.sideCommands.close(), this.daemons.close(DAEMON_GRACE_MS)]);
    await this.#trees.endStrays().catch((error: unknown) => {
      this.#options.log.warn({ error: String(error) }, "Some processes of ended commands may be left.");
    });
    await this.#commands.close();
    await Promise.all([
      this.#modules.close(),
      this.#spawner.close(),
      this.#fifos.close(),
      this.#trash.close(),
      this.#groups.close(),
      this.#options.sandboxes.close(),
    ]);
  }

  async #allEndedOr(graceMs: number): Promise<void> {
    if (this.#running.size === 0) return;
    let cancel = () => {};
    const graceOver = new Promise<void>((resolve) => {
      cancel = this.#options.clock.after(graceMs, resolve);
    });
    await Promise.race([graceOver, Promise.all([...this.#running.values()].map(({ ended }) => ended))]);
    cancel();
  }

  async #run(task: TaskStart, control: AttemptControl): Promise<void> {
    const outcome = bounded(await this.#outcomeOf(task, control));
    this.#running.delete(keyOf(task.ref));
    if (task.kind === "command") this.#sweepLater();
    this.#listener?.taskEnded(task.ref, outcome);
  }

  async #outcomeOf(task: TaskStart, control: AttemptControl): Promise<TaskOutcome> {
    if (control.reason !== null) return interrupted(control.reason);
    try {
      return await this.#dispatch(task, control, this.#reportFor(task.ref));
    } catch (error) {
      if (error instanceof AttemptFailure) return failed(error.code, error.message);
      const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#options.log.error(
        { job_id: task.ref.jobId, agent_id: task.agentId, error: stack },
        "An attempt was lost.",
      );
      return failed("executor.outcome_lost", "The runner failed before it could report an outcome.");
    }
  }

  async #dispatch(task: TaskStart, control: AttemptControl, report: AttemptReport): Promise<TaskOutcome> {
    const { config } = task;
    switch (config.kind) {
      case "executor":
        return this.#commands.run(await this.#opened(task), config, control, report);
      case "module":
        return this.#modules.run(await this.#opened(task), config, control, report);
      case "sensor":
        return watchFile(task, config, control, report, this.#options);
      case "router":
      case "aggregator":
        throw new Error(`An agent of type ${config.kind} has no tasks.`);
      default:
        return config satisfies never;
    }
  }

  async #opened(task: TaskStart): Promise<OpenedTask> {
    const { configurationJson, envelope } = task;
    const { openConfiguration, openBody } = this.#options;
    try {
      const { body, secrets } = openBody(envelope.body);
      const opened = { ...task, envelope: { ...envelope, body }, secrets };
      if (configurationJson === null) return opened;
      const configuration = await openConfiguration(configurationJson);
      return {
        ...opened,
        configurationJson: configuration.json,
        secrets: [...configuration.secrets, ...secrets],
      };
    } catch (error) {
      if (error instanceof ConfigurationUnreadable) throw new AttemptFailure(error.code, error.message);
      throw error;
    }
  }

  /** @returns null, and ends the worker, when its message cannot be opened: the next attempt says why */
  #openedLine(ref: TaskRef, envelope: Envelope, control: AttemptControl): string | null {
    try {
      const { body, secrets } = this.#options.openBody(envelope.body);
      control.secrets.push(...secrets);
      return JSON.stringify({ ...envelope, body });
    } catch (error) {
      if (!(error instanceof ConfigurationUnreadable)) throw error;
      this.#options.log.error(
        { job_id: ref.jobId, error: error.message },
        "A message could not be decrypted.",
      );
      control.end("input_unread");
      return null;
    }
  }

  #reportFor(ref: TaskRef): AttemptReport {
    return {
      events: (events) => this.#listener?.taskEvents(ref, events),
      actions: (actions) => this.#listener?.taskActions(ref, actions),
      backpressure: () => this.#listener?.backpressure(ref) ?? null,
    };
  }

  /** Searches for escaped processes a while after a command has run of which something may be left. */
  #sweepLater(): void {
    if (!this.#trees.mayHaveEscaped || this.#cancelSweep !== null || this.#draining) return;
    this.#cancelSweep = this.#options.clock.after(SWEEP_AFTER_MS, () => {
      this.#cancelSweep = null;
      this.#trees.sweep().then(
        (count) => {
          if (count > 0)
            this.#options.log.warn({ count }, "Processes that had escaped their command were ended.");
        },
        (error: unknown) =>
          this.#options.log.warn({ error: String(error) }, "Escaped processes were not searched for."),
      );
    });
  }
}

/** The message of a worker or a module about its failure may be of any length. */
function bounded(outcome: TaskOutcome): TaskOutcome {
  return outcome.kind === "failed" ? { ...outcome, message: failureMessage(outcome.message) } : outcome;
}

function isEndless(task: TaskStart): boolean {
  return task.config.kind === "sensor" || isLongLived(task);
}

function isLongLived({ config }: TaskStart): boolean {
  return config.kind === "executor" && config.longLived;
}

function keyOf({ jobId, taskSeq, attempt }: TaskRef): string {
  return `${taskSeq} ${attempt} ${jobId}`;
}
