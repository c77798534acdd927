// The check of `troupe doctor` and of a running server: whether a sandbox starts here.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxEngineName } from "../../engine/sandbox.ts";
import type { Finding } from "../machine.ts";
import { Sandboxes } from "./sandboxes.ts";

const name = "sandbox";

/** Starts one, in a folder of its own. */
export async function checkSandbox(engine: SandboxEngineName): Promise<Finding> {
  const folder = await mkdtemp(join(tmpdir(), "troupe-doctor-"));
  try {
    const refusal = await new Sandboxes(folder, null, engine).refusal();
    if (refusal === null) return { name, state: "ok", text: `one was started, by ${engine}` };
    return {
      name,
      state: "warn",
      text: `there are none: ${refusal}`,
      fix: "Only commands and modules that are to run in a sandbox need this: docs/sandbox.md.",
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
