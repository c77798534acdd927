// The sandboxes of this machine: whether it has any, and how a command is started in one.
//
// - Whether there are sandboxes is found out once, by starting one. Where there are none, nothing is started in their place.
// - What is here belongs to this runtime, in tmp/sandbox/ of its home, and is the same for all sandboxes.

import { accessSync, constants, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Labels, noLabels } from "../../engine/labels.ts";
import { defaultPolicy } from "../../engine/manifest/sandbox-policy.ts";
import { deviceClaims } from "../../engine/resources.ts";
import { SANDBOX_ENGINE, SANDBOX_LABEL } from "../../engine/sandbox.ts";
import type { TaskStart } from "../../engine/task-port.ts";
import { madeOnce } from "../../lib/async.ts";
import { isInside } from "../../lib/paths.ts";
import { AttemptFailure, type AttemptReport } from "../runner/attempt.ts";
import type { Places } from "../runner/attempt-places.ts";
import { failureOfNetwork, failureOfSandbox } from "../runner/command-failure.ts";
import { moduleHostFile } from "../runner/module-process.ts";
import type { WorkerPlaces } from "../runner/worker-contract.ts";
import {
  type MemoryFile,
  openStatus,
  SETTINGS_FROM,
  sandboxCommand,
  type Tools,
  wasMade,
  writeVariables,
} from "./command.ts";
import type { SandboxedConfig } from "./config.ts";
import {
  devicesAt,
  folder,
  ownSettings,
  policyMounts,
  readOnly,
  settingsFiles,
  systemMounts,
  type Words,
  workerMounts,
} from "./mounts.ts";
import { saysNoNetwork } from "./network/relay-words.ts";
import type { SandboxNetworks } from "./network/sandbox-networks.ts";
import { openNetwork } from "./network.ts";
import { giveTo, userOf } from "./ownership.ts";
import { inside, placesInside } from "./places.ts";
import { runHere, type StartedInside } from "./run-here.ts";
import { seccompBytes, seccompProgram } from "./seccomp.ts";

