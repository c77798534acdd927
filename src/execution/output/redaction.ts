// Redaction: secret values leave what a worker prints, reports and asks for before anything of it is shown or written.
//
// Z1. A value counts as secret when it has at least 8 characters, and came from a pass_env name, from a key that
//     looks like a secret (in a command's environment or a module's config), from the job's configuration, or is the
//     runtime's own.
// Z2. Output is redacted line by line, so each long enough line of a secret counts as a secret of its own.
// Z3. A secret is found as it is, as JSON and URLs spell it, and inside base64; not in other encodings, nor in pieces.
// Z4. A secret may be of any length; of one of many thousand characters JSON within JSON is not recognised.

import type { ExecutorConfig } from "../../engine/graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { looksSecret } from "../../security/secret-names.ts";
import { secretsInText } from "../../security/secret-texts.ts";
import { SecretSieve } from "./secret-sieve.ts";

const SECRET_CHARS_MIN = 8;
const REPLACEMENT = "[redacted]";
/** Of a form as the source of a regular expression: what is much longer cannot be compiled, or only slowly. */
const PATTERN_CHARS_MAX = 16 * 1024;
const GROUP_CHARS_MAX = 256 * 1024;
/** With shorter words the sieve would stop at every other place. */
const SIEVE_CHARS_MIN = 4;

export interface Redactor {
  /** Characters of the longest text that is redacted: a cut text needs that much overlap to be redacted whole. */
  readonly longestChars: number;
  text(text: string): string;
  /** A text that was cut off at its end: what could be the beginning of a secret there is left out. */
  cutText(text: string): string;
  /** The end of a longer text: what could be the end of a secret at its beginning is left out. */
  tailText(text: string): string;
  /** Redacts every string inside, keys included. */
  json(value: JsonValue): JsonValue;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The secrets that one executor's worker is given.
 *
 * @param others those of the job's opened configuration, and the runtime's own
 */
export function secretsOf(
  config: ExecutorConfig,
  others: readonly string[],
  runtimeEnv: Environment,
): string[] {
  const passed = config.passEnv.map((name) => runtimeEnv[name]).filter((value) => value !== undefined);
  const given = Object.entries(config.environment).flatMap(([name, value]) =>
    secretsUnder(value, looksSecret(name)),
  );
  return [...passed, ...given, ...others];
}

/**
 * The secrets that a module is given.
 *
 * @param config the node's own, which it gets as its context
 * @param others as in secretsOf
 */
export function secretsOfModule(config: JsonObject, others: readonly string[]): string[] {
  return [...secretsUnder(config, false), ...others];
}

function secretsUnder(value: JsonValue, isSecret: boolean): string[] {
  if (typeof value === "string") return [...(isSecret ? [value] : []), ...secretsInText(value)];
  if (Array.isArray(value)) return value.flatMap((item: JsonValue) => secretsUnder(item, isSecret));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => secretsUnder(item, isSecret || looksSecret(key)));
}

const nothingToRedact: Redactor = {
  longestChars: 0,
  text: (text) => text,
  cutText: (text) => text,
  tailText: (text) => text,
  json: (value) => value,
};

/** Makes the redactor of a list of secrets; values that are too short to be told from chance are left out. */
export function makeRedactor(secrets: readonly string[]): Redactor {
  const isLong = (text: string) => text.trim().length >= SECRET_CHARS_MIN;
  const values = new Set(secrets.flatMap((secret) => [secret, ...secret.split(/\r?\n/)]).filter(isLong));
  if (values.size === 0) return nothingToRedact;
  const forms = [...new Map([...values].flatMap(formsOf).map((form) => [form.pattern, form])).values()];
  // Longest first: a secret that begins with another one is replaced as a whole.
  forms.sort((a, b) => b.chars - a.chars);
  const longestChars = forms[0]?.chars ?? 0;
  const long = forms.filter(isLongForm).flatMap(({ texts }) => texts);
  const short = forms.filter((form) => !isLongForm(form)).map(({ pattern }) => pattern);
  const patterns = groupsOf(short).map((group) => new RegExp(group.join("|"), "g"));
  const sieve = sieveOf(forms);
  const text = (input: string) => {
    if (sieve?.holds(input) === false) return input;
    const rest = long.reduce((left, form) => left.replaceAll(form, REPLACEMENT), input);
    return patterns.reduce((left, pattern) => left.replace(pattern, REPLACEMENT), rest);
  };
  return {
    longestChars,
    text,
    cutText: (input) => {
      const redacted = text(input);
      return redacted.slice(0, Math.max(0, redacted.length - longestChars));
    },
    tailText: (input) => text(input).slice(longestChars),
    json: (value) => redactJson(value, text),
  };
}

