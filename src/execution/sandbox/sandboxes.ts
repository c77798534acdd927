// The sandboxes of this machine: whether it has any, and how a command is started in one.
//
// - Whether there are sandboxes is found out once, by starting one. Where there are none, nothing is started in their place.
// - What is here belongs to this runtime, in tmp/sandbox/ of its home, and is the same for all sandboxes.

import { accessSync, constants, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Labels, noLabels } from "../../engine/labels.ts";
import { defaultPolicy } from "../../engine/manifest/sandbox-policy.ts";
import { deviceClaims } from "../../engine/resources.ts";
import {
  givesDevices,
  SANDBOX_ENGINE_LABEL,
  type SandboxEngineName,
  sandboxLabels,
} from "../../engine/sandbox.ts";
import type { TaskStart } from "../../engine/task-port.ts";
import { madeOnce } from "../../lib/async.ts";
import { AttemptFailure, type AttemptReport } from "../runner/attempt.ts";
import type { Places } from "../runner/attempt-places.ts";
import { failureOfNetwork, failureOfSandbox } from "../runner/command-failure.ts";
import { moduleHostFile } from "../runner/module-process.ts";
import type { WorkerPlaces } from "../runner/worker-contract.ts";
import { findBubblewrap } from "./bubblewrap.ts";
import type { SandboxedConfig } from "./config.ts";
import type { FindProgram, SandboxEngine, StartedSandbox } from "./engine.ts";
import { findGvisor } from "./gvisor.ts";
import {
  devicesAt,
  ownSettings,
  policyMounts,
  readOnly,
  type Shown,
  systemShown,
  type Words,
  workerMounts,
} from "./mounts.ts";
import { saysNoNetwork } from "./network/relay-words.ts";
import type { SandboxNetworks } from "./network/sandbox-networks.ts";
import { openNetwork } from "./network.ts";
import { giveTo } from "./ownership.ts";
import { inside, placesInside } from "./places.ts";
import { runHere, type StartedInside } from "./run-here.ts";

/** Where the networks of sandboxes have their sockets. */
const SOCKETS = "networks";
const TRIAL_MS = 10_000;
const TRIAL_CHARS_MAX = 300;

/** How each of them is found. */
const engines: Readonly<
  Record<SandboxEngineName, (folder: string, find: FindProgram) => SandboxEngine | string>
> = { bubblewrap: findBubblewrap, gvisor: findGvisor };

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
  /** Passes SIGTERM to the worker, if its processes are none of the machine's. @returns whether that was possible */
  terminate(): Promise<boolean>;
  /** After the end: why the worker was never started; null when the exit code is its own. */
  failureOf(exitCode: number, stderr: string): AttemptFailure | null;
}

export class Sandboxes {
  readonly #home: string;
  readonly #folder: string;
  readonly #engine: SandboxEngineName;
  readonly #networks: Pick<SandboxNetworks, "open" | "close"> | null;
  readonly #found: () => Promise<Found>;

