// Redaction: secret values leave what a worker prints, reports and asks for before anything of it is shown or written.
//
// - A value counts as secret when it has at least 8 characters, and came from a pass_env name, from a key that
//   looks like a secret (in a command's environment or a module's config), from the job's configuration, or is the
//   runtime's own.
// - Output is redacted line by line, so each long enough line of a secret counts as a secret of its own.
// - A secret is found as it is, as JSON and URLs spell it, and inside base64; not in other encodings, nor in pieces.
// - A secret may be of any length; of one of many thousand characters JSON within JSON is not recognised.

import type { ExecutorConfig } from "../../engine/graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { atOnce, inSlices } from "../../lib/slices.ts";
import { looksSecret, secretsInText } from "../../security/secret-detection.ts";
import { WordFilter } from "./word-filter.ts";

const SECRET_CHARS_MIN = 8;
const REPLACEMENT = "[redacted]";
/** Of a form as the source of a regular expression: what is much longer cannot be compiled, or only slowly. */
const PATTERN_CHARS_MAX = 16 * 1024;
/** With shorter words the filter would stop at every other place. */
const FILTER_CHARS_MIN = 4;

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
  const ofModule = config.module === null ? [] : secretsUnder(config.module.config, false);
  return [...passed, ...given, ...ofModule, ...others];
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
  return atOnce(redactorSteps(secrets));
}

function* redactorSteps(secrets: readonly string[]): Generator<void, Redactor> {
  const isLong = (text: string) => text.trim().length >= SECRET_CHARS_MIN;
  const values = new Set(secrets.flatMap((secret) => [secret, ...secret.split(/\r?\n/)]).filter(isLong));
  if (values.size === 0) return nothingToRedact;
  const forms: Form[] = [];
  for (const value of values) {
    forms.push(...formsOf(value));
    yield;
  }
  return redactorOf(forms);
}

function redactorOf(forms: readonly Form[]): Redactor {
  const longestChars = forms.reduce((most, { chars }) => Math.max(most, chars), 0);
  const formsIn = finderOf(forms);
  const text = (input: string) => {
    const found = formsIn(input);
    if (found.length === 0) return input;
    // Longest first: a secret that begins with another one is replaced as a whole.
    const long = found.filter(({ pattern }) => pattern === null).sort((a, b) => b.chars - a.chars);
    const rest = long
      .flatMap(({ texts }) => texts)
      .reduce((left, form) => left.replaceAll(form, REPLACEMENT), input);
    return withoutMatches(rest, rest === input ? found : formsIn(rest));
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
    return this.#keep(key, this.#kept.get(key) ?? makeRedactor(secrets));
  }

  /** The same, made in slices. */
  async made(secrets: readonly string[]): Promise<Redactor> {
    const key = JSON.stringify(secrets);
    return this.#keep(key, this.#kept.get(key) ?? (await inSlices(redactorSteps(secrets))));
  }

  #keep(key: string, redactor: Redactor): Redactor {
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

/** @returns what finds the forms that a text may hold: most texts hold none */
function finderOf(forms: readonly Form[]): (text: string) => readonly Form[] {
  const byWord = Map.groupBy(forms, ({ word }) => word);
  const filter = new WordFilter([...byWord.keys()].filter((word) => word.length >= FILTER_CHARS_MIN));
  const others = forms.filter(({ word }) => word.length < FILTER_CHARS_MIN);
  return (text) => [...others, ...filter.wordsIn(text).flatMap((word) => byWord.get(word)!)];
}

/** Each match of every form is left out, also where they overlap. */
function withoutMatches(text: string, forms: readonly Form[]): string {
  const matches: { readonly start: number; readonly end: number }[] = [];
  for (const { pattern } of forms) {
    if (pattern === null) continue;
    text.replace(pattern, (match, start: number) => {
      matches.push({ start, end: start + match.length });
      return match;
    });
  }
  let shown = "";
  let done = 0;
  for (const { start, end } of matches.sort((a, b) => a.start - b.start)) {
    if (start >= done) shown += text.slice(done, start) + REPLACEMENT;
    done = Math.max(done, end);
  }
  return shown + text.slice(done);
}

/** One character of base64. */
const SHARED = "(?:[A-Za-z0-9+_-]|%2[BbFf]|\\\\{0,4}/)";

/** One spelling of a secret. */
class Form {
  /** Stands, as it is, in everything that the form matches. */
  readonly word: string;
  /** What is looked for when the pattern is too long. */
  readonly texts: readonly string[];
  /** Characters of what it matches, without rare escapes. */
  readonly chars: number;
  readonly #source: () => string;
  #pattern: RegExp | null | undefined;

  /** @param source makes that of the pattern */
  constructor(word: string, texts: readonly string[], chars: number, source: () => string) {
    this.word = word;
    this.texts = texts;
    this.chars = chars;
    this.#source = source;
  }

  /** Null when it is too long. Made when it is first needed: those of hundreds of secrets take tens of milliseconds. */
  get pattern(): RegExp | null {
    if (this.#pattern === undefined) {
      const source = this.#source();
      this.#pattern = source.length > PATTERN_CHARS_MAX ? null : new RegExp(source, "g");
    }
    return this.#pattern;
  }
}

/** A secret as it is, as JSON and URLs spell it, and within what is encoded as base64. */
function formsOf(secret: string): Form[] {
  const json = JSON.stringify(secret).slice(1, -1);
  // The pattern of a long text would be longer still.
  const inJson = () => (secret.length > PATTERN_CHARS_MAX ? secret : inJsonPattern(secret));
  const inUrl = encodeURIComponent(secret.toWellFormed());
  const inUrlLower = inUrl.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase());
  const inUrls = [...new Set([inUrl, inUrlLower])].filter((text) => text !== secret);
  return [
    new Form(plainPart(secret), [secret, json], json.length, inJson),
    ...inUrls.map((text) => new Form(text, [text], text.length, () => RegExp.escape(text))),
    ...[0, 1, 2].map((before) => inBase64Form(secret, before)),
  ];
}

