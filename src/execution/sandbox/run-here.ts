// Starts something in a sandbox from this process itself, where no run does: to try one, and for a shell.

import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { type OpenedFile, openFlags } from "../process/native-spawn.ts";

const STDERR_CHARS_MAX = 4_000;

export interface StartedInside {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly files: readonly OpenedFile[];
}

export interface Ended {
  readonly exitCode: number | null;
  /** What was kept of it; empty for a shell. */
  readonly stderr: string;
}

/** @param isShell at this terminal */
export function runHere(
  { file, args, cwd, env, files }: StartedInside,
  { isShell = false, timeoutMs }: { readonly isShell?: boolean; readonly timeoutMs?: number },
): Promise<Ended> {
  using opened = new DisposableStack();
  const fds = files.map((one) => openSync(one.path, openFlags(one)));
  for (const fd of fds) opened.defer(() => closeSync(fd));
  const own = isShell
    ? (["inherit", "inherit", "inherit"] as const)
    : (["ignore", "ignore", "pipe"] as const);
  const child = spawn(file, args, {
    cwd,
    env: { ...env },
    stdio: [...own, ...fds],
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    if (stderr.length < STDERR_CHARS_MAX) stderr += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode) => resolve({ exitCode, stderr }));
  });
}
