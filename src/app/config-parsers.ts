// How the text of an environment variable becomes a value: one small function per form, pure but for the home folder
// behind `~`, and for files of secrets, which are read. What is wrong with a text is thrown as a sentence, to which the
// caller adds the variable and an example.

import { readFileSync, statSync } from "node:fs";
import { isIPv6 } from "node:net";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type SandboxEngineName, sandboxEngines } from "../engine/sandbox.ts";
import { KEY_BYTES, keyOfText } from "../security/secret-key.ts";
import type { SharedPlace } from "../store/shared/open-shared.ts";
import type { S3Place } from "../store/shared/s3-requests.ts";

/** What is wrong with a value, as a sentence. */
export class WrongValue extends Error {
  override readonly name = "WrongValue";
}

export type Parser<V> = (text: string) => V;

const SHOWN_CHARS_MAX = 60;
const quoted = (text: string) =>
  JSON.stringify(text.length <= SHOWN_CHARS_MAX ? text : `${text.slice(0, SHOWN_CHARS_MAX)}…`);

/** Whole numbers from `min` to `max`, both included. */
export function wholeNumber(min: number, max: number): Parser<number> {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new WrongValue(`${quoted(text)} is not a whole number from ${min} to ${max}.`);
  };
}

/** TCP ports; 0 asks for any free one. */
export const port = wholeNumber(0, 65_535);

/** One of a few words. */
export function oneOf<Word extends string>(...words: readonly Word[]): Parser<Word> {
  return (text) => {
    const word = words.find((known) => known === text);
    if (word !== undefined) return word;
    throw new WrongValue(`${quoted(text)} is not one of ${words.join(", ")}.`);
  };
}

/** Podman is asked for by name: it is refused with the reason. */
export const sandboxEngine: Parser<SandboxEngineName> = (text) => {
  if (text === "podman")
    throw new WrongValue(
      "podman's containers outlive the program that starts them (docs/sandbox.md): use bubblewrap, or gvisor.",
    );
  return oneOf(...sandboxEngines)(text);
};

const switchWords = oneOf("true", "false", "1", "0");
export const onOrOff: Parser<boolean> = (text) => ["true", "1"].includes(switchWords(text));

/** A folder, made absolute; a leading `~` is the user's home. */
export function folder(text: string): string {
  if (text.includes("\0")) throw new WrongValue("a path cannot contain a NUL character.");
  if (text === "~") return homedir();
  return text.startsWith("~/") ? join(homedir(), text.slice(2)) : resolve(text);
}

/** Folders separated as in PATH; empty items are left out. */
export function folders(text: string): readonly string[] {
  return listOf(text, folder, `${quoted(text)} names no folder.`, delimiter);
}

/** A host name or an IP address to bind; IPv6 with or without brackets. */
export function host(text: string): string {
  const bare = /^\[(.*)\]$/.exec(text)?.[1] ?? text;
  const isName = /^[a-z0-9]([a-z0-9.-]{0,252}[a-z0-9])?$/i.test(bare);
  if (isName || isIPv6(bare)) return bare;
  throw new WrongValue(`${quoted(text)} is not a host name or an IP address.`);
}

/** Host names and IP addresses without ports, in lower case, each once. */
export function hosts(text: string): readonly string[] {
  return distinct(listOf(text, (item) => host(item).toLowerCase(), "no host is given."));
}

/** How many tokens or keys there may be at once: the one in use, and those that it replaces. */
const SECRETS_MAX = 16;
const SECRET_FILE_BYTES_MAX = 128 * 1024;

/** Tokens that fit into an Authorization header, joined by commas or line ends. The problem does not repeat them. */
export const bearerTokens = secretList(
  (text) => /^[\x21-\x7e]{1,4096}$/.test(text),
  "a token must be 1 to 4096 visible ASCII characters without spaces; several are joined by commas.",
);

/** Secret keys as text, joined by commas or line ends; the first encrypts. The problem does not repeat them. */
export const secretKeys = secretList(
  (text) => keyOfText(text) !== null,
  `a key must be ${KEY_BYTES} bytes as base64 or hex; several are joined by commas.`,
);

function secretList(isSecret: (text: string) => boolean, problem: string): Parser<readonly string[]> {
  return (text) => {
    const found = distinct(listOf(text, (item) => item, problem, /[,\r\n]/));
    if (found.length > SECRETS_MAX) throw new WrongValue(`there are more than ${SECRETS_MAX} of them.`);
    if (!found.every(isSecret)) throw new WrongValue(problem);
    return found;
  };
}

/** A file with secrets, which may be shown without them. */
export interface SecretFile {
  readonly path: string;
  readonly secrets: readonly string[];
}