/**
 * Of base64 in either alphabet, `+`, `/` and `=` also as URLs spell them, and `/` as JSON may.
 *
 * @param before how many bytes stand before the secret, beyond a multiple of three
 */
function inBase64Form(secret: string, before: number): Form {
  const bytes = Buffer.from("\0".repeat(before) + secret);
  // Three bytes are four characters: these follow from the secret alone, wherever it stands.
  const whole = Math.floor((bytes.length * 4) / 3);
  const text = bytes.toString("base64").slice(Math.ceil((before * 4) / 3), whole);
  const url = text.replaceAll("+", "-").replaceAll("/", "_");
  const parts = text.split(/[+/]/);
  const word = parts.reduce((longest, part) => (part.length > longest.length ? part : longest), "");
  // A last character that holds bits of the secret and of what follows, and the padding, go with it. A first one does
  // not: a pattern that begins with any character is looked for thirty times as long, and few bits are in it.
  const last = bytes.length % 3 === 0 ? "" : `(?:${SHARED}(?:=|%3[Dd]){0,2})?`;
  return new Form(word, [text, url], text.length, () => {
    const middle = RegExp.escape(text)
      .replaceAll("\\+", "(?:[+\\-]|%2[Bb])")
      .replaceAll("\\/", "(?:\\\\{0,4}/|_|%2[Ff])");
    return middle + last;
  });
}

/** The longest part of a secret that every writer of JSON spells in the same way: ASCII but for `"`, `'`, `/` and `\\`. */
function plainPart(secret: string): string {
  const parts = secret.match(/[ !#-&(-.0-[\]-~]+/g) ?? [];
  return parts.reduce((longest, part) => (part.length > longest.length ? part : longest), "");
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

function redactJson(value: JsonValue, text: (input: string) => string): JsonValue {
  if (typeof value === "string") return text(value);
  if (Array.isArray(value)) return value.map((item: JsonValue) => redactJson(item, text));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [text(key), redactJson(item, text)]));
}
