// Nodes that call each other over real sockets, with what they are asked for played by the test.

import { systemClock } from "../../src/app/clock.ts";
import { type NodeServiceParts, nodeService } from "../../src/cluster/node-service.ts";
import type { NodeCredentials } from "../../src/cluster/wire/credentials.ts";
import { Peers } from "../../src/cluster/wire/peers.ts";
import { startNodeServer } from "../../src/cluster/wire/server.ts";
import type { JobControl } from "../../src/engine/job-control.ts";
import { ChangeNotes } from "../../src/runs/change-notes.ts";
import { EventFeed } from "../../src/runs/feed.ts";

export const SECRET: NodeCredentials = { kind: "secret", secret: Buffer.alloc(32, 7) };
export const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/** An engine that has every job, or none, and answers what a test lets it. */
export class PlayedEngine implements JobControl {
  isHolding = true;
  readonly openJobs = 3;
  /** What was asked, in order. */
  readonly asked: (readonly [verb: keyof JobControl, jobId: string, given?: unknown])[] = [];
  answer: () => Promise<unknown> = async () => ({ kind: "not_open" });

  holds(): boolean {
    return this.isHolding;
  }

  #play<Answer>(
    ...asked: readonly [verb: keyof JobControl, jobId: string, given?: unknown]
  ): Promise<Answer> {
    this.asked.push(asked);
    return this.answer() as Promise<Answer>;
  }

  cancel = (jobId: string) => this.#play<never>("cancel", jobId);
  pause = (jobId: string) => this.#play<never>("pause", jobId);
  resume = (jobId: string) => this.#play<never>("resume", jobId);
  prioritize = (jobId: string, priority: unknown) => this.#play<never>("prioritize", jobId, priority);
  deliver = (jobId: string, message: unknown) => this.#play<never>("deliver", jobId, message);
  answerHuman = (jobId: string, given: unknown) => this.#play<never>("answerHuman", jobId, given);
  retryDeadLetters = (jobId: string, letters: unknown) =>
    this.#play<never>("retryDeadLetters", jobId, letters);
}

export async function startNode(
  given: {
    readonly credentials?: NodeCredentials;
    readonly parts?: Partial<NodeServiceParts>;
    readonly port?: number;
  } = {},
) {
  const { credentials = SECRET } = given;
  const engine = new PlayedEngine();
  const feed = new EventFeed();
  const warnings: string[] = [];
  let owner = "node_b/1";
  const server = await startNodeServer({
    host: "127.0.0.1",
    port: given.port ?? 0,
    credentials,
    messageBytesMax: MESSAGE_BYTES_MAX,
    routes: nodeService({
      owner: () => owner,
      nodeId: "node_b",
      reconcile: async () => ({ differences: [], hasMore: false }),
      launch: () => {},
      removeVolume: async () => {},
      version: "1.2.3",
      engine,
      feed,
      bytes: null,
      notes: new ChangeNotes(feed),
      clock: systemClock,
      services: { list: () => [], check: async () => [], find: () => ({ kind: "none", hasOthers: false }) },
      host: { accept: (connection) => connection.close() },
      welcomes: {
        expected: { find: async () => null, failed: async () => {}, use: async () => false },
        shared: { databaseUrl: "postgres://host/name", keys: [] },
      },
      ...given.parts,
    }),
    log: { warn: (_fields, message) => void warnings.push(message) },
  });
  return {
    engine,
    feed,
    warnings,
    address: `127.0.0.1:${server.port}`,
    port: server.port,
    get owner() {
      return owner;
    },
    set owner(now) {
      owner = now;
    },
    close: () => server.close(),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

export function peersWith(
  credentials: NodeCredentials = SECRET,
  clock: Pick<typeof systemClock, "after"> = systemClock,
) {
  const peers = new Peers({ credentials, messageBytesMax: MESSAGE_BYTES_MAX, clock });
  return Object.assign(peers, { [Symbol.dispose]: () => peers.close() });
}
