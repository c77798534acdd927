// Runs the attempts of this node's jobs, here or on the node that has granted their slots; and takes the reports of all
// attempts that run here to where they belong.

import type { Envelope } from "../../engine/message.ts";
import type {
  TaskEvent,
  TaskListener,
  TaskOutcome,
  TaskRef,
  TaskRunner,
  TaskStart,
  WorkerActions,
} from "../../engine/task-port.ts";
import type { TaskHost } from "./host.ts";
import type { TaskPeers } from "./peers.ts";

export class ClusterTaskRunner implements TaskRunner {
  readonly #local: TaskRunner;
  readonly #peers: TaskPeers;

  constructor(local: TaskRunner, peers: TaskPeers) {
    this.#local = local;
    this.#peers = peers;
  }

  start(task: TaskStart): void {
    const node = task.lease?.node;
    if (node === undefined) this.#local.start(task);
    else this.#peers.start(node, task);
  }

  stop(ref: TaskRef): void {
    this.#runnerOf(ref).stop(ref);
  }

  send(ref: TaskRef, envelope: Envelope): void {
    this.#runnerOf(ref).send(ref, envelope);
  }

  respond(ref: TaskRef, line: string): void {
    this.#runnerOf(ref).respond(ref, line);
  }

  #runnerOf(ref: TaskRef): Pick<TaskRunner, "stop" | "send" | "respond"> {
    return this.#peers.has(ref) ? this.#peers : this.#local;
  }
}

/** The listener of the node's own runner: attempts are the engine's, or those of another node's job. */
export class LocalReports implements TaskListener {
  readonly #engine: () => TaskListener;
  readonly #host: TaskHost;

  constructor(engine: () => TaskListener, host: TaskHost) {
    this.#engine = engine;
    this.#host = host;
  }

  taskEvents(ref: TaskRef, events: readonly TaskEvent[]): void {
    this.#listenerOf(ref).taskEvents(ref, events);
  }

  taskActions(ref: TaskRef, actions: WorkerActions): void {
    this.#listenerOf(ref).taskActions(ref, actions);
  }

  taskEnded(ref: TaskRef, outcome: TaskOutcome): void {
    this.#listenerOf(ref).taskEnded(ref, outcome);
  }

  backpressure(ref: TaskRef): Promise<void> | null {
    return this.#listenerOf(ref).backpressure(ref);
  }

  #listenerOf(ref: TaskRef): TaskListener {
    return this.#host.has(ref) ? this.#host : this.#engine();
  }
}
