// Whether a program can be started, for commands that are started through a shell: it would tell in its own way.

import { access, constants, stat } from "node:fs/promises";
import { resolve } from "node:path";

/** Where the system looks without PATH. */
const DEFAULT_PATH = "/bin:/usr/bin";

/** @throws an error as spawn's (code ENOENT, EACCES) */
export async function requireExecutable(
  file: string,
  { cwd, path = DEFAULT_PATH }: { readonly cwd: string; readonly path?: string | undefined },
): Promise<void> {
  const candidates = file.includes("/")
    ? [resolve(cwd, file)]
    : path.split(":").map((folder) => resolve(cwd, folder, file));
  let code = "ENOENT";
  for (const candidate of candidates) {
    const found = await stat(candidate).catch(() => null);
    if (found === null) continue;
    const mayRun = await access(candidate, constants.X_OK).then(
      () => found.isFile(),
      () => false,
    );
    if (mayRun) return;
    code = "EACCES";
  }
  throw Object.assign(new Error(`spawn ${file} ${code}`), { code });
}
