// Operations: takes requests for long work, does the work with the handler of its kind, and sees it to its end.
//
// - Of one target at most one operation is open; a request for another one is refused.
// - An operation that is on disk is worked on until it has ended, over any number of restarts: the handler is called
//   again from its beginning, and finds out what is done already.
// - What its end brings about is in the transaction of its end.
// - Of several programs that share the records, the owner of an operation works on it (ownership.ts). One that has lost it
//   meanwhile writes nothing more of it, and leaves it alone.
// - A store that takes nothing delays an operation and does not fail it; an unexpected error fails it.
// - At most `atOnceMax` are worked on at the same time, in the order of their requests (work-queue.ts).

import type { JsonObject } from "../engine/json.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { EventFeed } from "../runs/feed.ts";
import { OperationFailed, OperationInterrupted, OperationLost, operationFailures } from "./failures.ts";
import {
  completed,
  type DeclaredStep,
  eventLine,
  failed,
  isOpen,
  type OperationChange,
  pending,
  running,
} from "./operation-change.ts";
import type { Ownership } from "./ownership.ts";
import { type OperationContext, OperationProgress, saveOwn } from "./progress.ts";
import type {
  Operation,
  OperationError,
  OperationKind,
  OperationRecords,
  OperationWrites,
} from "./records.ts";
import { isUnavailable, traceOf, WorkQueue } from "./work-queue.ts";

/** The result of the work. */
export interface OperationEnd<Writes> {
  readonly result: JsonObject;
  /** What belongs to the operation's end, in its transaction. @returns what is to be done after the commit */
  commit?(writes: Writes, nowMs: number): Promise<() => void>;
}

export interface OperationHandler<Writes> {
  readonly steps: readonly DeclaredStep[];
  /**
   * Does the work, or what is left of it.
   *
   * @throws OperationFailed when it cannot be done; JournalUnavailable or OperationInterrupted when it is to be called
   *   again
   */
  run(context: OperationContext): Promise<OperationEnd<Writes>>;
  /** In the transaction in which the operation fails; as OperationEnd.commit. */
  fail(writes: Writes, operation: Operation, nowMs: number): Promise<() => void>;
}

export interface OperationsParts<Writes extends { readonly operations: OperationWrites }> {
  readonly records: OperationRecords;
  readonly write: <T>(work: (writes: Writes) => Promise<T>) => Promise<T>;
  /** Of the kinds that are worked on here; others are left alone. */
  readonly handlers: Readonly<Partial<Record<OperationKind, OperationHandler<Writes>>>>;
  readonly atOnceMax: number;
  readonly ownership: Ownership;
  readonly feed: EventFeed;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly log: EngineLog;
}

export interface OperationRequest {
  readonly kind: OperationKind;
  readonly target: string;
  readonly request: JsonObject;
}

export class Operations<Writes extends { readonly operations: OperationWrites }> {
  readonly #parts: OperationsParts<Writes>;
  readonly #queue: WorkQueue;