/** The path of a file that holds what `parse` reads, such as a credential of systemd. */
export function secretFile(parse: Parser<readonly string[]>): Parser<SecretFile> {
  return (text) => {
    const path = folder(text);
    const content = readSecretFile(path);
    try {
      return Object.freeze({ path, secrets: parse(content) });
    } catch (error) {
      if (!(error instanceof WrongValue)) throw error;
      throw new WrongValue(`what ${quoted(path)} holds is not valid: ${error.message}`);
    }
  };
}

function readSecretFile(path: string): string {
  try {
    const facts = statSync(path);
    if (!facts.isFile()) throw new WrongValue(`${quoted(path)} is not a regular file.`);
    if (facts.size > SECRET_FILE_BYTES_MAX) {
      throw new WrongValue(`${quoted(path)} is larger than ${SECRET_FILE_BYTES_MAX} bytes.`);
    }
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof WrongValue) throw error;
    throw new WrongValue(`${quoted(path)} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** A file with certificates or a key, as PEM. */
export interface PemFile {
  readonly path: string;
  readonly pem: string;
}

export function pemFile(text: string): PemFile {
  const path = folder(text);
  const pem = readSecretFile(path);
  if (/^-----BEGIN [A-Z ]+-----$/m.test(pem)) return Object.freeze({ path, pem });
  throw new WrongValue(`${quoted(path)} holds no PEM block.`);
}

/** Where others reach a listener: host:port; IPv6 in brackets. */
export function hostAndPort(text: string): string {
  const [, name = "", digits = ""] = /^(.+):(\d{1,5})$/.exec(text) ?? [];
  const isBracketed = name.startsWith("[") || !name.includes(":");
  if (name === "" || !isBracketed || Number(digits) < 1 || Number(digits) > 65_535) {
    throw new WrongValue(`${quoted(text)} is not of the form host:port.`);
  }
  const bare = host(name);
  return `${isIPv6(bare) ? `[${bare}]` : bare}:${Number(digits)}`;
}

/** A postgres:// address. The problem does not repeat it: it may hold a password. */
export function databaseUrl(text: string): string {
  const url = URL.parse(text);
  if (
    url === null ||
    !/^postgres(ql)?:$/.test(url.protocol) ||
    url.hostname === "" ||
    url.pathname.length < 2
  )
    throw new WrongValue("the value is not a postgres:// address with a host and a database.");
  try {
    decodeURIComponent(`${url.username}${url.password}${url.pathname}`);
  } catch {
    throw new WrongValue("a % in its user, password or database must be written as %25.");
  }
  return text;
}

/** What of an address must not be shown: the whole, and its passwords by themselves. */
export function databaseSecrets(address: string | null): readonly string[] {
  if (address === null) return [];
  const { password, searchParams } = new URL(address);
  const given = [password, decodeURIComponent(password), ...searchParams.getAll("password")];
  return [address, ...given.filter((text) => text !== "")];
}

/** A folder that several machines have, or a bucket of an S3-compatible store. */
export function sharedPlace(text: string): SharedPlace {
  const url = URL.parse(text);
  if (url?.protocol === "file:" && url.host === "" && url.search + url.hash === "") {
    const path = fileURLToPath(url).replace(/(?<=.)\/+$/, "");
    if (path === "/") throw new WrongValue("the folder is the root of all folders.");
    return Object.freeze({ kind: "folder", path });
  }
  if (url?.protocol !== "s3:") {
    throw new WrongValue("the value is neither a file:/// address nor of the form s3://bucket/prefix.");
  }
  if (url.username + url.password !== "") {
    throw new WrongValue(
      "the address holds a user or a password; they belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    );
  }
  return Object.freeze({ kind: "s3", place: Object.freeze(bucketOf(url)) });
}

function bucketOf({ hostname, pathname, searchParams }: URL): S3Place {
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(hostname)) {
    throw new WrongValue(`${quoted(hostname)} is not the name of a bucket.`);
  }
  const unknown = [...searchParams.keys()].find((name) => name !== "endpoint" && name !== "region");
  if (unknown !== undefined)
    throw new WrongValue(`it has the parameter ${quoted(unknown)}; endpoint and region are known.`);
  const endpoint = searchParams.get("endpoint");
  const address = URL.parse(endpoint ?? "");
  const isHttp = address !== null && /^https?:$/.test(address.protocol);
  if (
    endpoint !== null &&
    (!isHttp || address.username + address.password + address.search + address.hash !== "")
  ) {
    throw new WrongValue("its endpoint is not a web address of scheme, host and port.");
  }
  const region = searchParams.get("region") ?? "us-east-1";
  if (!/^[a-z0-9-]{1,64}$/.test(region))
    throw new WrongValue(`${quoted(region)} is not the name of a region.`);
  const path = decoded(pathname)
    .split("/")
    .filter((part) => part !== "");
  if (path.some((part) => part === "." || part === ".."))
    throw new WrongValue("its prefix holds dots in place of a name.");
  const prefix = path.map((part) => `${part}/`).join("");
  return { bucket: hostname, prefix, endpoint, region };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw new WrongValue("its prefix is not encoded as in a web address.");
  }
}

/** An address as it may be shown: without user, password and parameters. */
export function withoutSecrets(address: string, mask: string): string {
  const url = new URL(address);
  const credentials = url.username === "" && url.password === "" ? "" : `${mask}@`;
  return `${url.protocol}//${credentials}${url.host}${url.pathname}${url.search === "" ? "" : `?${mask}`}`;
}

/** `default=4,gpu=1`: slots by pool name. */
export function poolCapacities(text: string): Readonly<Record<string, number>> {
  const pools = listOf(text, poolCapacity, "no pool is given.");
  const names = pools.map(([name]) => name);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) throw new WrongValue(`pool ${quoted(twice)} is given twice.`);
  return Object.freeze(Object.fromEntries(pools));
}

