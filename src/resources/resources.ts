// The resources of the machines: what each has, what commands may have of it, what is reserved for them, and what is used.
//
// - A change is on disk before this node goes by it; the other nodes of a database read it now and then.
// - Less than what is reserved may be allowed: what runs goes on.

import { isDeepStrictEqual } from "node:util";
import type { ClusterNodes, NodeView } from "../cluster/cluster-nodes.ts";
import { isLiving } from "../cluster/nodes.ts";
import { JournalUnavailable } from "../engine/journal.ts";
import type { JsonValue } from "../engine/json.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import { noLimits, type ResourceLimits, readLimits } from "./limits.ts";
import type { ResourceRecords, StoredLimits } from "./records.ts";

export interface ResourcesParts {
  readonly records: ResourceRecords;
  /** Has this node go by the limits. */
  readonly apply: (limits: ResourceLimits) => void;
  /** How often limits are read that other programs may have changed; null: no other program has the database. */
  readonly everyMs: number | null;
  readonly clock: Pick<Clock, "after">;
  readonly log: EngineLog;
}

export interface LimitsChange {
  /** As clients name them. */
  readonly limits: JsonValue | undefined;
  /** Whether what is not given has no limit any more; else it stays as it is. */
  readonly isWhole: boolean;
  /** Called in the transaction. @throws when the limits are not those that the caller knows */
  readonly requireCurrent: (before: StoredLimits) => void;
}

export class Resources {
  readonly #parts: ResourcesParts;
  #applied: StoredLimits = { limits: noLimits, revision: 1 };
  #isStopped = false;
  #cancel = () => {};

  constructor(parts: ResourcesParts) {
    this.#parts = parts;
  }

  /** Has this node go by the stored limits, now and from now on. */
  async start(): Promise<void> {
    const { records, everyMs } = this.#parts;
    this.#apply(await records.limits());
    if (everyMs !== null) this.#followEvery(everyMs);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  limits(): Promise<StoredLimits> {
    return this.#parts.records.limits();
  }

  /** Limits that are the same already keep their revision. @throws DomainError `validation_failed` */
  async change({ limits: given, isWhole, requireCurrent }: LimitsChange): Promise<StoredLimits> {
    const stored = await this.#parts.records.changeLimits((before) => {
      const limits = readLimits(given, isWhole ? noLimits : before.limits);
      requireCurrent(before);
      return isDeepStrictEqual(limits, before.limits) ? before : { limits, revision: before.revision + 1 };
    });
    this.#apply(stored);
    return stored;
  }

  #followEvery(everyMs: number): void {
    const { records, clock, log } = this.#parts;
    this.#cancel = clock.after(everyMs, () => {
      records
        .limits()
        .then((stored) => this.#apply(stored))
        .catch((error: unknown) => {
          if (!(error instanceof JournalUnavailable)) throw error;
          log.warn({ reason: error.message }, "the limits of resources cannot be read");
        })
        .finally(() => {
          if (!this.#isStopped) this.#followEvery(everyMs);
        });
    });
  }

  /** A reading may have begun before a change that this node knows. */
  #apply(stored: StoredLimits): void {
    if (stored.revision < this.#applied.revision || this.#isStopped) return;
    this.#applied = stored;
    this.#parts.apply(stored.limits);
  }
}

/** The nodes that are alive and have told what they have, by name. */
export async function nodesWithResources({ overview }: Pick<ClusterNodes, "overview">) {
  return (await overview()).filter(hasResources).filter(isLiving);
}

type WithResources = NodeView & { readonly resources: NonNullable<NodeView["resources"]> };

function hasResources(node: NodeView): node is WithResources {
  return node.resources !== null;
}
