// What tests of sandboxes share: whether this machine has any, and a policy as a node's config has it.

import { spawnSync } from "node:child_process";
import type { ExecutorConfig } from "../../src/engine/graph.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import { parsePolicy } from "../../src/engine/manifest/sandbox-policy.ts";
import { testedEngine } from "./engines.ts";
import { executorConfig } from "./execution.ts";

/** Why tests with sandboxes are skipped; false where they run. */
export const noSandboxes: string | false = canStartOne() ? false : "no sandboxes here: see `troupe doctor`";

/** Whether bubblewrap makes namespaces, and root, which gives its rights up before, a root folder as well; or gVisor runs. */
function canStartOne(): boolean {
  if (testedEngine === "gvisor") return spawnSync("runsc", ["--version"]).status === 0;
  const asRoot = [
    "bwrap",
    "--dev-bind",
    "/",
    "/",
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
  ];
  const [file = "", ...args] = [
    ...(process.getuid?.() === 0 ? asRoot : []),
    ...["bwrap", "--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "true"],
  ];
  return spawnSync(file, args).status === 0;
}

/** The fields of a node that runs in a sandbox. */
export function sandboxed(policy: JsonObject = {}): Partial<ExecutorConfig> {
  const parsed = parsePolicy(policy);
  if (parsed.problems.length > 0) throw new Error(JSON.stringify(parsed.problems));
  return { runnerModule: "Sandbox", sandbox: parsed.policy, passEnv: parsed.policy.environment };
}

/** A module that runs in a process of its own, and sees the whole payload. @param own what it gets as its node's config */
export function moduleInProcess(path: string, own: JsonObject, policy: JsonObject = {}): ExecutorConfig {
  return executorConfig({
    ...sandboxed(policy),
    command: [path],
    module: { path, config: own },
    uploadPaths: [{ path: ".", as: "." }],
    outputMessageType: null,
  });
}

/** What a node of this machine has among its labels. */
export const sandboxLabels: Readonly<Record<string, string>> =
  noSandboxes === false ? { "troupe/sandbox": "yes", "troupe/sandbox-engine": testedEngine } : {};