  /**
   * @param home SVC_HOME, or a folder of one's own
   * @param networks null: no sandbox has any, as for a trial
   * @param engine what makes them: none is ever made by another
   * @param programFolders where its programs are looked for
   */
  constructor(
    home: string,
    networks: Pick<SandboxNetworks, "open" | "close"> | null,
    engine: SandboxEngineName,
    programFolders = usualFolders(),
  ) {
    this.#home = home;
    this.#engine = engine;
    this.#networks = networks;
    this.#folder = join(home, "tmp", "sandbox");
    this.#found = madeOnce(() =>
      found(this.#folder, engine, programFolders).catch((error: unknown) =>
        none(`${(error as Error).message}.`),
      ),
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
    return (await this.refusal()) === null
      ? { ...sandboxLabels, [SANDBOX_ENGINE_LABEL]: this.#engine }
      : noLabels;
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
    const { engine, system } = found;
    const { sandbox: policy } = config;
    const places = placesInside(outside, task, config);
    const claimed = config.demand === null ? [] : deviceClaims(config.demand).map(({ name }) => name);
    const devices = devicesAt([...policy.devices, ...claimed]);
    if (devices.length > 0 && !givesDevices(this.#engine))
      throw new AttemptFailure(
        "sandbox.policy_unmet",
        `The sandbox is to have devices of the machine, which ${this.#engine} cannot give it: take them from the node's config, or run it where SVC_SANDBOX_ENGINE is bubblewrap.`,
      );
    const mounts = [
      ...system,
      ...policyMounts(policy.readOnly, this.#home),
      ...workerMounts(outside, places),
      ...(config.module === null ? [] : [readOnly(moduleHostFile, inside.moduleHost)]),
    ];
    const user = engine.userOf(task.runId);
    if (user !== null) await giveTo(user, outside);
    const open = new AsyncDisposableStack();
    const network =
      policy.network.allow.length === 0 || this.#networks === null
        ? null
        : open.use(await openNetwork(this.#networks, join(this.#folder, SOCKETS), { task, policy, report }));
    let started: StartedSandbox | null = null;
    return {
      places,
      user,
      wrap: (command, env) => {
        const variables = { ...network?.variables, ...env };
        // The system ends a word at a NUL; in what bubblewrap reads, its next option would follow.
        if (
          Object.entries(variables)
            .flat()
            .some((word) => word.includes("\0"))
        )
          throw new Error("a variable of its environment holds a NUL character");
        started = open.use(
          engine.start({
            ...{ user, devices, limits: policy.limits, workdir: places.workdir },
            pipe: { from: outside.files.eventStream, path: places.files.eventStream },
            shown: [...mounts, ...(network?.mounts ?? [])],
            env: variables,
            hasSocket: network !== null,
            command: network?.wrap(command) ?? command,
          }),
        );
        return started;
      },
      terminate: async () => (await started?.terminate?.()) ?? false,
      failureOf: (exitCode, stderr) => {
        if (started === null || !started.wasMade(exitCode, stderr)) return failureOfSandbox(stderr);
        return network !== null && saysNoNetwork(exitCode, stderr) ? failureOfNetwork(stderr) : null;
      },
      [Symbol.asyncDispose]: () => open.disposeAsync(),
    };
  }
}

/** What all sandboxes here have in common. */
interface Means {
  readonly engine: SandboxEngine;
  readonly system: readonly Shown[];
}

type Found = ({ readonly kind: "some" } & Means) | { readonly kind: "none"; readonly refusal: string };

const none = (refusal: string): Found => ({ kind: "none", refusal });

/** @throws the system's error */
async function found(
  folder: string,
  name: SandboxEngineName,
  programFolders: readonly string[],
): Promise<Found> {
  if (process.platform !== "linux") return none("they need Linux. Run the command on such a node.");
  // Of a runtime that was killed.
  rmSync(join(folder, SOCKETS), { recursive: true, force: true });
  mkdirSync(join(folder, SOCKETS), { recursive: true, mode: 0o700 });
  for (const [file, text] of Object.entries(ownSettings))
    writeFileSync(join(folder, file), text, { mode: 0o600 });
  const engine = engines[name](folder, (program) => programAt(programFolders, program));
  if (typeof engine === "string") return none(engine);
  const means = { engine, system: systemShown(folder) };
  const failure = await tryOne(means);
  if (failure === null) return { kind: "some", ...means };
  return none(`one could not be started by ${name} (${failure}). ${engine.advice}.`);
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
async function tryOne({ engine, system }: Means): Promise<string | null> {
  using started = engine.start({
    user: engine.userOf(""),
    shown: system,
    pipe: null,
    devices: [],
    limits: defaultPolicy.limits,
    workdir: "/tmp",
    env: sandboxEnvironment,
    hasSocket: false,
    command: { file: "true", args: [] },
  });
  const { exitCode, stderr } = await runHere(started, { timeoutMs: TRIAL_MS });
  if (exitCode === 0) return null;
  return stderr.trim().slice(0, TRIAL_CHARS_MAX) || `it ended with code ${exitCode}`;
}
