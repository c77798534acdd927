// Machines: programs with process ids, a network and a home of their own, joined by a switch. A machine is cut off by taking its
// link down, and lost with everything that runs on it. All addresses are inside of namespaces that end with this process.
//
// The tests' own process reaches them over sockets in the file system, which do not end at a network's border.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startGateway } from "../support/gateway-api.ts";
import { makeAuthority } from "../support/node-certificates.ts";
import { returnPostgres, socketOf, takePostgres } from "../support/postgres.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";
import { TcpProxy } from "./tcp-proxy.ts";

const NETWORK = "10.77.0";
const SWITCH_ADDRESS = `${NETWORK}.254`;
const DATABASE_PORT = 5432;
const API_PORT = 8080;
const NODE_PORT = 55052;

/** Passes on what it gets: arguments are where it listens, and where to. */
const FORWARD = `
const net = require("node:net");
const [listen, target] = process.argv.slice(1).map((text) => JSON.parse(text));
net.createServer((client) => {
  const there = net.connect(target);
  for (const one of [client, there]) one.on("error", () => {}).on("close", () => { client.destroy(); there.destroy(); });
  client.pipe(there).pipe(client);
}).listen(listen, () => console.log("ready"));`;

const UNSHARE = ["--net", "--pid", "--fork", "--kill-child", "--mount-proc"];

