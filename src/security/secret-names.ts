// Which names hold secrets: keys of configurations and inputs, variables, parameters of URLs.
//
// N1. A name is judged by its words, however they are joined: api_key, api-key, apiKey, API.KEY and "Api Key" are one.
//     Digits and versions do not count.
// N2. A secret's word anywhere in a name makes it a secret (webhook_secret_v2), unless the next word says that it is
//     about the secret (password_min_length, token_url), or the word before that it is a number of them (max_secrets).
// N3. Words that are common without a secret (key, pass, tokens) count only together with one that says so (access_key).
// N4. The cost is linear in the name.

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

/** What follows a secret's word in a name that only speaks about the secret. */
const ABOUT_IT =
  "age|algorithm|arn|attempts|audience|auth|authentication|backend|bits|budget|bytes|chars|charset|classification|consent|cost|count|counts|created|date|days|description|dir|directory|disabled|domain|enabled|encoding|endpoint|engine|env|environment|estimate|expiration|expire|expires|expiry|field|file|files|folder|format|generator|grant|header|hint|hours|http|id|ids|issued|issuer|jar|kind|label|last|len|length|lifetime|limit|limits|manager|max|method|min|minutes|mode|ms|name|names|optional|path|paths|pattern|per|placeholder|policy|prefix|price|prompt|provider|rate|ratio|ref|refs|regex|required|reset|retries|rotation|rules|same|scope|scopes|seconds|secure|server|size|source|state|status|store|strength|time|timeout|title|ttl|type|types|updated|uri|url|usage|valid|validation|validity|var|variable|version|window";

/** What stands before a number of secrets, or before what a language model calls a token. */
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
