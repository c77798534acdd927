// Texts that hold a secret whatever their key is: addresses with a password in them, and private keys.
//
// T1. Such a text is stored and masked as a whole. What is redacted of it is the address, and the password where it
//     stands alone: a text may be long, and harmless but for that.
// T2. The cost is linear in the text.

import type { JsonValue } from "../engine/json.ts";
import { looksSecret } from "./secret-names.ts";

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

/** The addresses with a password in a text, and the passwords themselves, as they stand there and decoded. */
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
