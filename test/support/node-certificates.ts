// Certificates as an operator gives them to nodes, made with openssl.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface NodeFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

export function hasOpenssl(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** An authority of its own. @returns makes the files of a node that is reached as this name */
export function makeAuthority(): { files(altName: string): NodeFiles; [Symbol.dispose](): void } {
  const folder = mkdtempSync(join(tmpdir(), "troupe-ca-"));
  const at = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: "ignore" });
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  openssl("req", "-x509", ...newKey, "-keyout", at("ca.key"), "-out", at("ca.pem"), "-subj", "/CN=nodes");
  let made = 0;
  return {
    files(altName) {
      const name = `node${++made}`;
      const [key, request, cert, more] = ["key", "csr", "pem", "ext"].map((end) => at(`${name}.${end}`)) as [
        string,
        string,
        string,
        string,
      ];
      writeFileSync(more, `subjectAltName=${altName}`);
      openssl("req", ...newKey, "-keyout", key, "-out", request, "-subj", `/CN=${name}`);
      const signed = ["-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-CAcreateserial", "-extfile", more];
      openssl("x509", "-req", "-in", request, "-out", cert, ...signed);
      return { cert, key, ca: at("ca.pem") };
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export const credentialsOf = ({ cert, key, ca }: NodeFiles) => ({
  kind: "certificates" as const,
  cert: readFileSync(cert, "utf8"),
  key: readFileSync(key, "utf8"),
  ca: readFileSync(ca, "utf8"),
});
