// Operations: takes requests for long work, does the work with the handler of its kind, and sees it to its end.
//
// A1. Of one target at most one operation is open; a request for another one is refused.
// A2. An operation that is on disk is worked on until it has ended, over any number of restarts: the handler is called
//     again from its beginning, and finds by itself what is done already.
// A3. What its end brings about is in the transaction of its end.
// A4. A store that takes nothing delays an operation and does not fail it; an error that nobody foresaw fails it.
// A5. At most AT_ONCE_MAX are worked on at the same time, in the order of their requests.

import { JournalUnavailable } from "../engine/journal.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { EventFeed } from "../runs/feed.ts";
import { OperationFailed, OperationInterrupted, operationFailures } from "./failures.ts";
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
import { type OperationContext, OperationProgress } from "./progress.ts";
import type {
  Operation,
  OperationError,
  OperationKind,
  OperationRecords,
  OperationWrites,
} from "./records.ts";

const AT_ONCE_MAX = 4;
const RETRY_MS = 1_000;

/** What the work has come to. */
export interface OperationEnd<Writes> {
  readonly result: JsonObject;
  /** What belongs to the operation's end, in its transaction (A3). @returns what is to be done after the commit */
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
  readonly handlers: Readonly<Record<OperationKind, OperationHandler<Writes>>>;
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
  readonly #queue = new Set<string>();
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #retries = new Map<string, () => void>();
  readonly #stopping = new AbortController();

  constructor(parts: OperationsParts<Writes>) {
    this.#parts = parts;
  }

  /**
   * Writes an operation down, in a gateway transaction; `begin` is to be called after its commit.
   *
   * @throws DomainError `blueprint_busy` that names the operation which is open (A1)
   */
  async request(writes: Writes, { kind, target, request }: OperationRequest): Promise<Operation> {
    const { clock, newId, handlers } = this.#parts;
    const open = await writes.operations.open(target);
    if (open !== null) throw busy(open);
    const change = pending({
      operationId: `op_${newId()}`,
      kind,
      target,
      request,
      steps: handlers[kind].steps,
      nowMs: clock.nowMs(),
    });
    await writes.operations.insert(change.operation, eventLine(change));
    return change.operation;
  }

  /** Begins the work of an operation that is on disk; one that was begun before goes on as it does. */
  begin({ operationId }: Operation): void {
    if (this.#underWay.has(operationId) || this.#retries.has(operationId)) return;
    this.#queue.add(operationId);
    this.#fill();
  }

  /** Takes up what a predecessor has left. */
  async recover(): Promise<void> {
    for (const operation of await this.#parts.records.openOperations()) this.begin(operation);
  }

  /** Interrupts what is under way, which stays open for the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const cancel of this.#retries.values()) cancel();
    this.#retries.clear();
    this.#queue.clear();
    await Promise.all(this.#underWay.values());
  }

  #fill(): void {
    for (const operationId of this.#queue) {
      if (this.#underWay.size >= AT_ONCE_MAX || this.#stopping.signal.aborted) return;
      this.#queue.delete(operationId);
      const work = this.#work(operationId).finally(() => {
        this.#underWay.delete(operationId);
        this.#fill();
      });
      this.#underWay.set(operationId, work);
    }
  }

  /** Never rejects. */
  async #work(operationId: string): Promise<void> {
    try {
      const operation = await this.#parts.records.operation(operationId);
      if (operation !== null && isOpen(operation)) await this.#see(operation);
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      if (!isPassing(error)) {
        this.#parts.log.error(
          { operation_id: operationId, error: traceOf(error) },
          "an operation is tried again",
        );
      }
      this.#retryLater(operationId);
    }
  }

  #retryLater(operationId: string): void {
    const again = () => {
      this.#retries.delete(operationId);
      this.#queue.add(operationId);
      this.#fill();
    };
    this.#retries.set(operationId, this.#parts.clock.after(RETRY_MS, again));
  }

  async #see(operation: Operation): Promise<void> {
    const { write, clock, handlers } = this.#parts;
    const handler = handlers[operation.kind];
    const published = (changed: Operation, line: string) => this.#published(changed, line);
    const { signal } = this.#stopping;
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
      if (signal.aborted || isPassing(error)) throw error;
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
    this.#parts.log.error(fields, "an operation met an error that nobody foresaw");
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
      await writes.operations.save(change.operation, line);
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

/** Whether the same work may be tried again as it is. */
function isPassing(error: unknown): boolean {
  return error instanceof JournalUnavailable || error instanceof OperationInterrupted;
}

export function busy(open: Operation): DomainError {
  const what = open.kind === "blueprint_addition" ? "added" : "removed";
  return new DomainError(
    "blueprint_busy",
    `Blueprint ${open.target} is being ${what} by operation ${open.operationId}. Follow it at /api/v1/operations/${open.operationId}, and try again once it has ended.`,
  );
}

function traceOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
