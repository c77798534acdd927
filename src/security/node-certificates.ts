// Certificates by which nodes prove to each other who they are: an authority, and one certificate for each node, as PEM files in a
// folder.
//
// - No file is ever replaced. Keys are readable by their user alone.
// - The authority signs nodes and nothing else: a program with a certificate of it is a node.
// - Everything of a call is checked before its first file is written.

import { createPrivateKey, KeyObject, randomBytes, X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { isIP, isIPv4 } from "node:net";
import { join } from "node:path";
import { BitString, Integer, OctetString, Utf8String } from "asn1js";
import {
  AttributeTypeAndValue,
  BasicConstraints,
  Certificate,
  Extension,
  ExtKeyUsage,
  GeneralName,
  GeneralNames,
} from "pkijs";

const DAY_MS = 24 * 60 * 60 * 1_000;
const AUTHORITY_DAYS = 3_650;
const NODE_DAYS = 730;
/** The clock of another machine may be behind. */
const EARLIER_MS = DAY_MS;

const KEY = { name: "ECDSA", namedCurve: "P-256" };
const SERIAL_BYTES = 16;
const OID = {
  commonName: "2.5.4.3",
  keyUsage: "2.5.29.15",
  alternativeNames: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  extendedKeyUsage: "2.5.29.37",
  server: "1.3.6.1.5.5.7.3.1",
  client: "1.3.6.1.5.5.7.3.2",
} as const;
/** To sign certificates and lists of revoked ones, and nothing else. */
const SIGNS = new BitString({ valueHex: Uint8Array.of(0b0000_0110).buffer, unusedBits: 1 });
const DNS_NAME = 2;
const IP_ADDRESS = 7;

/** The authority's files cannot be used, or a file is there already; the message says what to do. */
export class CertificatesRefused extends Error {
  override readonly name = "CertificatesRefused";
}

export interface CertifiedNode {
  /** Of its files. */
  readonly name: string;
  /** Host names and IP addresses at which other nodes reach it. */
  readonly hosts: readonly [string, ...string[]];
}

export interface MadeCertificates {
  /** Names of the files that were made. */
  readonly files: readonly string[];
  /** When the nodes' certificates end. */
  readonly validUntil: Date;
}

interface Issuer {
  readonly certificate: Certificate;
  readonly key: CryptoKey;
}

/**
 * Makes a certificate for each node, and their authority if the folder has none.
 *
 * @throws CertificatesRefused
 */
export async function makeCertificates(
  folder: string,
  nodes: readonly CertifiedNode[],
  nowMs: number,
): Promise<MadeCertificates> {
  const known = readAuthority(folder, nowMs);
  for (const { name } of nodes) {
    const there = [`${name}.key`, `${name}.pem`].find((file) => existsSync(join(folder, file)));
    if (there === undefined) continue;
    throw new CertificatesRefused(
      `${join(folder, there)} exists, and no file is replaced. To renew the certificate of ${name}, move ${name}.pem and ${name}.key away first.`,
    );
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const files: string[] = [];
  const write = (name: string, text: string, mode: number) => {
    writeFileSync(join(folder, name), text, { flag: "wx", mode });
    files.push(name);
  };
  const make = async (name: string, certified: Certificate, issuer: Issuer | null) => {
    const { privateKey, publicKey } = await crypto.subtle.generateKey(KEY, true, ["sign", "verify"]);
    await certified.subjectPublicKeyInfo.importKey(publicKey);
    await certified.sign(issuer?.key ?? privateKey, "SHA-256");
    write(`${name}.key`, String(KeyObject.from(privateKey).export({ type: "pkcs8", format: "pem" })), 0o600);
    write(`${name}.pem`, pemOf(certified), 0o644);
    return { certificate: certified, key: privateKey };
  };
  const authority = known ?? (await make("ca", authorityCertificate(nowMs), null));
  const endMs = authority.certificate.notAfter.value.getTime();
  const validUntil = new Date(Math.min(nowMs + NODE_DAYS * DAY_MS, endMs));
  for (const node of nodes)
    await make(node.name, nodeCertificate(node, authority, nowMs, validUntil), authority);
  return { files, validUntil };
}

/** @returns null when there is none */
function readAuthority(folder: string, nowMs: number): Issuer | null {
  const [certFile, keyFile] = [join(folder, "ca.pem"), join(folder, "ca.key")];
  const missing = [certFile, keyFile].filter((file) => !existsSync(file));
  if (missing.length === 2) return null;
  if (missing.length === 1) {
    throw new CertificatesRefused(
      `${missing[0]} is missing: put it back, or name another folder to make a new authority.`,
    );
  }
  try {
    const certificate = new X509Certificate(readFileSync(certFile));
    const key = createPrivateKey(readFileSync(keyFile));
    if (!certificate.ca || !certificate.checkPrivateKey(key)) throw new Error("they do not belong together");
    if (certificate.validToDate.getTime() <= nowMs) throw new Error(`it ended on ${certificate.validTo}`);
    return {
      certificate: Certificate.fromBER(certificate.raw),
      key: key.toCryptoKey(KEY, false, ["sign"]),
    };
  } catch (error) {
    throw new CertificatesRefused(
      `The authority of ${certFile} and ${keyFile} cannot be used (${(error as Error).message}). Name another folder to make a new one.`,
    );
  }
}

function authorityCertificate(nowMs: number): Certificate {
  // Of a name of its own: nodes may believe an old and a new one for a while.
  const name = `Troupe nodes ${randomBytes(4).toString("hex")}`;
  const certificate = certificateOf(name, nowMs, new Date(nowMs + AUTHORITY_DAYS * DAY_MS));
  certificate.issuer = certificate.subject;
  certificate.extensions = [
    extension(
      OID.basicConstraints,
      true,
      new BasicConstraints({ cA: true, pathLenConstraint: 0 }).toSchema(),
    ),
    extension(OID.keyUsage, true, SIGNS),
  ];
  return certificate;
}

function nodeCertificate(
  { name, hosts }: CertifiedNode,
  { certificate: authority }: Issuer,
  nowMs: number,
  validUntil: Date,
): Certificate {
  const certificate = certificateOf(name, nowMs, validUntil);
  certificate.issuer = authority.subject;
  const names = hosts.map((host) =>
    isIP(host) === 0
      ? new GeneralName({ type: DNS_NAME, value: host })
      : new GeneralName({ type: IP_ADDRESS, value: new OctetString({ valueHex: bytesOf(host).buffer }) }),
  );
  const uses = new ExtKeyUsage({ keyPurposes: [OID.server, OID.client] });
  certificate.extensions = [
    extension(OID.alternativeNames, false, new GeneralNames({ names }).toSchema()),
    extension(OID.extendedKeyUsage, false, uses.toSchema()),
  ];
  return certificate;
}

function certificateOf(name: string, nowMs: number, validUntil: Date): Certificate {
  const certificate = new Certificate();
  // Version 3, which has extensions.
  certificate.version = 2;
  const serial = new Uint8Array(randomBytes(SERIAL_BYTES));
  // Greater than 0, and of this length.
  serial[0] = (serial[0]! & 0x3f) | 0x40;
  certificate.serialNumber = new Integer({ valueHex: serial.buffer });
  certificate.subject.typesAndValues.push(
    new AttributeTypeAndValue({ type: OID.commonName, value: new Utf8String({ value: name }) }),
  );
  certificate.notBefore.value = new Date(nowMs - EARLIER_MS);
  certificate.notAfter.value = validUntil;
  return certificate;
}

const extension = (extnID: string, critical: boolean, value: { toBER(): ArrayBuffer }) =>
  new Extension({ extnID, critical, extnValue: value.toBER() });

/** The 4 or 16 bytes of an IP address. */
function bytesOf(address: string): Uint8Array<ArrayBuffer> {
  if (isIPv4(address)) return Uint8Array.from(address.split("."), Number);
  // In this form it has no IPv4 address in it, and the longest row of zeros is left out.
  const [head = "", tail = ""] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const [before, after] = [head, tail].map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: 8 - before!.length - after!.length }, () => "0");
  const groups = [...before!, ...zeros, ...after!].map((group) => Number.parseInt(group, 16));
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}

function pemOf(certificate: Certificate): string {
  return new X509Certificate(new Uint8Array(certificate.toSchema(true).toBER())).toString();
}
