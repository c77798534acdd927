// Redaction: secret values leave a worker's output before anything of it is shown or written.
//
// Z1. A value counts as secret when it has at least 8 characters, and came from a pass_env name, from a key that
//     looks like a secret (in the node's environment or the job's configuration), or is given by name.
// Z2. Output is redacted line by line, so each long enough line of a secret counts as a secret of its own.

import type { ExecutorConfig } from "../engine/graph.ts";
import { isObject, type JsonValue } from "../engine/json.ts";

const SECRET_CHARS_MIN = 8;
const SECRET_KEY = /(?:api[_-]?key|token|secret|password|authorization|cookie|private[_-]?key)$/i;
const REPLACEMENT = "[redacted]";

/** Whether a configuration key or variable of this name holds a secret. */
export function looksSecret(name: string): boolean {
  return SECRET_KEY.test(name);
}

export interface Redactor {
  /** Characters of the longest secret: a cut text needs that much overlap to be redacted whole. */
  readonly longestChars: number;
  text(text: string): string;
  /** Redacts every string inside, keys included. */
  json(value: JsonValue): JsonValue;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The secrets that one executor's worker is given. */
export function secretsOf(
  config: ExecutorConfig,
  configurationJson: string | null,
  runtimeEnv: Environment,
): string[] {
  const passed = config.passEnv.map((name) => runtimeEnv[name]);
  const given = Object.entries(config.environment).map(([name, value]) =>
    looksSecret(name) ? value : undefined,
  );
  return [...passed, ...given, ...secretsIn(configurationJson, runtimeEnv)].filter(
    (secret) => secret !== undefined,
  );
}

/** The secrets of a job's configuration, and the runtime's own token. */
export function secretsIn(configurationJson: string | null, runtimeEnv: Environment): string[] {
  const secrets: string[] = [];
  if (runtimeEnv.SVC_API_TOKEN !== undefined) secrets.push(runtimeEnv.SVC_API_TOKEN);
  if (configurationJson === null) return secrets;
  try {
    collect(JSON.parse(configurationJson) as JsonValue, false, secrets);
  } catch {
    // A configuration that is no JSON has no keys to look at.
  }
  return secrets;
}

function collect(value: JsonValue, secret: boolean, into: string[]): void {
  if (typeof value === "string") {
    if (secret) into.push(value);
  } else if (Array.isArray(value)) {
    for (const item of value) collect(item, secret, into);
  } else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) collect(item, secret || looksSecret(key), into);
  }
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
