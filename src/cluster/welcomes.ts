// What a node answers a program that joins. Nothing is told to one that does not have a token.

import type { ExpectedNodes } from "./node-writes.ts";
import { isProven, sealWelcome, type Welcome, type WelcomeAnswer, type WelcomeRequest } from "./welcome.ts";

const KEY_BYTES = 32;

export interface WelcomesParts {
  readonly expected: ExpectedNodes;
  /** What every node of the cluster has. */
  readonly shared: Pick<Welcome, "databaseUrl" | "keys">;
}

/** The program is not let in. */
export class NotWelcome extends Error {
  override readonly name = "NotWelcome";
}

/**
 * Uses the token up, for this program: it may ask again.
 *
 * @throws NotWelcome; JournalUnavailable
 */
export async function welcome(parts: WelcomesParts, request: WelcomeRequest): Promise<WelcomeAnswer> {
  const { expected, shared } = parts;
  const { nodeId, joinerKey } = request;
  const node = await expected.find(nodeId);
  if (node === null) throw notGood();
  const verifier = Buffer.from(node.verifier, "hex");
  if (joinerKey.length !== KEY_BYTES || !isProven(request, verifier)) {
    await expected.failed(nodeId);
    throw notGood();
  }
  if (!(await expected.use(nodeId, node.verifier, Buffer.from(joinerKey).toString("hex"))))
    throw new NotWelcome(
      "Another program has used the token. If that was not yours, remove its node; add the node again for a new token.",
    );
  const { name, labels } = node;
  return sealWelcome(request, verifier, { ...shared, name, labels });
}

const notGood = () =>
  new NotWelcome(
    "The token is not one of this cluster, or is not good any more. Add the node again for a new one (`troupe node add NAME`).",
  );
