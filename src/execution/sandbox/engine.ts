// What makes sandboxes: bubblewrap, or what SVC_SANDBOX_ENGINE names in its place. Each says how a command is started in a
// sandbox, and how that is told to end.

import type { SandboxLimits } from "../../engine/sandbox.ts";
import type { Device, Shown, Words } from "./mounts.ts";
import type { StartedInside } from "./run-here.ts";

/** Of nobody, in the sandbox. */
export const SANDBOX_USER = 65_534;
/** Where files are made that no disk holds, if the system has that. */
export const MEMORY = "/dev/shm";
/** Of the programs that are started on the machine; the worker has its own. */
export const outsideEnvironment = { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C" };

/** @returns the path of a program of the machine; null when it is missing */
export type FindProgram = (name: string) => string | null;

export interface SandboxEngine {
  /** The user of the machine whom the files of a run's workers belong to; null: the runtime's own. */
  userOf(runId: string): number | null;
  /** @throws the system's error */
  start(command: SandboxCommand): StartedSandbox;
  /** What to do when none can be started. */
  readonly advice: string;
}

export interface SandboxCommand {
  /** As `userOf` has it. */
  readonly user: number | null;
  readonly shown: readonly Shown[];
  /** What the worker writes its events to, in a mount that is read-only. */
  readonly pipe: { readonly from: string; readonly path: string } | null;
  readonly devices: readonly Device[];
  readonly limits: SandboxLimits;
  /** Where the command starts, inside. */
  readonly workdir: string;
  /** The worker's whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether a socket of the machine is shown that the worker is to reach. */
  readonly hasSocket: boolean;
  readonly command: { readonly file: string; readonly args: Words };
}

/** To be disposed of when it has ended. */
export interface StartedSandbox extends StartedInside, Disposable {
  /** After the end: whether the sandbox was made, so that an exit code is its command's. */
  wasMade(exitCode: number, stderr: string): boolean;
  /**
   * Passes SIGTERM to what runs inside; null: the processes inside are the machine's, and are sent it themselves.
   *
   * @returns whether that was possible
   */
  readonly terminate: (() => Promise<boolean>) | null;
}

/** Set inside, by prlimit(1). */
export function limitWords({ processes, fileBytes, cpuSeconds }: SandboxLimits): Words {
  return [
    ...["--core=0", `--nproc=${processes}`, `--fsize=${fileBytes}`],
    ...(cpuSeconds === null ? [] : [`--cpu=${cpuSeconds}`]),
  ];
}
