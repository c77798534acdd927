// Nodes that go: one that leaves is drained, and its program ends as on SIGTERM; one that is removed does not come back either.
//
// - All of it is asked of the node's row, so any node sees it through, again from the beginning if need be.
// - The program ends behind the operation, so that who follows the operation at the node itself sees its end.
// - An undrain takes it back.

import type { NodeWrites } from "../cluster/node-writes.ts";
import type { NodeOrders, NodeRecord } from "../cluster/nodes.ts";
import type { Clock } from "../engine/ports.ts";
import { OperationFailed, OperationInterrupted } from "../operations/failures.ts";
import type { OperationEnd, OperationHandler } from "../operations/operations.ts";
import type { OperationContext } from "../operations/progress.ts";
import type { OperationWrites } from "../operations/records.ts";

const LOOK_EVERY_MS = 500;
/** How long behind the deadline what still runs may take to end. */
const LATE_MS = 15_000;
/** The first heartbeat behind a request may have been sent before the node knew of it. */
const HEARTBEATS_MIN = 2;

export interface ChangeWrites {
  readonly operations: OperationWrites;
  readonly nodes: NodeWrites;
}

export interface DeparturesParts {
  readonly orders: NodeOrders;
  readonly clock: Pick<Clock, "after">;
}

export class Departures implements OperationHandler<ChangeWrites> {
  readonly steps = [{ name: "drain", label: "Giving its jobs to other nodes" }];
  readonly #parts: DeparturesParts;
  readonly #last: "end" | "remove";

  /** @param last what becomes of the node when nothing is left there */
  constructor(parts: DeparturesParts, last: "end" | "remove") {
    this.#parts = parts;
    this.#last = last;
  }

  async run(context: OperationContext): Promise<OperationEnd<ChangeWrites>> {
    const { target: nodeId, request } = context.operation;
    if (request.force === true) await context.skip("drain");
    else {
      await context.step("drain");
      await this.#drained(context, Number(request.deadline_seconds) * 1_000);
    }
    return {
      result: { node_id: nodeId, name: request.name ?? null },
      commit: async ({ nodes }) => {
        await nodes[this.#last](nodeId);
        return () => {};
      },
    };
  }

  async fail(): Promise<() => void> {
    return () => {};
  }

  /** Resolves once nothing is left at the node, or it does not live. @throws OperationFailed `node_stays` */
  async #drained(context: OperationContext, withinMs: number): Promise<void> {
    const { orders } = this.#parts;
    let heartbeat: number | null = null;
    let further = 0;
    let jobsMax = 1;
    for (;;) {
      const node = await orders.find(context.operation.target);
      if (node === null || node.status === "left" || node.status === "lost") return;
      const { jobsOwned: jobs, tasksRunning: attempts, heartbeatAtMs } = node;
      const asked = context.operation.result?.asked;
      if (asked === undefined || node.drainUntilMs === null) {
        heartbeat = await this.#ask(context, node, withinMs);
        further = 0;
      } else {
        if (heartbeat !== null && heartbeatAtMs !== heartbeat) further++;
        heartbeat = heartbeatAtMs;
        const isOver = jobs + attempts === 0 || heartbeatAtMs > node.drainUntilMs + LATE_MS;
        if (isOver && further >= HEARTBEATS_MIN) return;
      }
      jobsMax = Math.max(jobsMax, jobs);
      context.progress(1 - jobs / jobsMax, `${jobs} jobs and ${attempts} attempts are left`);
      await this.#pause(context.signal);
    }
  }

  /** @returns the last heartbeat before it was asked */
  async #ask(context: OperationContext, node: NodeRecord, withinMs: number): Promise<number> {
    const { nodeId, name, owner, heartbeatAtMs } = node;
    const asked = context.operation.result?.asked;
    // A program that starts again is not drained; one that is to be removed is asked again.
    const wasStartedAgain = asked !== undefined && asked !== owner;
    if (asked === owner || (wasStartedAgain && this.#last === "end")) {
      const why = wasStartedAgain ? "its program was started again" : "its drain was taken back";
      throw new OperationFailed("node_stays", `Node ${name} stays: ${why}. Ask again if it is to go.`);
    }
    const ordered = await this.#parts.orders.order(nodeId, { kind: "drain", withinMs, servicesLast: true });
    await context.remember({ asked: owner });
    return ordered?.heartbeatAtMs ?? heartbeatAtMs;
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const pause = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(LOOK_EVERY_MS, pause.resolve);
    const over = () => pause.resolve();
    signal.addEventListener("abort", over);
    if (!signal.aborted) await pause.promise;
    cancel();
    signal.removeEventListener("abort", over);
    if (signal.aborted) throw new OperationInterrupted("The program stops.");
  }
}
