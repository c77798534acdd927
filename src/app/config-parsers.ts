// How the text of an environment variable becomes a value: one small function per form, pure but for the home
// folder that stands for `~`, and for files of secrets, which are read. A wrong text comes back as a sentence; the caller adds the variable and an example.

import { readFileSync, statSync } from "node:fs";
import { isIPv6 } from "node:net";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { KEY_BYTES, keyOfText } from "../security/secret-key.ts";

export type Parsed<V> =
  | { readonly kind: "value"; readonly value: V }
  | { readonly kind: "wrong"; readonly problem: string };

const right = <V>(value: V): Parsed<V> => ({ kind: "value", value });
const wrong = (problem: string): Parsed<never> => ({ kind: "wrong", problem });

const SHOWN_CHARS_MAX = 60;
const quoted = (text: string) =>
  JSON.stringify(text.length <= SHOWN_CHARS_MAX ? text : `${text.slice(0, SHOWN_CHARS_MAX)}…`);

/** A parser of whole numbers from `min` to `max`, both included. */
export function wholeNumber(min: number, max: number): (text: string) => Parsed<number> {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return right(value);
    return wrong(`${quoted(text)} is not a whole number from ${min} to ${max}.`);
  };
}

/** A parser of TCP ports; 0 asks for any free one. */
export const port = wholeNumber(0, 65_535);

/** A parser that knows a few words, each with its value. */
export function oneOf<V>(words: Readonly<Record<string, V>>): (text: string) => Parsed<V> {
  return (text) => {
    if (Object.hasOwn(words, text)) return right(words[text] as V);
    return wrong(`${quoted(text)} is not one of ${Object.keys(words).join(", ")}.`);
  };
}

/** A folder, made absolute; a leading `~` is the user's home. */
export function folder(text: string): Parsed<string> {
  if (text.includes("\0")) return wrong("a path cannot contain a NUL character.");
  if (text === "~") return right(homedir());
  return right(text.startsWith("~/") ? join(homedir(), text.slice(2)) : resolve(text));
}

/** Folders separated as in PATH; empty items are left out. */
export function folders(text: string): Parsed<readonly string[]> {
  const found: string[] = [];
  for (const item of splitList(text, delimiter)) {
    const parsed = folder(item);
    if (parsed.kind === "wrong") return parsed;
    found.push(parsed.value);
  }
  return found.length > 0 ? right(Object.freeze(found)) : wrong(`${quoted(text)} names no folder.`);
}

/** A host name or an IP address to bind; IPv6 with or without brackets. */
export function host(text: string): Parsed<string> {
  const bare = /^\[(.*)\]$/.exec(text)?.[1] ?? text;
  const isName = /^[a-z0-9]([a-z0-9.-]{0,252}[a-z0-9])?$/i.test(bare);
  return isName || isIPv6(bare) ? right(bare) : wrong(`${quoted(text)} is not a host name or an IP address.`);
}

/** Host names and IP addresses without ports, in lower case. */
export function hosts(text: string): Parsed<readonly string[]> {
  const found = new Set<string>();
  for (const item of splitList(text, ",")) {
    const parsed = host(item);
    if (parsed.kind === "wrong") return parsed;
    found.add(parsed.value.toLowerCase());
  }
  return found.size > 0 ? right(Object.freeze([...found])) : wrong("no host is given.");
}

/** Whether only this machine can reach an address. */
export function isLoopback(address: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1|::ffff:127(\.\d{1,3}){3})$/i.test(address);
}

/** How many tokens or keys there may be at once: the one in use, and those that it takes the place of. */
const SECRETS_MAX = 16;
const SECRET_FILE_BYTES_MAX = 128 * 1024;

/** Tokens that fit into an Authorization header, joined by commas or line ends. The problem does not repeat them. */
export const bearerTokens = secretList(
  (text) => /^[\x21-\x7e]{1,4096}$/.test(text),
  "a token must be 1 to 4096 visible ASCII characters without spaces; several are joined by commas.",
);

/** Secret keys as text, joined by commas or line ends; the first seals. The problem does not repeat them. */
export const secretKeys = secretList(
  (text) => keyOfText(text) !== null,
  `a key must be ${KEY_BYTES} bytes as base64 or hex; several are joined by commas.`,
);

function secretList(isSecret: (text: string) => boolean, problem: string) {
  return (text: string): Parsed<readonly string[]> => {
    const found = [...new Set(splitList(text, /[,\r\n]/))];
    if (found.length > SECRETS_MAX) return wrong(`there are more than ${SECRETS_MAX} of them.`);
    return found.length > 0 && found.every(isSecret) ? right(Object.freeze(found)) : wrong(problem);
  };
}

