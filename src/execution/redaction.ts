// Redaction: secret values leave a worker's output before anything of it is shown or written.
//
// Z1. A value counts as secret when it has at least 8 characters, and came from a pass_env name, from a key that
//     looks like a secret (in the node's environment), from the job's configuration, or is the runtime's own.
// Z2. Output is redacted line by line, so each long enough line of a secret counts as a secret of its own.

import type { ExecutorConfig } from "../engine/graph.ts";
import { isObject, type JsonValue } from "../engine/json.ts";
import { looksSecret } from "../secrets/values.ts";

const SECRET_CHARS_MIN = 8;
const REPLACEMENT = "[redacted]";

export interface Redactor {
  /** Characters of the longest secret: a cut text needs that much overlap to be redacted whole. */
  readonly longestChars: number;
  text(text: string): string;
  /** Redacts every string inside, keys included. */
  json(value: JsonValue): JsonValue;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The secrets that one executor's worker is given.
 *
 * @param ofConfiguration those of the job's opened configuration
 */
export function secretsOf(
  config: ExecutorConfig,
  ofConfiguration: readonly string[],
  runtimeEnv: Environment,
): string[] {
  const passed = config.passEnv.map((name) => runtimeEnv[name]).filter((value) => value !== undefined);
  const given = Object.entries(config.environment)
    .filter(([name]) => looksSecret(name))
    .map(([, value]) => value);
  return [...passed, ...given, ...ofConfiguration, ...secretsOfRuntime(runtimeEnv)];
}

/** The secrets of the runtime itself. */
export function secretsOfRuntime({ SVC_API_TOKEN, SVC_SECRET_KEY }: Environment): string[] {
  return [SVC_API_TOKEN, SVC_SECRET_KEY].filter((value) => value !== undefined);
}

/** Makes the redactor of a list of secrets; values that are too short to be told from chance are left out. */
export function makeRedactor(secrets: readonly string[]): Redactor {
  const lines = secrets.flatMap((secret) => [secret, ...secret.split(/\r?\n/)]);
  const values = [...new Set(lines)].filter((line) => line.trim().length >= SECRET_CHARS_MIN);
  if (values.length === 0) return { longestChars: 0, text: (text) => text, json: (value) => value };
  // Longest first: a secret that begins with another one is replaced as a whole.
  values.sort((a, b) => b.length - a.length);
  const pattern = new RegExp(values.map((value) => RegExp.escape(value)).join("|"), "g");
  const text = (input: string) => input.replace(pattern, REPLACEMENT);
  return { longestChars: values[0]?.length ?? 0, text, json: (value) => redactJson(value, text) };
}

function redactJson(value: JsonValue, text: (input: string) => string): JsonValue {
  if (typeof value === "string") return text(value);
  if (Array.isArray(value)) return value.map((item: JsonValue) => redactJson(item, text));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [text(key), redactJson(item, text)]));
}
