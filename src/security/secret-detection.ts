// Which values of configurations, inputs and messages are secrets: by name, by their text, or by the manifest.
//
// - A name is checked by its words, however they are joined: api_key, api-key, apiKey, API.KEY and "Api Key" are one.
//   Digits and versions do not count.
// - A secret's word anywhere in a name makes it a secret (webhook_secret_v2), unless the next word shows that it is
//   about the secret (password_min_length, token_url), or the word before that it is a count of them (max_secrets).
// - Words that are common without a secret (key, pass, tokens) count only together with a second word (access_key).
// - A text with a password in an address, or with a private key, is a secret under any key. It is stored and masked as
//   a whole. Only the address, and the password alone, are redacted: the rest of the text may be long and harmless.
// - A manifest's `"secrets": ["smtp.host", "accounts.pin"]` are dotted paths into the configuration and into the
//   bodies of a run's inputs. A path leads through the items of a list: "accounts.pin" is the pin of each account.
// - `{"$env": "NAME"}`, with no other key, refers to a variable of the runtime's environment.

import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { holdsSealed, MASK } from "../engine/sealed.ts";
import { partsOf } from "../lib/text.ts";

// ------------------------------------------------------------------------------------------------- names

/** Quickly excludes nearly every name. */
const MAY_BE_SECRET =
  /key|token|secret|pass|pwd|cookie|authori|auth|cred|jwt|otp|bearer|conn|phrase|mnemonic/i;

/** Secrets also at the end of a longer word, such as PGPASSWORD. */
const SECRET_WORDS =
  "pass_?word|pass_?wd|pass_?phrase|pass_?code|pass_?key|secret|credential|cookie|authorization|api_?key|access_?key|secret_?key|private_?key";

const KEYS_OF =
  "admin|aes|account|anthropic|app|application|auth|authentication|aws|azure|bot|cipher|client|crypto|decryption|deploy|encryption|github|gpg|hmac|jwt|license|licence|master|openai|pgp|recovery|root|rsa|security|server|service|session|shared|sign|signing|ssh|ssl|stripe|subscription|symmetric|tls|unseal|vault|webhook|wrapping";

const TOKENS_OF =
  "access|api|auth|authentication|bearer|bot|csrf|deploy|device|discord|github|gitlab|jwt|oauth|personal|refresh|security|service|session|slack|telegram|webhook";

const PASS_OF =
  "admin|auth|basic|database|db|email|ftp|http|imap|key|ldap|login|mail|master|mongo|my|mysql|pg|postgres|proxy|redis|root|server|smtp|ssh|sudo|user";

const OTHERS =
  "creds?|jwts?|t?otp|bearer|basic_auth|auth_header|connection_?string|conn_?str|secret_id|seed_phrase|mnemonic";

/** Words after a secret's word in a name that is only about the secret. */
const ABOUT_IT =
  "age|algorithm|arn|attempts|audience|auth|authentication|backend|bits|budget|bytes|chars|charset|classification|consent|cost|count|counts|created|date|days|description|dir|directory|disabled|domain|enabled|encoding|endpoint|engine|env|environment|estimate|expiration|expire|expires|expiry|field|file|files|folder|format|generator|grant|header|hint|hours|http|id|ids|issued|issuer|jar|kind|label|last|len|length|lifetime|limit|limits|manager|max|method|min|minutes|mode|ms|name|names|optional|path|paths|pattern|per|placeholder|policy|prefix|price|prompt|provider|rate|ratio|ref|refs|regex|required|reset|retries|rotation|rules|same|scope|scopes|seconds|secure|server|size|source|state|status|store|strength|time|timeout|title|ttl|type|types|updated|uri|url|usage|valid|validation|validity|var|variable|version|window";

/** Words before a count of secrets, or before a language model's token. */
const NUMBER_OF = "max|maximum|min|minimum|num|number|count|total|per";
const MODEL_TOKEN = "bos|cls|eos|eot|mask|pad|sep|special|stop|unk";

const SECRET = new RegExp(
  `(?:^|_)(?<!(?:^|_)(?:${NUMBER_OF})_)` +
    `(?:[a-z]*(?:${SECRET_WORDS})s?|(?<!(?:^|_)(?:${MODEL_TOKEN})_)[a-z]*token|(?:${TOKENS_OF})_?tokens|` +
    `(?:${KEYS_OF})_keys?|(?:${PASS_OF})_?(?:pass|pwd)|${OTHERS})` +
    `(?!_(?:${ABOUT_IT})(?:_|$))(?=_|$)|^(?:pass|pwd)$`,
);

/** Whether a configuration key, an input or a variable of this name holds a secret. */
export function looksSecret(name: string): boolean {
  // The working directory of a shell.
  if (!MAY_BE_SECRET.test(name) || name === "PWD") return false;
  return SECRET.test(
    name
      .replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, "_")
      .toLowerCase()
      .replace(/[^a-z]+(?:v[^a-z]+|v$)?/g, "_")
      .replace(/^_|_$/g, ""),
  );
}

// ------------------------------------------------------------------------------------------------- texts

