// Real programs on one real PostgreSQL, each with a home of its own, and between each two of them, and between them and the
// database, a proxy that cuts them off from each other.
//
// - A node is killed or stopped without the process that guards its commands: that is what the guard is for. A machine that is
//   lost as a whole takes everything of its node along.
// - Nothing of a cluster is left when it is disposed of.

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startGateway } from "../support/gateway-api.ts";
import { freePorts } from "../support/ports.ts";
import { killPostgres, returnPostgres, socketOf, takePostgres } from "../support/postgres.ts";
import { endProcessesWith, holderOfPort, processesWith } from "../support/processes.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";
import { type Fault, TcpProxy } from "./tcp-proxy.ts";

export interface ClusterOptions {
  readonly nodes: number;
  /** How long a node's lease is. */
  readonly leaseSeconds: number;
  /** Further variables of every node. */
  readonly env?: Readonly<Record<string, string>>;
}

export class Cluster {
  readonly nodes: readonly ClusterNode[];
  /** For what all nodes share. */
  readonly folder: string;
  readonly #url: string;

  private constructor(nodes: readonly ClusterNode[], folder: string, url: string) {
    this.nodes = nodes;
    this.folder = folder;
    this.#url = url;
  }

  static async start({ nodes: count, leaseSeconds, env }: ClusterOptions): Promise<Cluster> {
    const [url, folder] = await Promise.all([takePostgres(), mkdtemp(join(tmpdir(), "troupe-cluster-"))]);
    await mkdir(join(folder, "blobs"));
    const nodes: ClusterNode[] = [];
    const cluster = new Cluster(nodes, folder, url);
    try {
      for (let n = 0; n < count; n++) {
        const port = await freePorts(1);
        const database = await TcpProxy.start({ path: socketOf(url) });
        const door = await TcpProxy.start({ port, host: "127.0.0.1" }, ({ remotePort = 0 }) => {
          const pids = nodes.map(({ pid }) => pid);
          const index = pids.indexOf(holderOfPort(remotePort, pids) ?? Number.NaN);
          return nodes[index]?.name ?? "nobody";
        });
        const name = `node-${n + 1}`;
        const home = await temporaryHome();
        const { pathname } = new URL(url);
        nodes.push(
          new ClusterNode({
            name,
            home,
            database,
            door,
            env: {
              SVC_DATABASE_URL: `postgres://test@127.0.0.1:${database.port}${pathname}`,
              SVC_BLOB_URL: String(pathToFileURL(join(folder, "blobs"))),
              SVC_SECRET_KEY: "00".repeat(32),
              SVC_NODE_NAME: name,
              SVC_NODE_PORT: String(port),
              SVC_NODE_ADDRESS: `127.0.0.1:${door.port}`,
              SVC_NODE_LEASE_SECONDS: String(leaseSeconds),
              SVC_LOG_LEVEL: "error",
              ...env,
            },
          }),
        );
      }
      // The first one makes the tables.
      await nodes[0]?.start();
      await Promise.all(nodes.slice(1).map((node) => node.start()));
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The nodes that answer. */
  get serving(): readonly ClusterNode[] {
    return this.nodes.filter(({ isServing }) => isServing);
  }

  /** What two nodes send each other meets a fault, until `heal`. */
  between(one: ClusterNode, other: ClusterNode, fault: Fault): void {
    one.door.fault(fault, other.name);
    other.door.fault(fault, one.name);
  }

  heal(): void {
    for (const { door, database } of this.nodes) {
      door.heal();
      database.heal();
    }
  }

  /** Ends the database with SIGKILL. @returns what starts it again */
  killDatabase(): Promise<() => Promise<void>> {
    return killPostgres();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.heal();
    await Promise.all(this.nodes.map((node) => node.remove()));
    await rm(this.folder, { recursive: true, force: true });
    await returnPostgres(this.#url);
  }
}

interface NodeParts {
  readonly name: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  /** Before the database, for this node alone. */
  readonly database: TcpProxy;
  /** Before the port at which other nodes reach this one. */
  readonly door: TcpProxy;
}

/** A machine with a home, on which a program runs or not. */
export class ClusterNode {
  readonly name: string;
  readonly home: string;
  readonly database: TcpProxy;
  readonly door: TcpProxy;
  readonly #env: Readonly<Record<string, string>>;
  /** What it has printed before its present program. */
  #printed = "";
  #program: Program | null = null;
  #isStopped = false;

  constructor({ name, home, env, database, door }: NodeParts) {
    this.name = name;
    this.home = home;
    this.database = database;
    this.door = door;
    this.#env = env;
  }

  /** Whether it runs, and is not stopped. */
  get isServing(): boolean {
    return this.#program !== null && !this.#isStopped;
  }

  get program(): Program {
    if (this.#program === null) throw new Error(`${this.name} does not run`);
    return this.#program;
  }

  /** Everything that its programs have printed. */
  get output(): string {
    return this.#printed + (this.#program?.output() ?? "");
  }

  /** 0 while it does not run. */
  get pid(): number {
    return this.#program?.pid ?? 0;
  }

  async start(): Promise<void> {
    const program = await startGateway({ home: this.home, env: this.#env });
    this.#program = program;
    // However it ends.
    void program.exited.then(() => {
      this.#printed += program.output();
      if (this.#program === program) this.#program = null;
    });
  }

  /** SIGKILL, to the program alone. */
  async kill(): Promise<void> {
    const program = this.#ending();
    process.kill(program.pid, "SIGKILL");
    await program.exited;
  }

  /** Everything that runs on its machine is gone at once. */
  async lose(): Promise<void> {
    const program = this.#ending();
    process.kill(-program.pid, "SIGKILL");
    endProcessesWith(this.home);
    await program.exited;
  }

  /** SIGTERM: it ends by itself. */
  async terminate(): Promise<void> {
    if (this.#isStopped) this.goOn();
    await this.#ending().stop();
  }

  /** SIGSTOP, to the program alone. */
  stop(): void {
    process.kill(this.program.pid, "SIGSTOP");
    this.#isStopped = true;
  }

  goOn(): void {
    process.kill(this.program.pid, "SIGCONT");
    this.#isStopped = false;
  }

  /** Processes that run on its machine; its program is one of them. */
  get processes(): readonly number[] {
    return processesWith(this.home);
  }

  /** Whether a command of any job runs on it. */
  get isWorking(): boolean {
    return this.isServing && processesWith(this.home, "SVC_ATTEMPT=").length > 0;
  }

  async remove(): Promise<void> {
    if (this.#program !== null) await this.lose();
    endProcessesWith(this.home);
    this.database.close();
    this.door.close();
    await until(`nothing of ${this.name} runs`, () => this.processes.length === 0);
    await rm(this.home, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  #ending(): Program {
    const { program } = this;
    this.#program = null;
    this.#isStopped = false;
    return program;
  }
}
