// Join tokens: what a program proves that a cluster expects it, and how it knows that cluster.
//
// - A token holds a private key that nobody else has. The cluster keeps the public one (the verifier), from which the token
//   cannot be computed: who reads the database can neither join with it nor learn what a joining program is sent.
// - A token names the cluster's sealing key by the id of it, so that no other program can pass for a node of the cluster.

import { createPrivateKey, createPublicKey, type KeyObject, randomBytes } from "node:crypto";

const SECRET_BYTES = 32;
const KEY_ID_BYTES = 16;
const PATTERN = /^(node_[A-Za-z0-9]{1,64})\.([A-Za-z0-9_-]{64})$/;

export interface JoinToken {
  /** Of the node that is expected. */
  readonly nodeId: string;
  readonly secret: Buffer;
  /** The beginning of the id of the cluster's sealing key, as hexadecimal digits. */
  readonly keyId: string;
}

/** @param sealingKeyId as hexadecimal digits */
export function makeToken(nodeId: string, sealingKeyId: string): JoinToken {
  return {
    nodeId,
    secret: randomBytes(SECRET_BYTES),
    keyId: sealingKeyId.slice(0, 2 * KEY_ID_BYTES),
  };
}

export function tokenText({ nodeId, secret, keyId }: JoinToken): string {
  return `${nodeId}.${Buffer.concat([secret, Buffer.from(keyId, "hex")]).toString("base64url")}`;
}

/** @returns null for a text that is no token */
export function parseToken(text: string): JoinToken | null {
  const [, nodeId, rest] = PATTERN.exec(text) ?? [];
  if (nodeId === undefined || rest === undefined) return null;
  const bytes = Buffer.from(rest, "base64url");
  return {
    nodeId,
    secret: bytes.subarray(0, SECRET_BYTES),
    keyId: bytes.subarray(SECRET_BYTES).toString("hex"),
  };
}

/** What the cluster keeps of a token. */
export const verifierOf = ({ secret }: Pick<JoinToken, "secret">): Buffer => publicBytes(privateKey(secret));

/** @param bytes 32 of them, as good as random */
export function privateKey(bytes: Buffer): KeyObject {
  return createPrivateKey({ key: bytes, format: "raw-private", asymmetricKeyType: "x25519" });
}

export function publicKey(bytes: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.from(bytes), format: "raw-public", asymmetricKeyType: "x25519" });
}

export function publicBytes(key: KeyObject): Buffer {
  const shown = key.type === "private" ? createPublicKey(key) : key;
  return shown.export({ format: "raw-public" });
}
