// The configuration of a command as its sandbox has it: with a policy that is in a file of the payload.

import type { ExecutorConfig } from "../../engine/graph.ts";
import type { Amounts } from "../../engine/resources.ts";
import type { SandboxPolicy } from "../../engine/sandbox.ts";
import type { TaskStart } from "../../engine/task-port.ts";
import { readPolicyFile } from "../../security/sandbox-policy-file.ts";
import { AttemptFailure } from "../runner/attempt.ts";
import { failureOfPayload } from "../runner/command-failure.ts";
import type { PayloadOf } from "../runner/paths.ts";

export type SandboxedConfig = ExecutorConfig & { readonly sandbox: SandboxPolicy };

export function isSandboxed(config: ExecutorConfig): config is SandboxedConfig {
  return config.sandbox !== null;
}

/** @throws AttemptFailure when the file is not there, or is no policy */
export async function withPolicy(
  config: ExecutorConfig,
  task: TaskStart,
  payloadOf: PayloadOf,
): Promise<ExecutorConfig> {
  const { policyFile } = config;
  if (policyFile === null) return config;
  const payload = await payloadOf(task).catch((error: unknown) => {
    throw failureOfPayload(error);
  });
  if (payload === null) throw invalid(policyFile, ["the job has no bundle to take it from"]);
  const { policy, problems } = await readPolicyFile(payload, policyFile);
  if (policy === null || problems.length > 0)
    throw invalid(
      policyFile,
      problems.map(({ message }) => message),
    );
  return { ...config, sandbox: policy, passEnv: policy.environment };
}

function invalid(file: string, messages: readonly string[]): AttemptFailure {
  return new AttemptFailure(
    "sandbox.policy_invalid",
    `The policy "${file}" of the sandbox cannot be used: ${messages.join("; ")}.`,
  );
}

/** What control groups keep the command within; null: nothing. */
export function keptAmounts({ demand, sandbox }: ExecutorConfig): Amounts | null {
  const memory = [demand?.memoryBytes ?? 0, sandbox?.limits.memoryBytes ?? 0].filter((bytes) => bytes > 0);
  const memoryBytes = memory.length === 0 ? 0 : Math.min(...memory);
  const cpuMillis = demand?.cpuMillis ?? 0;
  return memoryBytes + cpuMillis === 0 ? null : { cpuMillis, memoryBytes, diskBytes: 0, gpus: 0 };
}
