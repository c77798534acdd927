// Signatures of requests to webhooks: whether a request was signed with the secret, and not long ago.
//
// - github: HMAC-SHA256 of the body, as GitHub sends it. The time is not signed.
// - stripe: of the time and the body, as Stripe sends it.
// - hmac-sha256: of an id, the time and the body, as Standard Webhooks has it (www.standardwebhooks.com).
//
// Signatures are compared in constant time, all that a request has.

import { createHmac, hash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export const webhookSchemes = ["github", "stripe", "hmac-sha256"] as const;
export type WebhookScheme = (typeof webhookSchemes)[number];

export interface Signing {
  readonly scheme: WebhookScheme;
  readonly secret: string;
  /** How far a signed time may be from now. */
  readonly toleranceSeconds: number;
}

export interface SignedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export type Verdict =
  /** digest: of what was signed, without the time; the same for a request that is sent again. */
  | { readonly kind: "signed"; readonly digest: string }
  /** message: for the sender. */
  | { readonly kind: "refused"; readonly reason: "signature" | "time"; readonly message: string };

/** The header that has the signature. */
export const signatureHeader: Readonly<Record<WebhookScheme, string>> = {
  github: "X-Hub-Signature-256",
  stripe: "Stripe-Signature",
  "hmac-sha256": "webhook-signature",
};

/** Of a secret for hmac-sha256 whose key is base64. */
const KEY_PREFIX = "whsec_";
const HEX = /^[0-9a-f]{64}$/i;
const BASE64 = /^[A-Za-z0-9+/]{43}=$/;
const SECONDS = /^\d{1,12}$/;
/** Without a dot, which stands between the parts of what is signed. */
const MESSAGE_ID = /^[!-\-/-~]{1,200}$/;

/** What a request claims. */
interface Claim {
  readonly signatures: readonly Buffer[];
  /** Signed in front of the body. */
  readonly head: string;
  /** The part of `head` that is the same when the request is sent again. */
  readonly id: string;
  readonly signedAtSeconds: number | null;
}

export function checkSignature(
  { scheme, secret, toleranceSeconds }: Signing,
  { headers, body }: SignedRequest,
  nowMs: number,
): Verdict {
  const claim = claimIn(scheme, headers);
  if (typeof claim === "string") return { kind: "refused", reason: "signature", message: claim };
  const { signatures, head, id, signedAtSeconds } = claim;
  const expected = createHmac("sha256", keyOf(scheme, secret)).update(head).update(body).digest();
  let isSigned = false;
  for (const signature of signatures) isSigned = timingSafeEqual(signature, expected) || isSigned;
  if (!isSigned) {
    const message = `The signature in ${signatureHeader[scheme]} is not the one of this body and the webhook's secret.`;
    return { kind: "refused", reason: "signature", message };
  }
  if (signedAtSeconds !== null && Math.abs(nowMs - signedAtSeconds * 1_000) > toleranceSeconds * 1_000) {
    const message = `The request was signed more than ${toleranceSeconds} s ago, or in the future. Compare the clocks of both machines.`;
    return { kind: "refused", reason: "time", message };
  }
  return { kind: "signed", digest: hash("sha256", Buffer.concat([Buffer.from(id), body]), "base64url") };
}

/** @returns what is wrong with the headers, in words */
function claimIn(scheme: WebhookScheme, headers: IncomingHttpHeaders): Claim | string {
  const name = signatureHeader[scheme];
  const given = headers[name.toLowerCase()];
  if (typeof given !== "string") return `The request has no header ${name}, which signs it.`;
  switch (scheme) {
    case "github":
      return githubClaim(given);
    case "stripe":
      return stripeClaim(given);
    case "hmac-sha256":
      return standardClaim(given, headers);
    default:
      return scheme satisfies never;
  }
}

function githubClaim(header: string): Claim | string {
  const [, hex = ""] = /^sha256=(.*)$/.exec(header) ?? [];
  if (!HEX.test(hex)) return "X-Hub-Signature-256 must be sha256= and 64 hexadecimal digits.";
  return { signatures: [Buffer.from(hex, "hex")], head: "", id: "", signedAtSeconds: null };
}

/** Signatures of other versions than v1 are left out. */
function stripeClaim(header: string): Claim | string {
  const parts = header.split(",").map((part) => {
    const [name = "", ...value] = part.trim().split("=");
    return { name, value: value.join("=") };
  });
  const valuesOf = (wanted: string) => parts.filter(({ name }) => name === wanted).map(({ value }) => value);
  const [seconds = "", ...further] = valuesOf("t");
  const hexes = valuesOf("v1").filter((value) => HEX.test(value));
  if (!SECONDS.test(seconds) || further.length > 0 || hexes.length === 0)
    return "Stripe-Signature must be t=, the time in seconds, and v1= with 64 hexadecimal digits, with a comma in between.";
  const signatures = hexes.map((hex) => Buffer.from(hex, "hex"));
  return { signatures, head: `${seconds}.`, id: "", signedAtSeconds: Number(seconds) };
}

/** Signatures of other versions than v1 are left out. */
function standardClaim(header: string, headers: IncomingHttpHeaders): Claim | string {
  const { "webhook-id": id, "webhook-timestamp": seconds } = headers;
  if (typeof id !== "string" || !MESSAGE_ID.test(id))
    return "webhook-id must be 1 to 200 visible ASCII characters without a dot.";
  if (typeof seconds !== "string" || !SECONDS.test(seconds))
    return "webhook-timestamp must be the time in seconds since 1970.";
  const texts = header
    .split(" ")
    .filter((part) => part.startsWith("v1,"))
    .map((part) => part.slice(3))
    .filter((text) => BASE64.test(text));
  if (texts.length === 0) return "webhook-signature must be v1, and the signature as base64 of 32 bytes.";
  const signatures = texts.map((text) => Buffer.from(text, "base64"));
  return { signatures, head: `${id}.${seconds}.`, id: `${id}.`, signedAtSeconds: Number(seconds) };
}

/** As Standard Webhooks has it: a secret `whsec_…` is a key as base64. Any other one is the key itself, as text. */
function keyOf(scheme: WebhookScheme, secret: string): Buffer {
  const isEncoded = scheme === "hmac-sha256" && secret.startsWith(KEY_PREFIX);
  return isEncoded ? Buffer.from(secret.slice(KEY_PREFIX.length), "base64") : Buffer.from(secret);
}

/** A secret that was not given. @param bytes at least 24, random */
export function secretFrom(scheme: WebhookScheme, bytes: Buffer): string {
  return scheme === "hmac-sha256" ? KEY_PREFIX + bytes.toString("base64") : bytes.toString("base64url");
}

/** What is wrong with a secret, in words; null: nothing. */
export function secretProblem(scheme: WebhookScheme, secret: string): string | null {
  if (scheme !== "hmac-sha256" || !secret.startsWith(KEY_PREFIX)) return null;
  const key = secret.slice(KEY_PREFIX.length);
  const isBase64 = key !== "" && Buffer.from(key, "base64").toString("base64") === key;
  return isBase64 ? null : `behind ${KEY_PREFIX} must be base64, as Standard Webhooks has it`;
}
