// A program that runs sandbox-attacks.py as a command, with and without a sandbox, and prints what it got. It is one of its
// own so that tests can start it as another user.

import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import type { ExecutorConfig } from "../../src/engine/graph.ts";
import { parsePolicy } from "../../src/engine/manifest/sandbox-policy.ts";
import { executorConfig, RunnerFixture } from "./execution.ts";

const PROCESSES = 48;
const TMP_MB = 8;
const FILE_MB = 4;
/** Something in the environment of this program. */
const VARIABLE = ["TROUPE_ATTACKED", "the runtime's own"];

export interface Attacked {
  /** By the names of the attacks: whether it got what it was after, and what happened. */
  readonly bare: Readonly<Record<string, readonly [boolean, string]>>;
  readonly sandboxed: Readonly<Record<string, readonly [boolean, string]>>;
  /** Names of what was kept of the sandboxed one's output. */
  readonly artifacts: readonly string[];
}

async function attacked(): Promise<Attacked> {
  const outside = await realpath(await mkdtemp(join("/var/tmp", "troupe-outside-")));
  const fixture = new RunnerFixture();
  const { home } = fixture;
  const victimWord = `victim-${process.pid}`;
  const victim = spawn("sh", ["-c", "read line; exit", victimWord], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  const servers: Server[] = [];
  try {
    const shown = join(outside, "shown");
    mkdirSync(shown);
    writeFileSync(join(shown, "file"), "shown");
    // Whatever the umask is: that of a program in the same process is its own.
    for (const path of [outside, shown, join(shown, "file")]) chmodSync(path, 0o755);
    const temporary = join(home, "..", `troupe-temporary-${process.pid}`);
    writeFileSync(temporary, "temporary");
    for (const name of ["troupe.db", "secret-key"])
      writeFileSync(join(home, name), "secret", { mode: 0o600 });
    mkdirSync(join(home, "runs/run_other/agents/a/work"), { recursive: true });
    writeFileSync(join(home, "runs/run_other/agents/a/work/private"), "private");
    fixture.write("attacks.py", readFileSync(join(import.meta.dirname, "sandbox-attacks.py"), "utf8"));
    const abstract = `troupe-attack-${process.pid}`;
    const listen = async (options: object) => {
      const server = createServer((socket) => socket.end());
      servers.push(server);
      await new Promise<void>((resolve) => server.listen(options, resolve));
      return server.address();
    };
    await listen({ path: `\0${abstract}` });
    await listen({ path: join(outside, "socket") });
    // Of both families.
    const { port } = (await listen({ host: "::", port: 0 })) as AddressInfo;
    const target = {
      home,
      tmp_file: temporary,
      read_only: shown,
      socket: join(outside, "socket"),
      node: process.execPath,
      abstract,
      port,
      victim: victim.pid,
      victim_word: victimWord,
      variable: VARIABLE,
      namespaces: Object.fromEntries(
        ["pid", "ipc", "uts", "net", "mnt", "user", "cgroup"].map((kind) => [
          kind,
          readlinkSync(`/proc/self/ns/${kind}`),
        ]),
      ),
      processes: PROCESSES,
      tmp_mb: TMP_MB,
      file_mb: FILE_MB,
    };
    const { policy } = parsePolicy({
      read_only: [shown],
      limits: { processes: PROCESSES, tmp_mb: TMP_MB, file_mb: FILE_MB, cpu_seconds: 60 },
    });
    const run = async (runId: string, changes: Partial<ExecutorConfig>) => {
      const outcome = await fixture.run({
        runId,
        bundleFingerprint: "f",
        config: executorConfig({
          command: ["/usr/bin/python3", "attacks.py"],
          uploadPaths: [{ path: "attacks.py", as: "attacks.py" }],
          environment: { ATTACK_JSON: JSON.stringify(target) },
          ...changes,
        }),
      });
      if (outcome.kind !== "succeeded") throw new Error(JSON.stringify(outcome));
      return outcome;
    };
    const sandboxed = await run("run_sandboxed", { runnerModule: "Sandbox", sandbox: policy });
    const bare = await run("run_bare", {});
    const got = ({ actions }: typeof bare) => actions.completeStep as unknown as Attacked["bare"];
    return {
      bare: got(bare),
      sandboxed: got(sandboxed),
      artifacts: sandboxed.artifacts.map(({ name }) => name),
    };
  } finally {
    victim.kill("SIGKILL");
    await ended(victim);
    for (const server of servers) server.close();
    await fixture[Symbol.asyncDispose]();
    await rm(outside, { recursive: true });
    await rm(join(home, "..", `troupe-temporary-${process.pid}`), { force: true });
  }
}

function ended(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve) => child.once("exit", resolve));
}

console.log(JSON.stringify(await attacked()));