/** Whether this system lets the tests make namespaces, and links in them, and has openssl. */
export function canMakeMachines(): boolean {
  try {
    const probe =
      "ip link add probe type veth peer name other && cat /proc/$$/task/$$/children && which nsenter openssl";
    execFileSync("unshare", [...UNSHARE, "sh", "-c", probe], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Namespaces, held by a process that ends when this one does. */
class Namespaces {
  readonly #holder: ChildProcess;
  readonly pid: number;

  private constructor(holder: ChildProcess, pid: number) {
    this.#holder = holder;
    this.pid = pid;
  }

  static async make(): Promise<Namespaces> {
    const holder = spawn("unshare", [...UNSHARE, "cat"], { stdio: ["pipe", "ignore", "inherit"] });
    const pid = await until("the namespaces are made", () => childOf(holder.pid ?? 0));
    const made = new Namespaces(holder, pid);
    made.run("ip", "link", "set", "lo", "up");
    return made;
  }

  /** The words that start something that ends with them. */
  get enter(): readonly string[] {
    return ["nsenter", "-t", String(this.pid), "--net", "--pid", "--mount", "--"];
  }

  /** Configures their network. */
  run(...words: readonly string[]): void {
    // Not their process ids: links are given to other namespaces by those of this machine.
    execFileSync("nsenter", ["-t", String(this.pid), "--net", "--", ...words]);
  }

  /** Forwards as long as the namespaces are there. */
  async forward(listen: object, target: object): Promise<void> {
    const words = [process.execPath, "-e", FORWARD, JSON.stringify(listen), JSON.stringify(target)];
    const [file = "", ...args] = [...this.enter, ...words];
    const child = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data");
  }

  /** Ends everything that runs inside. */
  async end(): Promise<void> {
    const isOver = once(this.#holder, "exit");
    this.#holder.stdin?.end();
    await isOver;
  }
}

/** @returns null while it has none */
function childOf(pid: number): number | null {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return text === "" ? null : Number(text.split(" ")[0]);
}

export class Machines {
  readonly machines: Machine[] = [];
  /** For what all machines share. */
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  get serving(): readonly Machine[] {
    return this.machines.filter(({ isServing }) => isServing);
  }

  static async start(
    count: number,
    env: Readonly<Record<string, string>>,
  ): Promise<Machines & AsyncDisposable> {
    await using undo = new AsyncDisposableStack();
    const url = await takePostgres();
    undo.defer(() => returnPostgres(url));
    const folder = await mkdtemp(join(tmpdir(), "troupe-machines-"));
    undo.defer(() => rm(folder, { recursive: true, force: true }));
    await mkdir(join(folder, "blobs"));
    const authority = undo.use(makeAuthority());
    const net = await Namespaces.make();
    undo.defer(() => net.end());
    net.run("ip", "link", "add", "switch", "type", "bridge");
    net.run("ip", "addr", "add", `${SWITCH_ADDRESS}/24`, "dev", "switch");
    net.run("ip", "link", "set", "switch", "up");
    await net.forward({ host: SWITCH_ADDRESS, port: DATABASE_PORT }, { path: socketOf(url) });
    const found = new Machines(folder);
    for (let n = 1; n <= count; n++) {
      const address = `${NETWORK}.${n}`;
      const { cert, key, ca } = authority.files(`IP:${address}`);
      const machine = new Machine({
        name: `machine-${n}`,
        address,
        home: await temporaryHome(),
        folder,
        net,
        env: {
          SVC_DATABASE_URL: `postgres://test@${SWITCH_ADDRESS}:${DATABASE_PORT}${new URL(url).pathname}`,
          SVC_BLOB_URL: String(pathToFileURL(join(folder, "blobs"))),
          SVC_API_PORT: String(API_PORT),
          SVC_SECRET_KEY: "00".repeat(32),
          SVC_NODE_NAME: `machine-${n}`,
          SVC_NODE_HOST: address,
          SVC_NODE_PORT: String(NODE_PORT),
          SVC_NODE_TLS_CERT: cert,
          SVC_NODE_TLS_KEY: key,
          SVC_NODE_TLS_CA: ca,
          SVC_LOG_LEVEL: "error",
          ...env,
        },
      });
      undo.defer(() => machine.remove());
      found.machines.push(machine);
      await machine.start();
    }
    const kept = undo.move();
    return Object.assign(found, { [Symbol.asyncDispose]: () => kept.disposeAsync() });
  }
}

interface MachineParts {
  readonly name: string;
  readonly address: string;
  readonly home: string;
  readonly folder: string;
  readonly net: Namespaces;
  readonly env: Readonly<Record<string, string>>;
}

export class Machine {
  readonly #parts: MachineParts;
  #inside: Namespaces | null = null;
  #program: Program | null = null;
  #api: TcpProxy | null = null;

  constructor(parts: MachineParts) {
    this.#parts = parts;
  }

  get name(): string {
    return this.#parts.name;
  }

  get isServing(): boolean {
    return this.#program !== null;
  }

  get program(): Program {
    if (this.#program === null) throw new Error(`${this.name} does not run`);
    return this.#program;
  }

  /** Switches it on, and starts its program. */
  async start(): Promise<void> {
    const { name, address, home, folder, net, env } = this.#parts;
    const inside = await Namespaces.make();
    this.#inside = inside;
    net.run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", String(inside.pid));
    net.run("ip", "link", "set", name, "master", "switch", "up");
    inside.run("ip", "addr", "add", `${address}/24`, "dev", "eth0");
    inside.run("ip", "link", "set", "eth0", "up");
    const path = join(folder, `${name}.sock`);
    await rm(path, { force: true });
    await inside.forward({ path }, { host: "127.0.0.1", port: API_PORT });
    const program = await startGateway({ home, env, through: inside.enter });
    this.#api = await TcpProxy.start({ path });
    const url = `http://127.0.0.1:${this.#api.port}`;
    this.#program = { ...program, url, api: `${url}/api/v1` };
  }

  /** Nothing comes through to it or from it any more, and nobody is told. */
  unplug(): void {
    this.#parts.net.run("ip", "link", "set", this.name, "down");
  }

  plug(): void {
    this.#parts.net.run("ip", "link", "set", this.name, "up");
  }

  /** Everything that runs on it is gone at once, as after a power cut. */
  async lose(): Promise<void> {
    const exited = this.#program?.exited;
    this.#program = null;
    this.#api?.close();
    const inside = this.#inside;
    this.#inside = null;
    if (inside !== null) {
      // The kernel removes it with the namespace, but some time later: the next start makes one of the same name.
      this.#parts.net.run("ip", "link", "del", this.name);
      await inside.end();
    }
    await exited;
  }

  async remove(): Promise<void> {
    await this.lose();
    await rm(this.#parts.home, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}
