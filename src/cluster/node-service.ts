// What this node answers other nodes: for the jobs that it holds, and about itself.
//
// - It answers as the owner that it is now. A caller that asks for another one has read an older owner, and looks again.
// - What it accepts it does, whether the caller waits or not.

import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { EngineUnavailable, JobUnwritable } from "../engine/batch.ts";
import type { JobControl } from "../engine/job-control.ts";
import { JournalUnavailable } from "../engine/journal.ts";
import type { Clock } from "../engine/ports.ts";
import type { RemoveVolume } from "../execution/volume-removal.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { NoteSource } from "../runs/change-notes.ts";
import type { EventFeed } from "../runs/feed.ts";
import type { ServiceRegistry } from "../services/registry.ts";
import { type ByteSource, BytesRefused } from "./bytes.ts";
import { gathered } from "./cluster-notes.ts";
import type { Reconciliation } from "./reconcile.ts";
import { LAUNCHES_MAX } from "./remote-launches.ts";
import type { TaskHost } from "./tasks/host.ts";
import type { FromHost, FromOwner } from "./tasks/messages.ts";
import { NotWelcome, type WelcomesParts, welcome } from "./welcomes.ts";
import { bytesToWire } from "./wire/bytes.ts";
import {
  actionFromWire,
  type ControlAction,
  type ControlOutcome,
  outcomeToWire,
  WireProblem,
} from "./wire/control.ts";
import {
  ControlResponseSchema,
  DifferenceSchema,
  type FetchBytesResponse,
  LaunchResponseSchema,
  ListBytesResponseSchema,
  type ListServicesResponse,
  ListServicesResponseSchema,
  NodeService,
  NoteSchema,
  type NotesResponse,
  NotesResponseSchema,
  ReconcileResponseSchema,
  RemoveVolumeResponseSchema,
  StatusResponseSchema,
  type TasksResponse,
  TasksResponseSchema,
  type WatchResponse,
  WelcomeResponseSchema,
} from "./wire/gen/svc/node/v1/node_pb.ts";
import { foundToWire, pageFromWire, serviceToWire } from "./wire/services.ts";
import { TaskStream } from "./wire/task-stream.ts";
import { WatchQueue } from "./wire/watch.ts";

export interface NodeServiceParts {
  /** This node's, as it is now. */
  readonly owner: () => string;
  readonly nodeId: string;
  readonly version: string;
  readonly engine: JobControl & { holds(jobId: string): boolean; readonly openJobs: number };
  readonly feed: EventFeed;
  /** What this node has for others; null: nothing. */
  readonly bytes: ByteSource | null;
  /** What runs other nodes' attempts here. */
  readonly host: Pick<TaskHost, "accept">;
  readonly reconcile: (fix: boolean) => Promise<Reconciliation>;
  /** Launches a run if it is this node's. */
  readonly launch: (runId: string) => void;
  /** Of this node. */
  readonly removeVolume: RemoveVolume;
  /** What the jobs of this node offer. */
  readonly services: Pick<ServiceRegistry, "list" | "find" | "check">;
  /** What changes in lists on this node. */
  readonly notes: NoteSource;
  readonly clock: Pick<Clock, "after">;
  /** For programs that join. */
  readonly welcomes: WelcomesParts;
}