/** Where the networks of sandboxes have their sockets. */
const SOCKETS = "networks";
const TRIAL_MS = 10_000;
const TRIAL_CHARS_MAX = 300;
/** Of the programs that are started on the machine; the worker has its own. */
const outsideEnvironment = { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C" };

/** What every worker in a sandbox has, unless its node says otherwise. */
export const sandboxEnvironment = {
  PATH: "/usr/local/bin:/usr/bin:/bin",
  HOME: "/tmp",
  TMPDIR: "/tmp",
  LANG: "C.UTF-8",
} as const;

export interface Sandbox extends AsyncDisposable {
  /** Where the worker finds its things. */
  readonly places: WorkerPlaces;
  /** The user of the machine that it is; null: the runtime's own. */
  readonly user: number | null;
  /** @param command as the worker's places have it @param env its whole environment */
  wrap(
    command: { readonly file: string; readonly args: Words },
    env: Readonly<Record<string, string>>,
  ): StartedInside;
  /** After the end: why the worker was never started; null when the exit code is its own. */
  failureOf(exitCode: number, stderr: string): AttemptFailure | null;
}

export class Sandboxes {
  readonly #home: string;
  readonly #folder: string;
  readonly #networks: Pick<SandboxNetworks, "open" | "close"> | null;
  readonly #found: () => Promise<Found>;

  /**
   * @param home SVC_HOME, or a folder of one's own
   * @param networks null: no sandbox has any, as for a trial
   * @param programFolders where bubblewrap and the others are looked for
   */
  constructor(
    home: string,
    networks: Pick<SandboxNetworks, "open" | "close"> | null = null,
    programFolders = usualFolders(),
  ) {
    this.#home = home;
    this.#networks = networks;
    this.#folder = join(home, "tmp", "sandbox");
    this.#found = madeOnce(() =>
      found(this.#folder, programFolders).catch((error: unknown) => none(`${(error as Error).message}.`)),
    );
  }

  /** @returns why there are none, and what to do about it; null when there are */
  async refusal(): Promise<string | null> {
    const found = await this.#found();
    return found.kind === "none" ? found.refusal : null;
  }

  /** To be called once no sandbox is left. */
  async close(): Promise<void> {
    await this.#networks?.close();
  }

  /** By these labels commands that need a sandbox find this node. */
  async labels(): Promise<Labels> {
    return (await this.refusal()) === null ? { [SANDBOX_LABEL]: SANDBOX_ENGINE } : noLabels;
  }

  /**
   * Makes a worker's places ready for a sandbox.
   *
   * @throws AttemptFailure; the system's error
   */
  async prepare(
    task: TaskStart,
    config: SandboxedConfig,
    outside: Places,
    report: AttemptReport,
  ): Promise<Sandbox> {
    const found = await this.#found();
    if (found.kind === "none")
      throw new AttemptFailure("sandbox.unavailable", `This node has no sandboxes: ${found.refusal}`);
    const { tools, files, system } = found;
    const { sandbox: policy } = config;
    const places = placesInside(outside, task, config);
    const claimed = config.demand === null ? [] : deviceClaims(config.demand).map(({ name }) => name);
    const devices = devicesAt([...policy.devices, ...claimed]);
    const mounts = [
      ...system,
      ...policyMounts(policy.readOnly, this.#home),
      ...workerMounts(outside, places),
      ...(config.module === null ? [] : readOnly(moduleHostFile, inside.moduleHost)),
    ];
    const user = tools.setpriv === null ? null : userOf(task.runId);
    if (user !== null) await giveTo(user, outside);
    const open = new AsyncDisposableStack();
    const network =
      policy.network.allow.length === 0 || this.#networks === null
        ? null
        : open.use(await openNetwork(this.#networks, join(this.#folder, SOCKETS), { task, policy, report }));
    let status: MemoryFile | null = null;
    return {
      places,
      user,
      wrap: (command, env) => {
        const all = { ...network?.variables, ...env };
        const variables = open.use(writeVariables(all, this.#folder)).path;
        const { limits } = policy;
        const seen =
          network === null ? mounts : [...mounts, ...folder("/sandbox/network"), ...network.mounts];
        status = open.use(openStatus(this.#folder));
        // What the system does not have any more is empty.
        const here = files.map((path) =>
          existsSync(path) || isInside(this.#folder, path) ? path : "/dev/null",
        );
        const given = { tools, files: here, user, mounts: seen, devices, limits, workdir: places.workdir };
        const started = network?.wrap(command) ?? command;
        const words = sandboxCommand({ ...given, variables, status: status.path, command: started });
        return { ...words, cwd: "/", env: outsideEnvironment };
      },
      failureOf: (exitCode, stderr) => {
        if (status === null || !wasMade(status)) return failureOfSandbox(stderr);
        return network !== null && saysNoNetwork(exitCode, stderr) ? failureOfNetwork(stderr) : null;
      },
      [Symbol.asyncDispose]: () => open.disposeAsync(),
    };
  }
}

/** What all sandboxes here have in common. */
interface Means {
  readonly tools: Tools;
  /** See SandboxCommand. */
  readonly files: readonly string[];
  readonly system: Words;
}

type Found = ({ readonly kind: "some" } & Means) | { readonly kind: "none"; readonly refusal: string };

const none = (refusal: string): Found => ({ kind: "none", refusal });

/** @throws the system's error */
async function found(folder: string, programFolders: readonly string[]): Promise<Found> {
  const program = seccompProgram();
  if (process.platform !== "linux" || program === null)
    return none("they need Linux on x64 or arm64. Run the command on such a node.");
  const bwrap = programAt(programFolders, "bwrap");
  if (bwrap === null) return none("bubblewrap is missing. Install it: `apt install bubblewrap`.");
  const prlimit = programAt(programFolders, "prlimit");
  const isRoot = process.getuid?.() === 0;
  const setpriv = isRoot ? programAt(programFolders, "setpriv") : null;
  if (prlimit === null || (isRoot && setpriv === null))
    return none("prlimit and setpriv are missing. Install util-linux.");
  // Of a runtime that was killed.
  rmSync(join(folder, SOCKETS), { recursive: true, force: true });
  mkdirSync(join(folder, SOCKETS), { recursive: true, mode: 0o700 });
  const write = (name: string, content: string | Buffer) =>
    writeFileSync(join(folder, name), content, { mode: 0o600 });
  for (const [name, text] of Object.entries(ownSettings)) write(name, text);
  write("filter", seccompBytes(program));
  const settings = settingsFiles(folder);
  const means: Means = {
    tools: { bwrap, prlimit, setpriv },
    files: [join(folder, "filter"), ...settings.map(({ from }) => from)],
    system: systemMounts(settings, SETTINGS_FROM),
  };
  const failure = await tryOne(folder, means);
  return failure === null ? { kind: "some", ...means } : none(explained(failure, isRoot));
}

function usualFolders(): readonly string[] {
  const own = (process.env.PATH ?? "").split(":").filter((folder) => folder !== "");
  return ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin", ...own];
}

function programAt(folders: readonly string[], name: string): string | null {
  for (const folder of folders) {
    try {
      const path = join(folder, name);
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // The next one.
    }
  }
  return null;
}

/** Starts a sandbox with nothing in it. @returns what it said when it did not work */
async function tryOne(folder: string, { tools, files, system }: Means): Promise<string | null> {
  using variables = writeVariables(sandboxEnvironment, folder);
  using status = openStatus(folder);
  const command = sandboxCommand({
    tools,
    files,
    user: tools.setpriv === null ? null : userOf(""),
    mounts: system,
    devices: [],
    limits: defaultPolicy.limits,
    workdir: "/tmp",
    variables: variables.path,
    status: status.path,
    command: { file: "true", args: [] },
  });
  const started = { ...command, cwd: "/", env: outsideEnvironment };
  const { exitCode, stderr } = await runHere(started, { timeoutMs: TRIAL_MS });
  if (exitCode === 0) return null;
  return stderr.trim().slice(0, TRIAL_CHARS_MAX) || `it ended with code ${exitCode}`;
}

function explained(failure: string, isRoot: boolean): string {
  const fix = isRoot
    ? "Start Troupe as an ordinary user, or give root CAP_SYS_ADMIN, CAP_SETUID and user namespaces (in a container: docs/sandbox.md)"
    : "Allow unprivileged user namespaces (docs/sandbox.md), and use bubblewrap 0.8 or newer";
  return `one could not be started (${failure}). ${fix}.`;
}
