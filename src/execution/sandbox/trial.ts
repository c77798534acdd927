// A sandbox of a package on this machine, without a server and without a run: as its node would have it, and gone with what is
// started in it.

import { existsSync, mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GraphNode } from "../../engine/graph.ts";
import type { Clock, EngineLog } from "../../engine/ports.ts";
import type { SandboxEngineName } from "../../engine/sandbox.ts";
import type { TaskStart } from "../../engine/task-port.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { FifoSupply } from "../process/pipes.ts";
import { AttemptFailure, type AttemptReport } from "../runner/attempt.ts";
import { AttemptPlaces } from "../runner/attempt-places.ts";
import { startWords } from "../runner/module-process.ts";
import { Trash } from "../runner/trash.ts";
import { workerEnvironment } from "../runner/worker-contract.ts";
import { Volumes } from "../volumes.ts";
import { isSandboxed, withPolicy } from "./config.ts";
import { NO_NETWORK_EXIT } from "./network/relay-words.ts";
import { SandboxNetworks } from "./network/sandbox-networks.ts";
import { runHere } from "./run-here.ts";
import { Sandboxes, sandboxEnvironment } from "./sandboxes.ts";

export interface TrialParts {
  /** The package's folder. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly engine: SandboxEngineName;
  readonly clock: Clock;
  readonly log: EngineLog;
}

/** How what was started has ended. */
export interface Tried {
  readonly exitCode: number | null;
  /** What the sandbox itself has said; null: it has started. */
  readonly problem: string | null;
}

/** Whether a node's command runs in a sandbox. */
export function hasSandbox({ config }: GraphNode): boolean {
  return config.kind === "executor" && isSandboxed(config);
}

/**
 * Starts something in the sandbox of a node, and waits for its end.
 *
 * @param node one that has a sandbox
 * @param what `check`: nothing but the sandbox, and the hosts of its policy are tried; `shell`: a shell at this terminal
 */
export async function tryNode(node: GraphNode, what: "check" | "shell", parts: TrialParts): Promise<Tried> {
  const { folder, env, engine, clock, log } = parts;
  await using open = new AsyncDisposableStack();
  const home = mkdtempSync(join(realpathSync(tmpdir()), "troupe-sandbox-"));
  open.defer(() => removeTree(home));
  const networks = new SandboxNetworks({ clock, log });
  open.defer(() => networks.close());
  const fifos = new FifoSupply(join(home, "tmp", "pipes"));
  open.defer(() => fifos.close());
  const trash = new Trash(home, join(home, "tmp", "attempts"), clock, log);
  open.defer(() => trash.close());
  const payload = join(folder, "payloads");
  const payloadOf = async () => (existsSync(payload) ? payload : null);
  const tools = { trash, fifos, volumes: new Volumes(home, null) };
  const places = new AttemptPlaces({ home, payloadOf, clock, log }, tools);
  const { config: declared, nodeId } = node;
  if (declared.kind !== "executor") throw new Error(`${nodeId} has no command.`);
  const task = taskOf(nodeId, declared, clock);
  const report: AttemptReport = { events: () => {}, actions: () => {}, backpressure: () => null };
  try {
    const config = await withPolicy(declared, task, payloadOf);
    if (!isSandboxed(config)) throw new Error(`${nodeId} has no sandbox.`);
    const network = { ...config.sandbox.network, check: what === "check" || config.sandbox.network.check };
    const policy = { ...config, sandbox: { ...config.sandbox, network } };
    const outside = await places.prepare(task, policy, report);
    open.defer(() => places.putAway(outside, null));
    const sandbox = open.use(
      await new Sandboxes(home, networks, engine).prepare(task, policy, outside, report),
    );
    const words = startWords(
      { ...config, module: null, command: what === "check" ? ["true"] : ["/bin/sh", "-i"] },
      task,
      sandbox.places,
    );
    const variables = workerEnvironment({
      ...{ config, task, places: sandbox.places, prefixes: [], runEvents: null, llm: null, runtimeEnv: env },
      base: sandboxEnvironment,
    });
    const started = sandbox.wrap(words, variables);
    const isShell = what === "shell";
    const { exitCode, stderr } = await runHere(started, { isShell });
    const hasFailed = exitCode !== 0 && (!isShell || exitCode === NO_NETWORK_EXIT);
    const problem = hasFailed ? stderr.trim() || `It ended with exit code ${exitCode}.` : null;
    return { exitCode, problem };
  } catch (error) {
    if (error instanceof AttemptFailure) return { exitCode: null, problem: error.message };
    throw error;
  }
}

/** A message with nothing in it. */
function taskOf(nodeId: string, config: TaskStart["config"], clock: Clock): TaskStart {
  const ref = { jobId: "trial", taskSeq: 1, attempt: 1 };
  return {
    ...{
      ref,
      kind: "command",
      publicJobId: "trial",
      runId: "run_trial",
      agentId: nodeId,
      config,
      maxAttempts: 1,
    },
    ...{ idempotencyKey: "trial", sandboxName: `${nodeId}-trial`, lease: null, agentState: null },
    workflow: { graph_id: "trial", job_name: null, type: "batch" },
    ...{
      bundleFingerprint: "trial",
      hasOwnPayload: false,
      configurationJson: null,
      humanResponses: [],
      timeoutMs: null,
    },
    traceparent: "00-00000000000000000000000000000001-0000000000000001-00",
    envelope: {
      ...{ message_id: "msg_trial", job_id: "trial", from: null, to: nodeId, type: "init", class: "command" },
      ...{ correlation_id: "trial", causation_id: null, attempt: 1, priority: 0, ttl_ms: null, headers: {} },
      timestamp: new Date(clock.nowMs()).toISOString(),
      ...{ content_type: "application/json", body: {}, artifacts: [], stream: null },
    },
  };
}
