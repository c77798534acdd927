// The store as the program uses it, whatever the kind of its database.

import type { ExpectedNodes } from "../cluster/node-writes.ts";
import type { NodeReads, NodeRecords } from "../cluster/nodes.ts";
import type { Journal } from "../engine/journal.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import type { VolumeOwners } from "../execution/volumes.ts";
import type { FileGarbage, RetentionRecords } from "../runs/retention-records.ts";
import type { Database } from "./sql/database.ts";

/** What the programs of one database have in common. */
export interface SharedByNodes {
  /** By which the nodes of one machine know each other, as hexadecimal digits. */
  secret(): Promise<string>;
  /** Their rows, to be closed before the store is. @param limitMs how long a call may take */
  nodes(limitMs: number): NodeRecords & { close(): Promise<void> };
  readonly reads: NodeReads;
  readonly expected: ExpectedNodes;
  /** Removes the rows of nodes that are gone for good. */
  forgetNodes(): Promise<void>;
  /** Which node has which volume, for one of them. */
  volumesOf(nodeId: string): VolumeOwners;
  /** The garbage that is in a node's home. @param kinds what each node has of its own */
  garbageOf(node: {
    readonly nodeId: string;
    readonly kinds: readonly FileGarbage["kind"][];
  }): Pick<RetentionRecords, "fileGarbage" | "forgetGarbage">;
}

export interface OpenStore {
  readonly database: Database;
  readonly journal: Journal;
  /** Whether stored values may need a key that was there before. May read whole tables: asked only when there is no key. */
  needsKey(): Promise<boolean>;
  /**
   * Makes sure that all programs of the database have the same secret key.
   *
   * @param ids of this program's keys, as they are given
   * @returns the id of the one that encrypts, on all of them
   * @throws StoreUnusable when it has another one
   */
  checkKey(ids: readonly [string, ...string[]]): Promise<string>;
  /** Null: the database is one program's. */
  readonly sharedByNodes: SharedByNodes | null;
  /** Gives a little free space back to the disk, if there is too much. @returns whether there is more to give */
  shrink(): Promise<boolean>;
  /**
   * Whether this program is to do what one does for all that share the database: from now on nobody else does, for so long.
   *
   * @param owner its name
   */
  takeDuty(name: string, owner: string, forMs: number): Promise<boolean>;
  /** Bytes of the database, and of its write-ahead log where that is the program's own. */
  sizes(): Promise<{ readonly database: number; readonly wal: number }>;
  /** Looks for damage if the last program did not close the store, and logs it. @returns what is not written any more */
  checkAfterUncleanEnd(stopping: AbortSignal): Promise<"usable" | "damaged">;
  /** To be called when nothing is under way. */
  close(): Promise<void>;
}

export interface StoreOptions {
  /** SVC_HOME; it is locked. */
  readonly home: string;
  /** SVC_DATABASE_URL. */
  readonly databaseUrl: string | null;
  /** SVC_DATABASE_POOLED. */
  readonly databaseIsPooled?: boolean;
  /** To start with an empty database although the home holds what belongs to a lost one. */
  readonly newDatabase?: boolean;
  /** To go on without the key of what is encrypted. */
  readonly newKey?: boolean;
  /** To go on although acknowledged commits are missing. */
  readonly acceptDataLoss?: boolean;
  readonly clock: Pick<Clock, "after">;
  readonly log: EngineLog;
}
