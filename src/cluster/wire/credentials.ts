// How nodes prove to each other who they are, before a byte of a request is read: always TLS, always both sides.
//
// - With certificates: both sides show one that the cluster's authority has signed, and the caller checks that it names
//   the address it called.
// - On loopback, without certificates: both sides prove that they know the secret which the database keeps, as TLS with a
//   pre-shared key does it. The secret itself is not sent to a program that listens there.

import type { ConnectionOptions, SecureContextOptions, TlsOptions } from "node:tls";

export type NodeCredentials =
  | { readonly kind: "secret"; readonly secret: Uint8Array }
  /** PEM texts; `ca` signs the nodes' certificates and nothing else. */
  | { readonly kind: "certificates"; readonly cert: string; readonly key: string; readonly ca: string };

/** Keys of one session do not follow from the secret: one that becomes known later opens no recorded session. */
const SECRET_CIPHERS = "ECDHE-PSK-CHACHA20-POLY1305";
const IDENTITY = "troupe";

/** Node takes pre-shared keys with this version only. */
const SECRET_TLS: SecureContextOptions = {
  ciphers: SECRET_CIPHERS,
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
};

export function serverTls(credentials: NodeCredentials): TlsOptions {
  switch (credentials.kind) {
    case "secret": {
      const { secret } = credentials;
      return { ...SECRET_TLS, pskCallback: (_socket, identity) => (identity === IDENTITY ? secret : null) };
    }
    case "certificates": {
      const { cert, key, ca } = credentials;
      return { cert, key, ca, requestCert: true, rejectUnauthorized: true, minVersion: "TLSv1.3" };
    }
    default:
      return credentials satisfies never;
  }
}

export function clientTls(credentials: NodeCredentials): ConnectionOptions {
  switch (credentials.kind) {
    case "secret": {
      const { secret } = credentials;
      return {
        ...SECRET_TLS,
        pskCallback: () => ({ identity: IDENTITY, psk: secret }),
        // There is no certificate that could name the server: it proves itself by the secret.
        checkServerIdentity: () => undefined,
      };
    }
    case "certificates": {
      const { cert, key, ca } = credentials;
      return { cert, key, ca, rejectUnauthorized: true, minVersion: "TLSv1.3" };
    }
    default:
      return credentials satisfies never;
  }
}
