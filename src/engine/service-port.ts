// What the engine tells of jobs whose graphs declare services. The registry (src/services) checks them and reports back
// through the engine, so that their states are in the job's history.

import type { Graph, GraphNode } from "./graph.ts";

export interface ServiceJob {
  readonly jobId: string;
  readonly runId: string;
  /** The gateway's job; null for a job of the runtime's own API. */
  readonly definitionId: string | null;
  readonly bundleFingerprint: string | null;
  readonly hasOwnPayload: boolean;
  readonly graph: Graph;
}

/**
 * Must not throw, and calls nothing back from within. Told only of graphs with services; of beginnings and of the end of
 * a job after the commit, of the end of a command at once, so that what is gone is not found while the store is slow.
 */
export interface ServiceBoard {
  /** The job is open here: it was submitted, or taken over. Services of the job as a whole live from now on. */
  jobOpened(job: ServiceJob): void;
  /** It has ended, or another owner has it. */
  jobClosed(jobId: string): void;
  /** A command of an agent that declares services was started, and has ended; attempts of one agent never overlap. */
  agentStarted(jobId: string, node: GraphNode): void;
  agentEnded(jobId: string, node: GraphNode): void;
}

/** For an engine without a service registry. */
export const noServiceBoard: ServiceBoard = {
  jobOpened() {},
  jobClosed() {},
  agentStarted() {},
  agentEnded() {},
};

/** What a batch reports to the board once it is on disk. */
export type ServiceNews =
  | { readonly kind: "job_opened"; readonly jobId: string; readonly job: ServiceJob }
  | { readonly kind: "job_closed"; readonly jobId: string }
  | { readonly kind: "agent_started"; readonly jobId: string; readonly node: GraphNode };

export function tell(board: ServiceBoard, news: ServiceNews): void {
  switch (news.kind) {
    case "job_opened":
      board.jobOpened(news.job);
      return;
    case "job_closed":
      board.jobClosed(news.jobId);
      return;
    case "agent_started":
      board.agentStarted(news.jobId, news.node);
      return;
    default:
      news satisfies never;
  }
}

/** A check's finding about a service; `agentId` is null for a service of the job as a whole. */
export interface ServiceChange {
  readonly type: "service_passing" | "service_critical";
  readonly agentId: string | null;
  readonly serviceId: string;
  readonly name: string;
  /** The checks' output, for people. */
  readonly reason: string;
}