function poolCapacity(item: string): readonly [name: string, slots: number] {
  const [, name, slots] = /^([A-Za-z0-9][A-Za-z0-9._-]{0,63})\s*=\s*(\d{1,5})$/.exec(item) ?? [];
  if (name !== undefined && Number(slots) >= 1 && Number(slots) <= 10_000) return [name, Number(slots)];
  throw new WrongValue(`${quoted(item)} is not of the form name=slots with 1 to 10000 slots.`);
}

/** A name for people: visible characters, and spaces within. */
export function nodeName(text: string): string {
  if (/^[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?$/.test(text)) return text;
  throw new WrongValue(`${quoted(text)} is not a name of 1 to 128 visible ASCII characters.`);
}

/** `zone=a,gpu=l4`: values by name. */
export function labels(text: string): Readonly<Record<string, string>> {
  const given = listOf(text, label, "no label is given.");
  if (given.length > LABELS_MAX) throw new WrongValue(`there are more than ${LABELS_MAX} labels.`);
  const names = given.map(([name]) => name);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) throw new WrongValue(`label ${quoted(twice)} is given twice.`);
  return Object.freeze(Object.fromEntries(given));
}

const LABELS_MAX = 64;

function label(item: string): readonly [name: string, value: string] {
  const form = /^([A-Za-z0-9][A-Za-z0-9._/-]{0,62})\s*=\s*([A-Za-z0-9._-]{0,63})$/;
  const [, name, value] = form.exec(item) ?? [];
  if (name !== undefined && value !== undefined) return [name, value];
  throw new WrongValue(
    `${quoted(item)} is not of the form name=value with letters, digits, ".", "_" and "-" ("/" in names).`,
  );
}

/** Web origins: scheme and host, without a path. */
export function origins(text: string): readonly string[] {
  return distinct(listOf(text, origin, "no origin is given."));
}

function origin(item: string): string {
  const found = URL.parse(item)?.origin ?? "null";
  if (/^https?:/.test(found) && found === item.toLowerCase().replace(/\/$/, "")) return found;
  throw new WrongValue(`${quoted(item)} is not a web origin (http or https, a host, and nothing after it).`);
}

/** A web address with `{port}` in place of its port. */
export function portUrl(text: string): string {
  const filled = text.replaceAll("{port}", "61000");
  const url = URL.parse(filled);
  if (filled !== text && url !== null && /^https?:$/.test(url.protocol) && url.search + url.hash === "")
    return text;
  throw new WrongValue(`${quoted(text)} is not a web address with {port} in it.`);
}

/** Prefixes of environment variables; SVC_ is put first when it is not among them. */
export function prefixes(text: string): readonly string[] {
  const given = listOf(text, prefix, null);
  return distinct(["SVC_", ...given]);
}

function prefix(item: string): string {
  if (/^[A-Z][A-Z0-9_]{0,30}_$/.test(item)) return item;
  throw new WrongValue(`${quoted(item)} is not a prefix: capital letters, digits and _, with _ at the end.`);
}

/** The items of a list, empty ones left out. @param whenEmpty what is wrong with a list of none; null: nothing */
function listOf<V>(
  text: string,
  parse: Parser<V>,
  whenEmpty: string | null,
  separator: string | RegExp = ",",
): readonly V[] {
  const items = text.split(separator).map((item) => item.trim());
  const found = items.filter((item) => item !== "").map(parse);
  if (found.length === 0 && whenEmpty !== null) throw new WrongValue(whenEmpty);
  return Object.freeze(found);
}

const distinct = (items: readonly string[]): readonly string[] => Object.freeze([...new Set(items)]);
