// The networks of sandboxes, as the runtime sees them: each is a unix socket behind which a proxy lets through what its
// policy allows. One thread has the proxies of all; it starts with the first that is opened, and ends when it was not
// needed for a while, since an idle program should be small.

import { Worker } from "node:worker_threads";
import type { Clock, EngineLog } from "../../../engine/ports.ts";
import type { ThreadCommand, ThreadMessage } from "./proxy-thread.ts";
import type { NetworkReport } from "./reports.ts";

const IDLE_MS = 30_000;
/** What the system takes as the path of a unix socket. */
const SOCKET_PATH_BYTES_MAX = 107;

export interface SandboxNetwork {
  /** To be called once; resolves when every connection is closed and reported, and the socket is gone. */
  close(): Promise<void>;
}

export interface SandboxNetworkSpec {
  /**
   * Where the socket is made. It must not exist, and everybody may write to it: who may reach it is decided by its folder.
   */
  readonly socketPath: string;
  /** `sandbox.network.allow`, in which `allowListProblems` has found nothing. */
  readonly allow: readonly string[];
  readonly onReport: (report: NetworkReport) => void;
  /** Called when the sandbox has lost its network for good. @param reason a sentence */
  readonly onLost: (reason: string) => void;
}

interface Open {
  readonly spec: SandboxNetworkSpec;
  readonly opened: PromiseWithResolvers<SandboxNetwork>;
  readonly closed: PromiseWithResolvers<void>;
  isOpen: boolean;
}

export class SandboxNetworks {
  readonly #clock: Pick<Clock, "after">;
  readonly #log: EngineLog;
  readonly #open = new Map<number, Open>();
  #thread: Worker | null = null;
  #lastId = 0;
  #cancelIdle: () => void = () => {};

  constructor({ clock, log }: { readonly clock: Pick<Clock, "after">; readonly log: EngineLog }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** @throws Error when the socket cannot be made */
  async open(spec: SandboxNetworkSpec): Promise<SandboxNetwork> {
    if (Buffer.byteLength(spec.socketPath) > SOCKET_PATH_BYTES_MAX)
      throw new Error(`The path of a socket may have ${SOCKET_PATH_BYTES_MAX} bytes: ${spec.socketPath}`);
    this.#cancelIdle();
    const id = ++this.#lastId;
    const open: Open = {
      spec,
      opened: Promise.withResolvers(),
      closed: Promise.withResolvers(),
      isOpen: false,
    };
    this.#open.set(id, open);
    this.#tell({ kind: "open", id, socketPath: spec.socketPath, allow: spec.allow });
    return open.opened.promise;
  }

  /** For tests. */
  get thread(): Worker | null {
    return this.#thread;
  }

  /** Ends the thread; open networks are lost without a report. */
  async close(): Promise<void> {
    this.#cancelIdle();
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { closed } of open) closed.resolve();
    await this.#thread?.terminate();
  }

  #tell(command: ThreadCommand): void {
    this.#thread ??= this.#start();
    this.#thread.postMessage(command);
  }

  #start(): Worker {
    const thread = new Worker(new URL("./proxy-thread.ts", import.meta.url), {
      env: {},
      argv: [],
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 16 },
    });
    // What sandboxes are given keeps nothing alive: their commands do.
    thread.unref();
    let reason = "its thread has ended";
    thread.on("error", (error) => {
      reason = error instanceof Error ? error.message : String(error);
    });
    thread.on("message", (message: ThreadMessage) => this.#take(message));
    thread.on("exit", () => {
      if (this.#thread === thread) this.#lose(reason);
    });
    return thread;
  }

  #take(message: ThreadMessage): void {
    const open = this.#open.get(message.id);
    if (open === undefined) return;
    const { spec, opened, closed } = open;
    switch (message.kind) {
      case "opened":
        if (message.problem === null) {
          open.isOpen = true;
          opened.resolve({ close: () => this.#close(message.id, open) });
          return;
        }
        opened.reject(new Error(`The socket of a sandbox's network cannot be made: ${message.problem}`));
        this.#forget(message.id);
        return;
      case "closed":
        closed.resolve();
        this.#forget(message.id);
        return;
      case "report":
        spec.onReport(message.report);
        return;
      default:
        message satisfies never;
    }
  }

  async #close(id: number, open: Open): Promise<void> {
    // It may have been lost.
    if (this.#open.get(id) === open) this.#tell({ kind: "close", id });
    await open.closed.promise;
  }

  #forget(id: number): void {
    this.#open.delete(id);
    if (this.#open.size > 0) return;
    this.#cancelIdle = this.#clock.after(IDLE_MS, () => {
      const thread = this.#thread;
      this.#thread = null;
      void thread?.terminate();
    });
  }

  /** The next one that is opened gets a new thread. */
  #lose(reason: string): void {
    this.#thread = null;
    const lost = [...this.#open.values()];
    this.#open.clear();
    if (lost.length > 0)
      this.#log.error({ reason, sandboxes: lost.length }, "the proxy of the sandboxes was lost");
    const message = `The proxy of the sandbox's network was lost: ${reason}.`;
    for (const { spec, opened, closed, isOpen } of lost) {
      closed.resolve();
      if (isOpen) spec.onLost(message);
      else opened.reject(new Error(message));
    }
  }
}
