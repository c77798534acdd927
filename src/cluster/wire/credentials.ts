// How nodes prove to each other who they are, before a byte of a request is read: always TLS, always both sides.
//
// - With certificates: both sides show one that the cluster's authority has signed, and the caller checks that it names
//   the address it called.
// - On loopback, without certificates: both sides prove that they know the secret which the database keeps, as TLS with a
//   pre-shared key does it. The secret itself is not sent to a program that listens there.
// - A program on loopback that joins knows no secret yet: it is let in as a joiner, which may ask for its welcome and for nothing
//   else (server.ts). What passes then is safe in anybody's hands (welcome.ts).
// - Who has not proven the secret on this very connection is no node: a session that is resumed proves nothing.

import { constants } from "node:crypto";
import type { ConnectionOptions, SecureContextOptions, TlsOptions } from "node:tls";

/** Of a connection's socket: whether its other end has proven to be a node. */
const NODE = Symbol("node");

export type NodeCredentials =
  /** Of a program that joins on loopback; none of a server. */
  | { readonly kind: "joiner" }
  | { readonly kind: "secret"; readonly secret: Uint8Array }
  /** PEM texts; `ca` signs the nodes' certificates and nothing else. */
  | { readonly kind: "certificates"; readonly cert: string; readonly key: string; readonly ca: string };

/** Keys of one session do not follow from the secret: one that becomes known later opens no recorded session. */
const SECRET_CIPHERS = "ECDHE-PSK-CHACHA20-POLY1305";
const IDENTITY = "troupe";
const JOINER_IDENTITY = "troupe joiner";
/** Everybody knows it. */
const JOINER_SECRET = Buffer.alloc(32);

/** Node takes pre-shared keys with this version only. */
const SECRET_TLS: SecureContextOptions = {
  ciphers: SECRET_CIPHERS,
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
  // A resumed session would ask for no key.
  secureOptions: constants.SSL_OP_NO_TICKET,
};

export function serverTls(credentials: NodeCredentials): TlsOptions {
  switch (credentials.kind) {
    case "secret": {
      const { secret } = credentials;
      return {
        ...SECRET_TLS,
        pskCallback(socket, identity) {
          if (identity === JOINER_IDENTITY) return JOINER_SECRET;
          if (identity !== IDENTITY) return null;
          // A caller that does not know the secret gets no further with this connection.
          Object.assign(socket, { [NODE]: true });
          return secret;
        },
      };
    }
    case "certificates": {
      const { cert, key, ca } = credentials;
      return { cert, key, ca, requestCert: true, rejectUnauthorized: true, minVersion: "TLSv1.3" };
    }
    case "joiner":
      throw new Error("A program that joins is no server.");
    default:
      return credentials satisfies never;
  }
}

/** Whether the other end of a connection is a node. @param socket as HTTP/2 shows it */
export function isNode({ kind }: NodeCredentials, socket: object): boolean {
  return kind === "certificates" || Reflect.get(socket, NODE) === true;
}

export function clientTls(credentials: NodeCredentials): ConnectionOptions {
  switch (credentials.kind) {
    case "secret":
      return withSecret(IDENTITY, credentials.secret);
    case "joiner":
      return withSecret(JOINER_IDENTITY, JOINER_SECRET);
    case "certificates": {
      const { cert, key, ca } = credentials;
      return { cert, key, ca, rejectUnauthorized: true, minVersion: "TLSv1.3" };
    }
    default:
      return credentials satisfies never;
  }
}

function withSecret(identity: string, psk: Uint8Array): ConnectionOptions {
  return {
    ...SECRET_TLS,
    pskCallback: () => ({ identity, psk }),
    // There is no certificate that could name the server: it proves itself by the secret.
    checkServerIdentity: () => undefined,
  };
}
