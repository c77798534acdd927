// How this program joins a cluster: what it asks nodes and the database for, and how its home becomes a node's.

import type { JoinToken } from "../cluster/join-token.ts";
import { askForWelcome, openWelcome, type Welcome } from "../cluster/welcome.ts";
import type { DomainErrorEntry } from "../lib/domain-error.ts";
import { type Join, type JoinedNode, type JoiningOperation, JoinProblem } from "../nodes/joining.ts";
import { keyOf, type SecretKey } from "../security/secret-key.ts";
import { type ClusterFile, writeClusterFile } from "../store/cluster-file.ts";
import { openHome } from "../store/home.ts";
import { StoreUnusable } from "../store/sql/database.ts";
import { homeContent } from "../store/sqlite/home-content.ts";
import { type Config, loadConfig } from "./config.ts";
import { databaseUrl, hostAndPort, WrongValue } from "./config-parsers.ts";
import { refusedAddress } from "./listen.ts";

export interface JoinParts {
  readonly config: Config;
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
  readonly key: SecretKey;
  /** Has the program end, and begin again after `between`. */
  readonly again: (between: () => Promise<void>) => void;
}

export function joinOf({ config, env, home, key, again }: JoinParts): Join {
  return {
    content: () => homeContent(home),
    mistakes({ place, address }) {
      const given = [
        ["/database_url", "databaseUrl" in place ? place.databaseUrl : null, databaseUrl],
        ["/cluster_address", "nodeAddress" in place ? place.nodeAddress : null, hostAndPort],
        ["/address", address, hostAndPort],
      ] as const;
      return given.flatMap(([path, text, parse]) => mistakeIn(path, text, parse));
    },

    nodesOf: async (url) => (await examined(config, url)).addresses,

    async welcome(address, token) {
      // The same one whenever this home asks: an answer that was lost is given again.
      const ownKey = key.derive(`join ${token.nodeId}`);
      const { callForWelcome } = await import("./join-call.ts");
      const answer = await callForWelcome(config, address, askForWelcome(token, ownKey));
      const welcome = openWelcome(token, ownKey, answer);
      if (welcome !== null && isOfCluster(welcome.keys, token)) return welcome;
      throw new JoinProblem(`What answers at ${address} is no node of the cluster that the token is for.`);
    },

    async check(node, token) {
      const loaded = loadConfig(env, config.command, clusterFileOf(node));
      if (loaded.kind === "invalid")
        throw new JoinProblem(`This program is not set up for it. ${loaded.problems.join(" ")}`);
      const { secretKeys, nodeHost, nodePort, databaseUrl: url } = loaded.config;
      if (secretKeys.length > 0 && !isOfCluster(secretKeys, token))
        throw new JoinProblem(
          "SVC_SECRET_KEY of this program is not the key of the cluster. Unset it, or correct it.",
        );
      const refused = await refusedAddress({ host: nodeHost, port: nodePort, variable: "SVC_NODE_PORT" });
      if (refused !== null) throw new JoinProblem(refused.message);
      const { sealingKeyId } = await examined(loaded.config, url ?? "");
      if (!idsOf(node.keys).includes(sealingKeyId))
        throw new JoinProblem("The database is not that of the cluster that the token is for.");
    },

    restart(node, joining) {
      again(() => makeNode(home, node, joining, config.secretKeys.length > 0));
    },
  };
}

/**
 * Makes the home a node's, unless it has been given work: then the program begins again as it was, and the operation fails.
 *
 * @param isKeyGiven whether the program is given its keys, and takes none of its home
 */
async function makeNode(
  path: string,
  node: JoinedNode,
  joining: JoiningOperation,
  isKeyGiven: boolean,
): Promise<void> {
  const home = openHome(path);
  try {
    if (homeContent(path).length > 0) return;
    const settling = { node_id: node.nodeId, keys: isKeyGiven ? [] : node.keys };
    await writeClusterFile(path, { ...clusterFileOf(node), settling, joining });
  } finally {
    home.release();
  }
}

function clusterFileOf(node: JoinedNode): ClusterFile {
  const { databaseUrl: database_url, name, labels, address } = node;
  return { database_url, name, labels, address, settling: null, joining: null };
}

function mistakeIn(path: string, text: string | null, parse: (text: string) => string): DomainErrorEntry[] {
  if (text === null) return [];
  try {
    parse(text);
    return [];
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error;
    return [{ path, code: "invalid_value", message: error.message }];
  }
}

async function examined({ databaseIsPooled }: Config, url: string) {
  const { examineCluster } = await import("../store/postgres/examine.ts");
  try {
    return await examineCluster(url, databaseIsPooled);
  } catch (error) {
    if (!(error instanceof StoreUnusable)) throw error;
    throw new JoinProblem(error.message);
  }
}

const idsOf = (keys: readonly string[]) => {
  const key = keyOf(keys);
  return key === null ? [] : [key, ...key.older].map(({ id }) => id);
};

const isOfCluster = (keys: Welcome["keys"], { keyId }: JoinToken) =>
  idsOf(keys).some((id) => id.startsWith(keyId));
