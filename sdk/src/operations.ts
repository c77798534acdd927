// Operations: long-running background work, whose progress can be read and followed.

import type { FollowOptions } from "./follow.ts";
import { operations } from "./generated.ts";
import { type Pages, pagesOf } from "./pages.ts";
import type { Operation, OperationEvent, OperationsQuery } from "./records.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** The types of the events that nothing follows. */
const terminalTypes: ReadonlySet<string> = new Set(["operation_completed", "operation_failed"]);

export class OperationsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Newest first. */
  list(query: OperationsQuery = {}, options: CallOptions = {}): Pages<Operation> {
    return pagesOf(this.#transport, "listOperations", { query }, options);
  }

  get(operationId: string, options: CallOptions = {}): Promise<Operation> {
    return this.#transport.value("getOperation", pathOf(operationId), options);
  }

  /**
   * Yields what happens in an operation, each event once and in order, and ends after the terminal one. A lost
   * connection is reopened after the last event; a gateway that is unreachable for more than a minute is an error.
   *
   * @param options.after the id of the last event that you have processed, to continue from there
   * @throws TroupeProblem `operation_not_found`; TroupeUnreachable
   *
   * @example for await (const { payload } of client.operations.follow(id)) console.log(payload.percent, payload.label);
   */
  follow(operationId: string, options: FollowOptions = {}): AsyncGenerator<OperationEvent, undefined> {
    return this.#transport.follow(operations.streamOperationEvents, pathOf(operationId), options, {
      isGapless: true,
      terminalTypes,
      read: (data) => data as OperationEvent,
    });
  }

  /**
   * Waits until an operation has ended. One that fails does not throw: see its status and its error. A signal ends
   * the waiting, not the operation.
   */
  async wait(operationId: string, { signal }: CallOptions = {}): Promise<Operation> {
    const ending = this.follow(operationId, { signal });
    while (!(await ending.next()).done);
    return this.get(operationId, { signal });
  }
}

const pathOf = (operationId: string) => ({ path: { operation_id: operationId } });