/** A file with secrets, which may be shown without them. */
export interface SecretFile {
  readonly path: string;
  readonly secrets: readonly string[];
}

/** A parser of the path of a file that holds what `parse` reads, such as a credential of systemd. */
export function secretFile(parse: (text: string) => Parsed<readonly string[]>) {
  return (text: string): Parsed<SecretFile> => {
    const place = folder(text);
    if (place.kind === "wrong") return place;
    const path = place.value;
    const content = readSecretFile(path);
    if (content.kind === "wrong") return content;
    const parsed = parse(content.value);
    return parsed.kind === "wrong"
      ? wrong(`what ${quoted(path)} holds is not right: ${parsed.problem}`)
      : right(Object.freeze({ path, secrets: parsed.value }));
  };
}

function readSecretFile(path: string): Parsed<string> {
  try {
    const facts = statSync(path);
    if (!facts.isFile()) return wrong(`${quoted(path)} is not a regular file.`);
    if (facts.size > SECRET_FILE_BYTES_MAX) {
      return wrong(`${quoted(path)} is larger than ${SECRET_FILE_BYTES_MAX} bytes.`);
    }
    return right(readFileSync(path, "utf8"));
  } catch (error) {
    return wrong(`${quoted(path)} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** A postgres:// address. The problem does not repeat it: it may hold a password. */
export function databaseUrl(text: string): Parsed<string> {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null &&
    (url.protocol === "postgres:" || url.protocol === "postgresql:") &&
    url.hostname !== ""
    ? right(text)
    : wrong("the value is not a postgres:// address with a host.");
}

/** An address as it may be shown: without user, password and parameters. */
export function withoutSecrets(address: string, mask: string): string {
  const url = new URL(address);
  const credentials = url.username === "" && url.password === "" ? "" : `${mask}@`;
  return `${url.protocol}//${credentials}${url.host}${url.pathname}${url.search === "" ? "" : `?${mask}`}`;
}

/** `default=4,gpu=1`: slots by pool name. */
export function poolCapacities(text: string): Parsed<Readonly<Record<string, number>>> {
  const found = new Map<string, number>();
  for (const item of splitList(text, ",")) {
    const [, name, slots] = /^([A-Za-z0-9][A-Za-z0-9._-]{0,63})\s*=\s*(\d{1,5})$/.exec(item) ?? [];
    if (name === undefined || !(Number(slots) >= 1 && Number(slots) <= 10_000)) {
      return wrong(`${quoted(item)} is not of the form name=slots with 1 to 10000 slots.`);
    }
    if (found.has(name)) return wrong(`pool ${quoted(name)} is given twice.`);
    found.set(name, Number(slots));
  }
  return found.size > 0 ? right(Object.freeze(Object.fromEntries(found))) : wrong("no pool is given.");
}

/** Web origins: scheme and host, without a path. */
export function origins(text: string): Parsed<readonly string[]> {
  const found = new Set<string>();
  for (const item of splitList(text, ",")) {
    const origin = URL.canParse(item) ? new URL(item).origin : "null";
    if (!/^https?:/.test(origin) || origin !== item.toLowerCase().replace(/\/$/, "")) {
      return wrong(`${quoted(item)} is not a web origin (http or https, a host, and nothing behind it).`);
    }
    found.add(origin);
  }
  return found.size > 0 ? right(Object.freeze([...found])) : wrong("no origin is given.");
}

/** A web address in which `{port}` stands for a port. */
export function portUrl(text: string): Parsed<string> {
  const filled = text.replaceAll("{port}", "61000");
  const url = URL.canParse(filled) ? new URL(filled) : null;
  if (filled === text || url === null || !/^https?:$/.test(url.protocol) || url.search + url.hash !== "") {
    return wrong(`${quoted(text)} is not a web address with {port} in it.`);
  }
  return right(text);
}

/** Prefixes of environment variables; SVC_ is put first when it is not among them. */
export function prefixes(text: string): Parsed<readonly string[]> {
  const found = new Set(["SVC_"]);
  for (const item of splitList(text, ",")) {
    if (!/^[A-Z][A-Z0-9_]{0,30}_$/.test(item)) {
      return wrong(`${quoted(item)} is not a prefix: capital letters, digits and _, with _ at the end.`);
    }
    found.add(item);
  }
  return right(Object.freeze([...found]));
}

function splitList(text: string, separator: string | RegExp): readonly string[] {
  return text
    .split(separator)
    .map((item) => item.trim())
    .filter((item) => item !== "");
}
