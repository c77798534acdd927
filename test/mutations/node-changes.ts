// Faults of nodes that are added, leave, and are removed.

import type { Mutation } from "./mutation.ts";

const of = (
  file: string,
  test: string,
  faults: readonly (readonly [fault: string, search: string, replacement: string])[],
): readonly Mutation[] =>
  faults.map(([fault, search, replacement]) => ({ fault, file, search, replacement, tests: [test] }));

const rows = "src/store/postgres/nodes.test.ts";
const membership = "src/cluster/membership.test.ts";
const programs = "test/integration/node-changes.test.ts";
const exchange = "src/cluster/welcome.test.ts";
const joined = "src/app/config-joined.test.ts";
const joining = "test/integration/node-joining.test.ts";

export const nodeChangesMutations: readonly Mutation[] = [
  ...of("src/store/postgres/nodes.ts", rows, [
    ["a removed node gets a lease when it starts", "OR $11) AND nodes.removed_at IS NULL", "OR $11)"],
    [
      "a removed node keeps its lease",
      "AND lease_until > ${NOW} AND removed_at IS NULL",
      "AND lease_until > ${NOW}",
    ],
    ["a removed node is forgotten", "AND maintenance = 0 AND removed_at IS NULL", "AND maintenance = 0"],
    [
      "a program is to end because an earlier one of its node was",
      "leaves = CASE WHEN nodes.owner = ANY ($10) THEN nodes.leaves ELSE 0 END",
      "leaves = nodes.leaves",
    ],
    [
      "a name is also that of nodes which have left",
      "ORDER BY status = 'left', removed_at",
      "ORDER BY removed_at",
    ],
    ["an undrain lets a program end", '.concat("leaves = 0")', '.concat("leaves = leaves")'],
  ]),
  ...of("src/store/sql/node-writes.ts", rows, [
    [
      "jobs of a removed node wait for it",
      "drain_until = coalesce(drain_until, ${now})",
      "drain_until = drain_until",
    ],
    ["two nodes have one name", "return rows.length > 0", "return false"],
    ["a removed node keeps its name", "AND removed_at IS NULL LIMIT", "LIMIT"],
    ["a token that was used up is given out again", "attempts = 0, joiner = NULL", "attempts = 0"],
  ]),
  ...of("src/cluster/membership.ts", membership, [
    ["a node does not hear that it is to end", "if (outage.isLast) this.#parts.onEnd(LEAVES);", ""],
    [
      "a removed node asks for a lease for ever",
      'if (taken === "removed")\n',
      'if (taken === "removed") continue;\n        if (this.#isFailing)\n',
    ],
    ["others wait for the end of a removed node's lease", "await this.#endLease(this.#owner);", ""],
    [
      "a node that can have no lease any more works on without one",
      "if (!(error instanceof JournalUnavailable))\n",
      "if (!(error instanceof Error))\n",
    ],
  ]),
  ...of("src/nodes/departures.ts", "src/nodes/departures.test.ts", [
    ["a node that did not know of its drain goes", "HEARTBEATS_MIN = 2", "HEARTBEATS_MIN = 1"],
    ["a node whose jobs do not go never goes", "|| heartbeatAtMs > node.drainUntilMs + LATE_MS", ""],
    ["a node that starts again leaves again", ' && this.#last === "end")', " && false)"],
    [
      "a node goes before its jobs",
      "jobs + attempts === 0 || heartbeatAtMs",
      "jobs + attempts >= 0 || heartbeatAtMs",
    ],
    [
      "a drain that was taken back is asked for again",
      'asked === owner || (wasStartedAgain && this.#last === "end")',
      'wasStartedAgain && this.#last === "end"',
    ],
  ]),
  ...of("src/nodes/node-changes.ts", "src/nodes/node-changes.test.ts", [
    ["all nodes of a cluster may go at once", 'if (kind !== "node_removal" && kind', "if (kind"],
    [
      "a node that has just joined is taken to go",
      'if (kind !== "node_removal" && kind !== "node_leave") return true;',
      "if (kind === undefined) return true;",
    ],
    ["a node leaves its jobs to one that takes none", "isReady(other) && other", "isLiving(other) && other"],
    ["departures that wait keep others from their turn", "AT_ONCE_MAX = 100", "AT_ONCE_MAX = 4"],
  ]),
  ...of("src/nodes/node-changes.ts", programs, [
    ["the last node is not removed with force", "isLiving(node) && request.force !== true", "isLiving(node)"],
  ]),
  ...of("src/http/resources/node-changes.ts", programs, [
    [
      "a token is kept with its answer",
      "body: JSON.stringify(rendered(added)) }",
      "body: JSON.stringify({ ...rendered(added), join_token: added.token }) }",
    ],
  ]),
  ...of("src/cluster/welcome.ts", exchange, [
    [
      "any request is proven",
      "proof.length === request.proof.length && timingSafeEqual(proof, request.proof)",
      "proof.length === request.proof.length",
    ],
    [
      "what the database keeps of a token opens the answer",
      "[dh(privateKey(ownKey), clusterKey), dh(privateKey(token.secret), clusterKey)]",
      "[dh(privateKey(ownKey), clusterKey)]",
    ],
    [
      "a proof does not cover the program's key",
      "Buffer.concat([joinerKey, Buffer.from(nodeId)])",
      "Buffer.concat([joinerKey.subarray(0, 1), Buffer.from(nodeId)])",
    ],
  ]),
  ...of("src/cluster/welcomes.ts", exchange, [
    ["nobody counts who guesses at a token", "await expected.failed(nodeId);", ""],
    [
      "a token is good for several programs",
      "if (!(await expected.use(",
      "if (false && !(await expected.use(",
    ],
  ]),
  ...of("src/cluster/wire/server.ts", "src/cluster/wire/credentials.test.ts", [
    [
      "a program that joins may ask a node for anything",
      "else if (isNode(credentials, request.socket)) answer",
      "else if (request.url !== null) answer",
    ],
    [
      "a program that joins may send large messages",
      "answerWith(WELCOME_BYTES_MAX)",
      "answerWith(messageBytesMax)",
    ],
    [
      "a program that joins may send many messages at once",
      "session.settings({ maxConcurrentStreams: JOINER_STREAMS_MAX })",
      "session.settings({})",
    ],
  ]),
  ...of("src/cluster/wire/credentials.ts", "src/cluster/wire/credentials.test.ts", [
    [
      "who has proven nothing on its connection is a node",
      'kind === "certificates" || Reflect.get(socket, NODE) === true',
      'kind === "certificates" || socket !== null',
    ],
  ]),
  ...of("src/store/postgres/expected-nodes.ts", joining, [
    ["a token is good for ever", "expires_at > ${NOW} AND attempts", "attempts"],
    ["a token may be guessed at for ever", "FAILED_MAX = 10", "FAILED_MAX = 1_000"],
    [
      "a program whose answer was lost cannot ask again",
      "(joiner IS NULL OR joiner = ${joiner})",
      "joiner IS NULL",
    ],
  ]),
  ...of("src/store/cluster-file.ts", joined, [
    [
      "a node keeps the key that it had on its own",
      "if (keys.length > 0) await putSecretKeys(home, keys);",
      "",
    ],
    ["a node keeps the id that it had on its own", "await becomeNode(home, nodeId);", ""],
    ["a node that joins keeps its database, and is refused", "removeDatabase(home);\n", "\n"],
    ["a database that holds something is removed", "if (content.length > 0)\n", "if (content.length > 9)\n"],
    [
      "a home whose file lacks a field starts on its own",
      "[url, name].every(isText) &&",
      "[url].every(isText) &&",
    ],
  ]),
  ...of("src/store/node-identity.ts", joined, [
    ["a node that joins takes the lease of a living one", 'place: "" });', "place: placeOf(home) });"],
  ]),
  ...of("src/app/config.ts", joined, [
    [
      "what a home has learnt wins over variables",
      'const text = given === "" ? (ofHome[variable] ?? "") : given;',
      "const text = ofHome[variable] ?? given;",
    ],
  ]),
  ...of("src/nodes/node-changes.ts", joining, [
    [
      "a node gets the id of the one that was added before",
      "const nodeId = `node_${this.#parts.newId()}`;",
      'const nodeId = `node_${Buffer.from(name).toString("hex")}`;',
    ],
    ["a home that is not empty joins", "if (content.length > 0) throw notEmpty(content);", ""],
    [
      "a join that is repeated is refused",
      "if (known.nodeId === nodeId && before !== undefined) return async () => before;",
      "",
    ],
  ]),
  ...of("src/nodes/joining.ts", "src/nodes/joining.test.ts", [
    ["a program that stops goes on asking to be let in", "if (signal.aborted) throw", "if (false) throw"],
    [
      "all nodes of a cluster are asked one after the other",
      "addresses.slice(0, ADDRESSES_MAX)",
      "addresses",
    ],
  ]),
  ...of("src/store/postgres/examine.ts", "src/store/postgres/examine.test.ts", [
    ["a look at a cluster has no end", "ANSWER_MS = 10_000", "ANSWER_MS = 600_000"],
  ]),
  ...of("src/app/join.ts", joining, [
    ["any cluster is joined", "welcome !== null && isOfCluster(welcome.keys, token)", "welcome !== null"],
  ]),
  ...of("src/app/app.ts", joining, [
    ["the operation of a join is lost", "await gateway.nodeChanges.bringJoin();", ""],
  ]),
];
