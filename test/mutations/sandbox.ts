// Faults of sandboxes: what would be shown, allowed, left or done without one.

import { type Mutation, mutationsOf } from "./mutation.ts";

const attacks = ["test/integration/sandbox-attacks.test.ts"];
const commands = ["src/execution/sandbox/sandboxes.test.ts"];

const command = mutationsOf("src/execution/sandbox/bubblewrap.ts", attacks);
const gvisor = mutationsOf("src/execution/sandbox/gvisor.ts", ["src/execution/sandbox/gvisor.test.ts"]);
const mounts = mutationsOf("src/execution/sandbox/mounts.ts", commands);
const ownership = mutationsOf("src/execution/sandbox/ownership.ts", commands);
const runner = mutationsOf("src/execution/runner/host-local.ts", commands);

const modules = mutationsOf("src/execution/runner/module-process.ts", [
  "src/execution/runner/hostile-module.test.ts",
]);

const relay = mutationsOf("src/execution/sandbox/network/relay-words.ts", [
  "src/execution/sandbox/network.test.ts",
]);

export const sandboxMutations: readonly Mutation[] = [
  relay("the relay of a sandbox has the worker's variables", '"env", "-i", node', "node"),
  relay(
    "clients in a sandbox ask for what its policy lists of the loopback themselves",
    "LOOPBACK.filter((host) => !listed.has(host))",
    "LOOPBACK",
  ),
  relay("a command is started although its network is not there", '[ "$said" = ready ] ||', "true ||"),
  relay(
    "an unreachable host is blamed on the command",
    "exitCode === NO_NETWORK_EXIT && stderr.startsWith(NO_NETWORK)",
    "false",
  ),
  gvisor("gVisor's sandboxes do not hear SIGTERM", '"kill", "--all", id, "TERM"', '"state", id'),
  mutationsOf("src/execution/sandbox/sandboxes.ts", ["src/execution/sandbox/gvisor.test.ts"])(
    "devices that gVisor cannot give are left out",
    "!givesDevices(this.#engine)",
    "false",
  ),
  mutationsOf("src/execution/sandbox/sandboxes.ts", commands)(
    "a variable with a NUL is taken for more options of bubblewrap",
    'word.includes("\\0")',
    "word === null",
  ),
  mutationsOf("src/resources/capacity.ts", ["src/resources/capacity.test.ts"])(
    "a run is accepted whose sandbox cannot have its device",
    "engines.some(givesDevices)",
    "engines.length > 0",
  ),
  gvisor("the network of gVisor's sandboxes is the machine's", '"--network=none"', '"--network=host"'),
  mutationsOf("src/execution/sandbox/network/allow-list.ts", [
    "src/execution/sandbox/network/allow-list.test.ts",
    "src/execution/sandbox/network/proxy.test.ts",
  ])(
    "an allowed name leads to addresses that are not public",
    "what === null || this.#listed.has(text)",
    "what === null || text !== null",
  ),
  command("a worker has all capabilities in its sandbox", '"--cap-drop", "ALL"', '"--cap-add", "ALL"'),
  mutationsOf("src/execution/sandbox/mounts.ts", attacks)(
    "what a sandbox is to read may be written",
    "isReadOnly: true,",
    "isReadOnly: false,",
  ),
  gvisor("a killed runtime's descriptions of sandboxes are left", "  removeLeft(prefix);\n", ""),
  gvisor("a worker cannot write its events in gVisor", "[writable(pipe.from, pipe.path)]", "[]"),
  command("system calls are not filtered", ', "--seccomp", String(FILTER)', ""),
  command("the network is the machine's", ', "--unshare-net"', ""),
  command("files may be added to the root and /dev", ', "--remount-ro", "/dev", "--remount-ro", "/"', ""),
  mutationsOf("src/execution/sandbox/engine.ts", attacks)(
    "processes have no limit",
    "`--nproc=${processes}`",
    "`--nproc=${processes * 100}`",
  ),
  mounts("a symlink in a policy leads to what is closed", "isClosedPath(real) || ", ""),
  mutationsOf("src/execution/sandbox/mounts.ts", ["src/execution/sandbox/mounts.test.ts"])(
    "a policy shows what is above the home",
    " || isInside(real, realHome)",
    "",
  ),
  mounts("read-only volumes may be written", "need.isReadOnly ? readOnly", "need.isReadOnly ? writable"),
  ownership("read-only volumes stay closed to root's sandboxes", "await showTree(volume);", "continue;"),
  runner("a sandboxed command without a policy runs bare", "!== (given.sandbox !== null))", "=== null)"),
  runner("commands run without a sandbox where one is required", "this.#options.requireSandbox()", "false"),
  mutationsOf("src/execution/runner/worker-process.ts", commands)(
    "SIGTERM ends the sandbox, and with it the worker, at once",
    '"SIGTERM", this.#wrapped !== null',
    '"SIGTERM"',
  ),
  mutationsOf("src/execution/process/usage.ts", ["src/execution/process/usage.test.ts"])(
    "what a running command held before is forgotten",
    "Math.max(worker.memoryBytesMax, memoryBytes)",
    "0",
  ),
  mutationsOf("src/execution/process/side-command.ts", ["src/execution/process/side-command.test.ts"])(
    "validators run without a sandbox where one is required",
    "this.#parts.requireSandbox?.()",
    "false",
  ),
  modules("a module's reply is read through a symlink", " | O_NOFOLLOW", ""),
  modules("what is no file is read as a module's reply", "if (!found.isFile()) return null;", ""),
  modules("a module's reply may be of any size", "found.size > RETURNED", "found.size > 2 ** 40 + RETURNED"),
  modules("a module that left a reply and failed has succeeded", "command.exitCode !== 0", "false"),
  modules(
    "a module's heap has no limit",
    "`--max-old-space-size=${Math.ceil(memoryBytes / MiB)}`",
    '"--no-warnings"',
  ),
  mutationsOf("src/execution/runner/worker-contract.ts", ["src/execution/runner/hostile-module.test.ts"])(
    "a module in a process has the variables of workers",
    "if (config.module !== null) return env;",
    "",
  ),
  mutationsOf("src/execution/runner/module-runner.ts", ["src/execution/runner/module-runner.test.ts"])(
    "modules run in threads where sandboxes are required",
    "this.#options.requireSandbox()",
    "false",
  ),
  mutationsOf("src/resources/capacity.ts", ["src/resources/capacity.test.ts"])(
    "a run is accepted whose sandbox nobody has",
    "if (sandboxed !== undefined)",
    "if (sandboxed === null)",
  ),
];