const PRIVATE_KEY = "PRIVATE KEY-----";
const ADDRESS = /[a-z][a-z0-9+.-]{0,31}:\/\/[^\s"'`<>]+/gi;
/** A number up to the path is a port. */
const PASSWORD = /^[^:]+:\/\/[^:@/?#[]*:(?!\d*(?:[/?#]|$))(.+)@/;
const PARAMETER = /[?&;]([^=&;?#]{1,100})=([^&;#]+)/g;

/** Whether the value is a text that is a secret under any key. */
export function holdsSecret(value: JsonValue | undefined): value is string {
  if (typeof value !== "string") return false;
  return value.includes(PRIVATE_KEY) || (value.includes("://") && addressesIn(value).length > 0);
}

/** The addresses with a password in a text, and the passwords themselves, as they are and decoded. */
export function secretsInText(text: string): readonly string[] {
  if (!text.includes("://")) return [];
  const found = addressesIn(text).flatMap(({ address, passwords }) => [address, ...passwords]);
  return [...new Set([...found, ...found.map(decoded)])];
}

interface Address {
  readonly address: string;
  readonly passwords: readonly string[];
}

function addressesIn(text: string): readonly Address[] {
  return [...text.matchAll(ADDRESS)]
    .map(([address]) => ({ address, passwords: passwordsIn(address) }))
    .filter(({ passwords }) => passwords.length > 0);
}

function passwordsIn(address: string): readonly string[] {
  const [, password] = PASSWORD.exec(address) ?? [];
  const parameters = [...address.matchAll(PARAMETER)].filter(([, name]) => looksSecret(name!));
  return [...(password === undefined ? [] : [password]), ...parameters.map(([, , value]) => value!)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// ------------------------------------------------------------------------------------- paths of a manifest

/** By key; null: the value under that key is a secret, whole. */
export interface SecretPaths extends ReadonlyMap<string, SecretPaths | null> {}

export const noPaths: SecretPaths = new Map();

/** How many paths a manifest may name. */
export const SECRET_PATHS_MAX = 1_000;

/** @returns what a manifest names; what is wrong in it is left out here, and reported where packages are read */
export function secretPathsIn({ secrets }: JsonObject): SecretPaths {
  if (!Array.isArray(secrets) || secrets.length === 0) return noPaths;
  const root: PathTree = new Map();
  for (const path of secrets.slice(0, SECRET_PATHS_MAX) as JsonValue[]) {
    const parts = typeof path === "string" ? partsOf(path) : null;
    if (parts !== null) add(root, parts);
  }
  return root;
}

interface PathTree extends Map<string, PathTree | null> {}

function add(root: PathTree, parts: readonly string[]): void {
  let tree = root;
  for (const part of parts.slice(0, -1)) {
    const below = tree.get(part);
    // A path through a secret adds nothing: the secret is encrypted as a whole.
    if (below === null) return;
    const next: PathTree = below ?? new Map();
    tree.set(part, next);
    tree = next;
  }
  tree.set(parts.at(-1)!, null);
}

/** The same paths below each key of an object. */
export function ofEach(object: JsonObject, paths: SecretPaths): SecretPaths {
  return new Map(Object.keys(object).map((key) => [key, paths]));
}

// ------------------------------------------------------------------------------------------------- values

/** Whether a value under a secret's key may be a secret: null, an empty text and a boolean are none. */
export function mayBeSecret(value: JsonValue): boolean {
  if (value === null || value === "" || typeof value === "boolean") return false;
  return !isEnvReference(value);
}

/** Whether a value is a secret. @param named whether its key, or the manifest, marks it as one */
export function isSecret(value: JsonValue, named: boolean): boolean {
  return (named && mayBeSecret(value)) || holdsSecret(value);
}

/** What is known of the value under a key: whether it is a secret by name, and what is named below it. */
export function under(
  key: string,
  paths: SecretPaths,
): { readonly named: boolean; readonly below: SecretPaths } {
  const found = paths.get(key);
  return { named: found === null || looksSecret(key), below: found ?? noPaths };
}

/** Secrets that one configuration, or one run's inputs, may have: encrypting each takes some ten microseconds. */
export const SECRETS_MAX = 500;

export const TOO_MANY_SECRETS = `holds more than ${SECRETS_MAX} secrets. Put them below one key that looks like a secret's, such as "secrets": it is encrypted as one`;

/** Whether a value has more secrets than it may have; looks no further than that. */
export function hasTooManySecrets(value: JsonValue, paths: SecretPaths): boolean {
  return secretsLeft(value, paths, SECRETS_MAX) < 0;
}

/** Whether there is a secret in a plaintext value, or something that looks encrypted. */
export function hasSecrets(value: JsonValue, paths: SecretPaths): boolean {
  return holdsSealed(value) || secretsLeft(value, paths, 0) < 0;
}

/** Whether a value has no secret, and nothing that stands for one or looks as if: most have none. */
export function isPlain(value: JsonValue, paths: SecretPaths): boolean {
  if (typeof value === "string") return value !== MASK && !holdsSecret(value);
  if (Array.isArray(value)) return value.every((item: JsonValue) => isPlain(item, paths));
  if (!isObject(value)) return true;
  for (const key in value) {
    const { named, below } = under(key, paths);
    if (named || key.startsWith("$") || !isPlain(value[key]!, below)) return false;
  }
  return true;
}

/** How many more secrets a value may have; negative when it has too many, and no further ones are counted. */
export function secretsLeft(value: JsonValue, paths: SecretPaths, max: number): number {
  let left = max;
  const look = (inner: JsonValue, named: boolean, below: SecretPaths) => {
    left = isSecret(inner, named) ? left - 1 : secretsLeft(inner, below, left);
    return left >= 0;
  };
  if (Array.isArray(value)) value.every((item: JsonValue) => look(item, false, paths));
  else if (isObject(value)) {
    Object.entries(value).every(([key, member]) => {
      const { named, below } = under(key, paths);
      return look(member, named, below);
    });
  }
  return left;
}

export interface EnvReference extends JsonObject {
  readonly $env: string;
}

/** Whether the value refers to a variable. */
export function isEnvReference(value: JsonValue | undefined): value is EnvReference {
  return isObject(value) && typeof value.$env === "string" && Object.keys(value).length === 1;
}
