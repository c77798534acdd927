// The policy of a sandboxed node that is in a file of its bundle's payload.

import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import type { JsonValue } from "../engine/json.ts";
import { parsePolicy } from "../engine/manifest/sandbox-policy.ts";
import type { SandboxPolicy } from "../engine/sandbox.ts";
import { isInside, joinInside } from "../lib/paths.ts";

const BYTES_MAX = 256 * 1024;

export interface PolicyProblem {
  /** JSON Pointer into the file; empty for the whole. */
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

/**
 * @param payload the payload's folder
 * @param file relative to it
 * @returns the policy, and all that is wrong with it
 */
export async function readPolicyFile(
  payload: string,
  file: string,
): Promise<{ readonly policy: SandboxPolicy | null; readonly problems: readonly PolicyProblem[] }> {
  const wrong = (code: string, message: string) => ({
    policy: null,
    problems: [{ path: "", code, message }],
  });
  const text = await textOf(payload, file);
  if (text === null) return wrong("missing_policy", `there is no file "${file}" in payloads/`);
  if (text === "too_large") return wrong("too_large", `it is larger than ${BYTES_MAX} bytes`);
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    return wrong("invalid_json", `it is no JSON (${(error as Error).message})`);
  }
  return parsePolicy(value);
}

async function textOf(payload: string, file: string): Promise<string | "too_large" | null> {
  const named = joinInside(payload, file);
  const [root, path] = await Promise.all(
    [payload, named ?? ""].map((one) => realpath(one).catch(() => null)),
  );
  if (root == null || path == null || !isInside(root, path)) return null;
  await using found = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const stats = await found.stat();
  if (!stats.isFile()) return null;
  return stats.size > BYTES_MAX ? "too_large" : await found.readFile("utf8");
}