/** Of how many lists of secrets the redactors are kept. */
const KEPT_MAX = 16;

/** Makes redactors and keeps the latest: making one may take milliseconds, and attempts often have the same secrets. */
export class Redactors {
  readonly #kept = new Map<string, Redactor>();

  of(secrets: readonly string[]): Redactor {
    const key = JSON.stringify(secrets);
    const redactor = this.#kept.get(key) ?? makeRedactor(secrets);
    this.#kept.delete(key);
    this.#kept.set(key, redactor);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT_MAX) break;
      this.#kept.delete(oldest);
    }
    return redactor;
  }
}

/** Of what messages bring to a long-lived worker, the latest are redacted. */
const LEARNED_MAX = 200;

/**
 * A redactor of a worker that is given more secrets while it runs.
 *
 * @param learned grows meanwhile
 */
export function growingRedactor(
  redactors: Redactors,
  secrets: readonly string[],
  learned: readonly string[],
): Redactor {
  let known = 0;
  let redactor = redactors.of(secrets);
  const current = () => {
    if (learned.length !== known) {
      known = learned.length;
      redactor = redactors.of([...secrets, ...new Set(learned.slice(-LEARNED_MAX))]);
    }
    return redactor;
  };
  return {
    get longestChars() {
      return current().longestChars;
    },
    text: (text) => current().text(text),
    cutText: (text) => current().cutText(text),
    tailText: (text) => current().tailText(text),
    json: (value) => current().json(value),
  };
}

/** Null when a secret has nothing by which all of its forms could be told. */
function sieveOf(forms: readonly Form[]): SecretSieve | null {
  const words = forms.map(({ word }) => word);
  return words.some((word) => word.length < SIEVE_CHARS_MIN) ? null : new SecretSieve(words);
}

/** One character of base64. */
const SHARED = "(?:[A-Za-z0-9+_-]|%2[BbFf]|\\\\{0,4}/)";

interface Form {
  /** Stands, as it is, in everything that the form matches. */
  readonly word: string;
  /** As the source of a regular expression. */
  readonly pattern: string;
  /** What is looked for instead when that is too long. */
  readonly texts: readonly string[];
  /** Characters of what it matches, without rare escapes. */
  readonly chars: number;
}

/** A secret as it is, as JSON and URLs spell it, and within what is encoded as base64. */
function formsOf(secret: string): Form[] {
  const json = JSON.stringify(secret).slice(1, -1);
  // The pattern of a long text would be longer still.
  const pattern = secret.length > PATTERN_CHARS_MAX ? secret : inJsonPattern(secret);
  const inJson = { word: plainPart(secret), pattern, texts: [secret, json], chars: json.length };
  const inUrl = encodeURIComponent(secret.toWellFormed());
  const inUrlLower = inUrl.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase());
  const form = (text: string): Form => {
    return { word: text, pattern: RegExp.escape(text), texts: [text], chars: text.length };
  };
  const bytes = Buffer.from(secret);
  const inBase64 = [0, 1, 2].map((before) => inBase64Form(base64Of(bytes, before), before + bytes.length));
  return [inJson, form(inUrl), form(inUrlLower), ...inBase64];
}

