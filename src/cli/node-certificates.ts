// `troupe node certificates`: makes what nodes on several machines prove themselves with.

import { join, resolve } from "node:path";
import { hosts } from "../app/config-parsers.ts";
import { type CertifiedNode, makeCertificates } from "../security/node-certificates.ts";
import { type Call, CommandFailed, printAnswer, UsageError } from "./command.ts";
import { cleanText } from "./text.ts";

const EXAMPLE = "--node a=10.0.0.1 --node b=b.example.org,10.0.0.2";

export async function certificates(call: Call): Promise<number> {
  const folder = resolve(call.words[0] ?? "");
  const nodes = call.texts("node").map(nodeOf);
  if (nodes.length === 0) throw new UsageError(`For which nodes? ${EXAMPLE}`);
  const twice = nodes.find(({ name }, i) => nodes.findIndex((other) => other.name === name) < i);
  if (twice !== undefined) throw new UsageError(`--node: ${cleanText(twice.name)} is given twice.`);
  try {
    const { files, validUntil } = await makeCertificates(folder, nodes, Date.now());
    const end = validUntil.toISOString();
    return printAnswer(call, { folder, files, valid_until: end }, () => [
      ...files.map((file) => cleanText(join(folder, file))),
      `The nodes' certificates are valid until ${end}. Each node needs ca.pem (SVC_NODE_TLS_CA), and its own .pem`,
      "(SVC_NODE_TLS_CERT) and .key (SVC_NODE_TLS_KEY). Keep ca.key apart: anyone who has it can make a node.",
    ]);
  } catch (error) {
    const { name, message, code } = error as NodeJS.ErrnoException;
    if (name === "CertificatesRefused" || code !== undefined) throw new CommandFailed(message);
    throw error;
  }
}

function nodeOf(text: string): CertifiedNode {
  const [name = "", addresses = ""] = text.split(/=(.*)/s);
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name) || /^ca$/i.test(name)) {
    throw new UsageError(
      `--node: ${JSON.stringify(name)} cannot be a node's name: letters, digits, ".", "_" and "-", and not "ca". ${EXAMPLE}`,
    );
  }
  try {
    if (addresses.includes("%")) throw new Error("an address with a zone is none of other machines.");
    const [first, ...more] = hosts(addresses);
    return { name, hosts: [first!, ...more] };
  } catch (error) {
    throw new UsageError(`--node ${name}: ${(error as Error).message} ${EXAMPLE}`);
  }
}