export function nodeService(parts: NodeServiceParts): (router: ConnectRouter) => void {
  const { owner, version, engine, feed, bytes, host, services, welcomes } = parts;
  const isHeld = (asked: { readonly owner: string; readonly jobId: string }) =>
    asked.owner === owner() && engine.holds(asked.jobId);
  const requireOwn = (nodeId: string) => {
    // Its address was another node's before.
    if (nodeId !== parts.nodeId) throw new ConnectError("This is another node.", Code.FailedPrecondition);
  };
  return (router) =>
    router.service(NodeService, {
      status: () =>
        create(StatusResponseSchema, { owner: owner(), version, openJobs: BigInt(engine.openJobs) }),

      async control(request) {
        const action = readAction(() => actionFromWire(request.action));
        const outcome = isHeld(request)
          ? await perform(engine, request.jobId, action)
          : { kind: "not_held" as const };
        return create(ControlResponseSchema, { result: outcomeToWire(outcome) });
      },

      async *watch(request, { signal }): AsyncGenerator<WatchResponse> {
        if (!isHeld(request)) throw new ConnectError("The job is not held here.", Code.FailedPrecondition);
        const queue = new WatchQueue(signal);
        const stop = feed.subscribe(request.jobId, (page, isEnd) => queue.push(page, isEnd));
        try {
          yield* queue.messages();
        } finally {
          stop();
        }
      },

      async *notes(_request, { signal }): AsyncGenerator<NotesResponse> {
        for await (const notes of gathered(parts.notes, signal, parts.clock))
          yield create(NotesResponseSchema, { notes: notes.map((note) => create(NoteSchema, note)) });
      },

      async *tasks(requests, { signal }): AsyncGenerator<TasksResponse> {
        const stream = new TaskStream<FromHost, FromOwner>();
        signal.addEventListener("abort", () => stream.lost(), { once: true });
        host.accept(stream);
        void stream.take(requests);
        for await (const part of stream.outgoing()) yield create(TasksResponseSchema, part);
      },

      async *fetchBytes(name, { signal }): AsyncGenerator<FetchBytesResponse> {
        const found = await known(async () => bytes?.open(name) ?? null);
        if (found === null) throw new ConnectError("It is not here.", Code.NotFound);
        yield* bytesToWire(found, signal);
      },

      async listBytes({ kind, below }) {
        const listed = await known(async () => bytes?.list(kind, below) ?? []);
        return create(ListBytesResponseSchema, { listed: [...listed] });
      },

      async *listServices(request): AsyncGenerator<ListServicesResponse> {
        const page = pageFromWire(request);
        const listed = request.isChecked ? await services.check(page) : services.list(page);
        for (const service of listed)
          yield create(ListServicesResponseSchema, { service: serviceToWire(service) });
      },

      findService: (request) => foundToWire(services.find(request)),

      launch({ runIds }) {
        for (const runId of runIds.slice(0, LAUNCHES_MAX)) parts.launch(runId);
        return create(LaunchResponseSchema);
      },

      async reconcile({ nodeId, fix }) {
        requireOwn(nodeId);
        const { differences, hasMore } = await parts.reconcile(fix).catch((error: unknown) => {
          if (error instanceof DomainError) throw new ConnectError(error.message, Code.Aborted);
          if (error instanceof EngineUnavailable) throw new ConnectError(error.message, Code.Unavailable);
          throw error;
        });
        return create(ReconcileResponseSchema, {
          differences: differences.map((one) => create(DifferenceSchema, one)),
          hasMore,
        });
      },

      async removeVolume({ nodeId, name }) {
        requireOwn(nodeId);
        await parts.removeVolume(name).catch((error: unknown) => {
          if (!(error instanceof DomainError)) throw error;
          const code = error.code === "volume_not_found" ? Code.NotFound : Code.Aborted;
          throw new ConnectError(error.message, code);
        });
        return create(RemoveVolumeResponseSchema);
      },

      async welcome(request) {
        try {
          return create(WelcomeResponseSchema, await welcome(welcomes, request));
        } catch (error) {
          if (error instanceof NotWelcome) throw new ConnectError(error.message, Code.PermissionDenied);
          if (error instanceof JournalUnavailable) throw new ConnectError(error.message, Code.Unavailable);
          throw error;
        }
      },
    });
}

async function known<Found>(look: () => Promise<Found>): Promise<Found> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof BytesRefused)) throw error;
    throw new ConnectError(error.message, Code.InvalidArgument);
  }
}

function readAction(read: () => ControlAction): ControlAction {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof WireProblem)) throw error;
    throw new ConnectError(error.message, Code.InvalidArgument);
  }
}

/** Does what another node asks. */
async function perform(engine: JobControl, jobId: string, action: ControlAction): Promise<ControlOutcome> {
  try {
    return await asked(engine, jobId, action);
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof EngineUnavailable) return { kind: "unavailable", message, mayRetry: error.mayRetry };
    if (error instanceof JobUnwritable) return { kind: "unwritable", message };
    throw error;
  }
}

async function asked(engine: JobControl, jobId: string, action: ControlAction): Promise<ControlOutcome> {
  switch (action.kind) {
    case "cancel":
    case "pause":
    case "resume": {
      const answer = await engine[action.kind](jobId);
      return answer.kind === "done" ? { kind: "changed", status: answer.status } : { kind: "not_held" };
    }
    case "prioritize": {
      const answer = await engine.prioritize(jobId, action.priority);
      return answer.kind === "done" ? { kind: "changed", status: answer.status } : { kind: "not_held" };
    }
    case "deliver": {
      const answer = await engine.deliver(jobId, action.message);
      return answer.kind === "not_open" ? { kind: "not_held" } : answer;
    }
    case "answer_human": {
      const answer = await engine.answerHuman(jobId, action.given);
      return answer.kind === "not_open" ? { kind: "not_held" } : answer;
    }
    case "retry_dead_letters": {
      const answer = await engine.retryDeadLetters(jobId, action.letters);
      return answer.kind === "done"
        ? { kind: "retried", deadLetterIds: answer.retried }
        : { kind: "not_held" };
    }
    default:
      return action satisfies never;
  }
}