/** Of base64 in either alphabet, `+`, `/` and `=` also as URLs spell them, and `/` as JSON may. */
function inBase64Form(text: string, bytesEnd: number): Form {
  const url = text.replaceAll("+", "-").replaceAll("/", "_");
  const parts = text.split(/[+/]/);
  const word = parts.reduce((longest, part) => (part.length > longest.length ? part : longest), "");
  // A last character that holds bits of the secret and of what follows, and the padding, go with it. A first one does
  // not: a pattern that begins with any character is looked for thirty times as long, and few bits are in it.
  const last = bytesEnd % 3 === 0 ? "" : `(?:${SHARED}(?:=|%3[Dd]){0,2})?`;
  const middle = RegExp.escape(text)
    .replaceAll("\\+", "(?:[+\\-]|%2[Bb])")
    .replaceAll("\\/", "(?:\\\\{0,4}/|_|%2[Ff])");
  return { word, pattern: middle + last, texts: [text, url], chars: text.length };
}

/** The longest part of a secret that every writer of JSON spells in the same way: ASCII but for `"`, `'`, `/` and `\\`. */
function plainPart(secret: string): string {
  const parts = secret.match(/[ !#-&(-.0-[\]-~]+/g) ?? [];
  return parts.reduce((longest, part) => (part.length > longest.length ? part : longest), "");
}

/** Patterns that make one regular expression each: one of all of them might be too large. */
function groupsOf(patterns: readonly string[]): string[][] {
  const groups: string[][] = [];
  let chars = Number.POSITIVE_INFINITY;
  for (const pattern of patterns) {
    chars += pattern.length;
    if (chars > GROUP_CHARS_MAX) {
      groups.push([]);
      chars = pattern.length;
    }
    groups.at(-1)?.push(pattern);
  }
  return groups;
}

function isLongForm({ pattern }: Form): boolean {
  return pattern.length > PATTERN_CHARS_MAX;
}

/** JSON within JSON within JSON within JSON: each time a backslash becomes two. */
const ESCAPED_TIMES = 16;
const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  "\b": "b",
  "\t": "t",
  "\n": "n",
  "\f": "f",
  "\r": "r",
};

/**
 * A text as it is, or as any writer of JSON may spell it, up to four times over. The runs of backslashes that it takes
 * are bounded, so that looking for it takes time linear to the text's length.
 */
function inJsonPattern(text: string): string {
  let pattern = "";
  for (const [, slashes = "", char = ""] of text.matchAll(/(\\*)([^\\]|$)/g)) {
    pattern += unitPattern(char, slashes.length);
  }
  return pattern;
}

/** A character with the backslashes before it. */
function unitPattern(char: string, slashes: number): string {
  const backslashes = (more: number) => {
    const most = (slashes + more) * ESCAPED_TIMES;
    return most === 0 ? "" : `\\\\{${slashes + more},${most}}`;
  };
  if (char === "") return backslashes(0);
  const plain = RegExp.escape(char);
  if (/[\x20-\x7e]/.test(char)) {
    return /["'/]/.test(char) ? `(?:${backslashes(0)}|${backslashes(1)})${plain}` : backslashes(0) + plain;
  }
  const code = char.charCodeAt(0).toString(16).padStart(4, "0");
  const hex = `u${code.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)}`;
  const short = SHORT_ESCAPES[char];
  const escaped = short === undefined ? hex : `(?:${hex}|${short})`;
  return `(?:${backslashes(0)}${plain}|${backslashes(1)}${escaped})`;
}

/**
 * The characters of base64 that follow from these bytes alone, wherever they stand: three bytes are four characters.
 *
 * @param before how many bytes stand before them, beyond a multiple of three
 */
function base64Of(bytes: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
  const whole = Math.floor(((before + bytes.length) * 4) / 3);
  return text.slice(Math.ceil((before * 4) / 3), whole);
}

function redactJson(value: JsonValue, text: (input: string) => string): JsonValue {
  if (typeof value === "string") return text(value);
  if (Array.isArray(value)) return value.map((item: JsonValue) => redactJson(item, text));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [text(key), redactJson(item, text)]));
}