  constructor(parts: OperationsParts<Writes>) {
    this.#parts = parts;
    const { atOnceMax, clock, log } = parts;
    this.#queue = new WorkQueue({
      what: "an operation",
      keyName: "operation_id",
      atOnceMax,
      work: (operationId, signal) => this.#work(operationId, signal),
      clock,
      log,
    });
  }

  /**
   * Writes an operation down, in a gateway transaction; `begin` is to be called after its commit.
   *
   * @throws DomainError `blueprint_busy`, `node_busy` or `model_busy` that names the operation which is open
   */
  async request(writes: Writes, { kind, target, request }: OperationRequest): Promise<Operation> {
    const { ownership, clock, newId, handlers } = this.#parts;
    const open = await writes.operations.open(target);
    if (open !== null) throw busy(open);
    const change = pending({
      operationId: `op_${newId()}`,
      kind,
      target,
      request,
      steps: handlers[kind]?.steps ?? [],
      owner: ownership.owner(),
      nowMs: clock.nowMs(),
    });
    await writes.operations.insert(change.operation, eventLine(change));
    return change.operation;
  }

  /** Begins the work of an operation that is on disk, once; nothing happens when it is another program's. */
  begin({ operationId }: Operation): void {
    this.#queue.add(operationId);
  }

  /** Begins what is open and this program's: what a predecessor has left, or what was taken over. */
  async recover(): Promise<void> {
    for (const operation of await this.#parts.records.openOperations()) this.begin(operation);
  }

  /** Interrupts what is under way, which stays open for the next start. */
  stop(): Promise<void> {
    return this.#queue.stop();
  }

  async #work(operationId: string, signal: AbortSignal): Promise<void> {
    const { records, write, ownership, clock, handlers } = this.#parts;
    const operation = await records.operation(operationId);
    if (operation === null || !isOpen(operation) || operation.owner !== ownership.owner()) return;
    const handler = handlers[operation.kind];
    if (handler === undefined) return;
    const published = (changed: Operation, line: string) => this.#published(changed, line);
    const context = new OperationProgress(operation, { write, published, clock, signal });
    try {
      if (operation.status === "pending") await context.change(running);
      const { result, commit } = await handler.run(context);
      await context.close();
      await this.#end(
        (nowMs) => completed(context.operation, result, nowMs),
        async (writes, _ended, nowMs) => (await commit?.(writes, nowMs)) ?? nothing,
      );
    } catch (error) {
      await context.close();
      if (error instanceof OperationLost) return;
      const isToBeTriedAgain = isUnavailable(error) || error instanceof OperationInterrupted;
      if (signal.aborted || isToBeTriedAgain) throw error;
      const failure = this.#failureOf(operation, error);
      await this.#end(
        (nowMs) => failed(context.operation, failure, nowMs),
        (writes, ended, nowMs) => handler.fail(writes, ended, nowMs),
      );
    }
  }

  #failureOf(operation: Operation, error: unknown): OperationError {
    if (error instanceof OperationFailed) {
      const { code, message } = error;
      return { code, detail: message, retryable: operationFailures[code].retryable };
    }
    const { operationId, kind, target } = operation;
    const fields = { operation_id: operationId, kind, target, error: traceOf(error) };
    this.#parts.log.error(fields, "an operation met an unexpected error");
    const detail = `The operation met an unexpected error. The server's log has its cause under ${operationId}; try again with a new Idempotency-Key.`;
    return { code: "internal", detail, retryable: operationFailures.internal.retryable };
  }

  async #end(
    make: (nowMs: number) => OperationChange,
    commit: (writes: Writes, ended: Operation, nowMs: number) => Promise<() => void>,
  ): Promise<void> {
    const { write, clock } = this.#parts;
    const nowMs = clock.nowMs();
    const change = make(nowMs);
    const line = eventLine(change);
    const afterwards = await write(async (writes) => {
      await saveOwn(writes, change.operation, line);
      return commit(writes, change.operation, nowMs);
    });
    this.#published(change.operation, line);
    afterwards();
  }

  #published({ operationId, eventSeq }: Operation, line: string): void {
    this.#parts.feed.published(operationId, eventSeq, [line]);
  }
}

const nothing = () => {};

const busyTexts = {
  blueprint_addition: ["Blueprint", "is being added"],
  blueprint_removal: ["Blueprint", "is being removed"],
  node_removal: ["Node", "is being removed"],
  node_leave: ["Node", "is made to leave"],
  node_join: ["Node", "is made to join"],
  model_installation: ["Model", "is being installed"],
  model_update: ["Model", "is being updated"],
  model_removal: ["Model", "is being removed"],
  model_serving: ["Model", "is being loaded"],
} as const satisfies Record<OperationKind, readonly [what: string, done: string]>;

const busyCodes = { Blueprint: "blueprint_busy", Node: "node_busy", Model: "model_busy" } as const;

export function busy(open: Operation): DomainError {
  const { operationId, kind, target } = open;
  const [what, done] = busyTexts[kind];
  return new DomainError(
    busyCodes[what],
    `${what} ${target.replace(/^model:/, "")} ${done} by operation ${operationId}. Follow it at /api/v1/operations/${operationId}, and try again once it has ended.`,
  );
}
