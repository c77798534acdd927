// How a program that joins is told what makes it a node: the address of the database, and the keys that secrets are encrypted
// with. One request, one answer; both are safe in anybody's hands.
//
// - The request proves that the program has the token, and names a key of the program's own.
// - The answer can be read with that key and the token together: not with what the database keeps of the token.
// - What was changed on its way, in either, is not accepted.
// - The program accepts an answer of no cluster but the one that its token names, by the sealing key in the answer.

import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  timingSafeEqual,
} from "node:crypto";
import { type JoinToken, privateKey, publicBytes, publicKey, verifierOf } from "./join-token.ts";

export interface WelcomeRequest {
  readonly nodeId: string;
  /** The public key of the program that joins, always the same one. */
  readonly joinerKey: Uint8Array;
  readonly proof: Uint8Array;
}

export interface WelcomeAnswer {
  /** A public key for this one answer. */
  readonly clusterKey: Uint8Array;
  readonly sealed: Uint8Array;
}

/** What makes a program a node. */
export interface Welcome {
  readonly databaseUrl: string;
  /** The secret keys, the one that encrypts first. */
  readonly keys: readonly string[];
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

const CIPHER = "aes-256-gcm";
const TAG_BYTES = 16;
/** Each key is used once. */
const NONCE = Buffer.alloc(12);

/** @param ownKey of the program, of which its key for this node is made: 32 bytes */
export function askForWelcome(token: JoinToken, ownKey: Buffer): WelcomeRequest {
  const { nodeId } = token;
  const joinerKey = publicBytes(privateKey(ownKey));
  return { nodeId, joinerKey, proof: proofOf({ nodeId, joinerKey }, verifierOf(token)) };
}

/** Whether the request is of a program that has the token, as it was sent. */
export function isProven(request: WelcomeRequest, verifier: Buffer): boolean {
  const proof = proofOf(request, verifier);
  return proof.length === request.proof.length && timingSafeEqual(proof, request.proof);
}

/** @param request it is proven */
export function sealWelcome(request: WelcomeRequest, verifier: Buffer, welcome: Welcome): WelcomeAnswer {
  const own = generateKeyPairSync("x25519").privateKey;
  const clusterKey = publicBytes(own);
  const shared = [dh(own, request.joinerKey), dh(own, verifier)];
  const about = Buffer.concat([transcriptOf(request), clusterKey]);
  const cipher = createCipheriv(CIPHER, answerKey(shared, verifier, about), NONCE).setAAD(about);
  const sealed = [cipher.update(JSON.stringify(welcome)), cipher.final(), cipher.getAuthTag()];
  return { clusterKey, sealed: Buffer.concat(sealed) };
}

/** @returns null for an answer to another request, or one that was changed */
export function openWelcome(token: JoinToken, ownKey: Buffer, answer: WelcomeAnswer): Welcome | null {
  const { clusterKey, sealed } = answer;
  const verifier = verifierOf(token);
  try {
    const shared = [dh(privateKey(ownKey), clusterKey), dh(privateKey(token.secret), clusterKey)];
    const about = Buffer.concat([transcriptOf(askForWelcome(token, ownKey)), clusterKey]);
    const decipher = createDecipheriv(CIPHER, answerKey(shared, verifier, about), NONCE, {
      authTagLength: TAG_BYTES,
    }).setAAD(about);
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    const text = Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
    return JSON.parse(text.toString()) as Welcome;
  } catch {
    return null;
  }
}

function dh(own: KeyObject, other: Uint8Array): Buffer {
  return diffieHellman({ privateKey: own, publicKey: publicKey(other) });
}

function answerKey(shared: readonly Buffer[], verifier: Buffer, about: Buffer): Buffer {
  const secret = Buffer.concat([...shared, verifier]);
  return Buffer.from(hkdfSync("sha256", secret, about, "troupe welcome answer", 32));
}

function proofOf(request: Omit<WelcomeRequest, "proof">, verifier: Buffer): Buffer {
  const key = Buffer.from(hkdfSync("sha256", verifier, "", "troupe welcome proof", 32));
  return createHmac("sha256", key).update(transcriptOf(request)).digest();
}

/** The key has a fixed length. */
const transcriptOf = ({ nodeId, joinerKey }: Omit<WelcomeRequest, "proof">) =>
  Buffer.concat([joinerKey, Buffer.from(nodeId)]);
