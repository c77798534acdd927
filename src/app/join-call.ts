// The call by which this program asks a node for its welcome. Loaded only then: it brings gRPC and all of TLS along.

import { Code, ConnectError } from "@connectrpc/connect";
import type { WelcomeAnswer, WelcomeRequest } from "../cluster/welcome.ts";
import { Peers, PeerUnreachable } from "../cluster/wire/peers.ts";
import { JoinProblem } from "../nodes/joining.ts";
import { systemClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { credentialsOf } from "./node-door.ts";

const ANSWER_BYTES_MAX = 1024 * 1024;

/** @throws JoinProblem */
export async function callForWelcome(
  config: Config,
  address: string,
  request: WelcomeRequest,
): Promise<WelcomeAnswer> {
  const credentials = credentialsOf(config, null);
  const peers = new Peers({ credentials, messageBytesMax: ANSWER_BYTES_MAX, clock: systemClock });
  try {
    return await peers.call(address, (node) => node.welcome(request));
  } catch (error) {
    if (!(error instanceof PeerUnreachable)) throw error;
    const { code, rawMessage } = ConnectError.from(error.cause);
    if (code === Code.PermissionDenied) throw new JoinProblem(rawMessage);
    throw new JoinProblem(
      `${error.message}. A node that other machines reach takes certificates: SVC_NODE_TLS_CERT, SVC_NODE_TLS_KEY and SVC_NODE_TLS_CA.`,
      true,
    );
  } finally {
    peers.close();
  }
}
