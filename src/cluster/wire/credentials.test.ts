// Who does not prove to be a node of the cluster is not listened to, and not believed.

import assert from "node:assert/strict";
import { connect } from "node:http2";
import { after, describe, test } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { Code, ConnectError } from "@connectrpc/connect";
import { credentialsOf, hasOpenssl, makeAuthority } from "../../../test/support/node-certificates.ts";
import { peersWith, SECRET, startNode } from "../../../test/support/nodes.ts";
import { until } from "../../../test/support/until.ts";
import { clientTls, type NodeCredentials } from "./credentials.ts";
import type { NodeClient, PeerUnreachable } from "./peers.ts";

const WRONG: NodeCredentials = { kind: "secret", secret: Buffer.alloc(32, 8) };

async function refused(called: NodeCredentials, caller: NodeCredentials): Promise<void> {
  await using node = await startNode({ credentials: called });
  using peers = peersWith(caller);
  await assert.rejects(
    peers.call(node.address, (client) => client.status({})),
    { name: "PeerUnreachable", mayHaveArrived: false },
  );
}

async function taken(called: NodeCredentials, caller: NodeCredentials): Promise<void> {
  await using node = await startNode({ credentials: called });
  using peers = peersWith(caller);
  const { owner, version, openJobs } = await peers.call(node.address, (client) => client.status({}));
  assert.deepEqual({ owner, version, openJobs }, { owner: "node_b/1", version: "1.2.3", openJobs: 3n });
}

describe("the secret of the cluster", () => {
  test("lets in who knows it", () => taken(SECRET, SECRET));

  test("keeps out who knows another, and the node's log reports it", async () => {
    await refused(SECRET, WRONG);
    await using node = await startNode();
    using peers = peersWith(WRONG);
    await assert.rejects(peers.call(node.address, (client) => client.status({})));
    await until("the warning", () => node.warnings.some((text) => text.includes("did not prove")));
  });

  test("is asked of the node that is called, too", () => refused(WRONG, SECRET));

  test("is needed: neither plain HTTP/2 nor TLS without it gets in", async () => {
    await using node = await startNode();
    for (const scheme of ["http", "https"]) {
      const session = connect(`${scheme}://${node.address}`, { rejectUnauthorized: false });
      const ended = await new Promise<string>((resolve) => {
        session.once("error", () => resolve("failed"));
        session.once("close", () => resolve("closed"));
        session.once("remoteSettings", () => resolve("let in"));
      });
      session.destroy();
      assert.notEqual(ended, "let in");
    }
  });
});

describe("a program that joins", () => {
  const JOINER: NodeCredentials = { kind: "joiner" };

  test("is answered when it asks for its welcome, and for nothing else", async () => {
    await using node = await startNode();
    using peers = peersWith(JOINER);
    const notGood = { nodeId: "node_1", joinerKey: new Uint8Array(32), proof: new Uint8Array(32) };
    const codeOf = (call: (client: NodeClient) => Promise<unknown>) =>
      peers.call(node.address, call).then(
        () => null,
        (error: PeerUnreachable) => ConnectError.from(error.cause),
      );
    const welcomed = await codeOf((client) => client.welcome(notGood));
    assert.equal(welcomed?.code, Code.PermissionDenied);
    assert.match(welcomed.rawMessage, /not good any more/);
    for (const call of [
      (client: NodeClient) => client.status({}),
      (client: NodeClient) => client.control({ owner: node.owner, jobId: "j" }),
      (client: NodeClient) => client.listBytes({}),
    ])
      assert.equal((await codeOf(call))?.code, Code.PermissionDenied);
    assert.deepEqual(node.engine.asked, []);
  });
});

test("a program that joins may send little, and few requests at once", async () => {
  await using node = await startNode();
  using peers = peersWith({ kind: "joiner" });
  const large = { nodeId: "node_1", joinerKey: new Uint8Array(32), proof: new Uint8Array(8 * 1024) };
  await assert.rejects(
    peers.call(node.address, (client) => client.welcome(large)),
    ({ cause }: PeerUnreachable) => ConnectError.from(cause).code === Code.ResourceExhausted,
  );
  const session = connect(`https://${node.address}`, clientTls({ kind: "joiner" }));
  await until(
    "the limit of requests",
    () => !session.connecting && session.remoteSettings.maxConcurrentStreams === 4,
  );
  session.destroy();
});

/** What a request of a method for nodes is answered with, over a connection that the program makes. */
async function statusOver(address: string, createConnection: () => TLSSocket): Promise<number | "refused"> {
  const session = connect(`https://${address}`, { createConnection });
  const answered = new Promise<number | "refused">((resolve) => {
    session.once("error", () => resolve("refused"));
    session.once("close", () => resolve("refused"));
    const stream = session.request({ ":method": "POST", ":path": "/svc.node.v1.NodeService/Status" });
    stream.once("error", () => resolve("refused"));
    stream.once("response", (headers) => resolve(Number(headers[":status"])));
  });
  try {
    return await answered;
  } finally {
    session.destroy();
  }
}

test("a program that joins is none of the nodes when it goes on with the session of an earlier connection", async () => {
  await using node = await startNode();
  const [host, port] = node.address.split(":");
  const joiner = { ...clientTls({ kind: "joiner" }), secureOptions: 0 };
  const tls = { ...joiner, host, port: Number(port), ALPNProtocols: ["h2"] };
  const sessions: Buffer[] = [];
  const dial = (session?: Buffer) =>
    connectTls({ ...tls, ...(session !== undefined && { session }) }).on("session", (one) =>
      sessions.push(one),
    );
  assert.equal(await statusOver(node.address, () => dial()), 403);
  assert.equal(await statusOver(node.address, () => dial(sessions.at(-1))), 403);
  assert.deepEqual(node.engine.asked, []);
});

describe("certificates of the cluster's authority", { skip: !hasOpenssl() && "there is no openssl" }, () => {
  const own = makeAuthority();
  const other = makeAuthority();
  after(() => {
    own[Symbol.dispose]();
    other[Symbol.dispose]();
  });
  const here = () => credentialsOf(own.files("IP:127.0.0.1"));

  test("let in who has one", () => taken(here(), here()));
  test("keep out who has one of another authority", () =>
    refused(here(), credentialsOf(other.files("IP:127.0.0.1"))));
  test("are asked of the node that is called, too", () =>
    refused(credentialsOf(other.files("IP:127.0.0.1")), here()));
  test("name the address that was called", () => refused(credentialsOf(own.files("IP:127.0.0.2")), here()));

  test("are not shown by who believes the authority and has none", async () => {
    await using node = await startNode({ credentials: here() });
    const { ca } = here();
    const session = connect(`https://${node.address}`, { ca });
    const answered = new Promise<string>((resolve) => {
      session.once("error", () => resolve("refused"));
      session.once("close", () => resolve("refused"));
      const stream = session.request({ ":method": "POST", ":path": "/svc.node.v1.NodeService/Status" });
      stream.once("error", () => resolve("refused"));
      stream.once("response", () => resolve("answered"));
    });
    assert.equal(await answered, "refused");
    session.destroy();
  });

  test("do not let in who knows a secret alone", () => refused(here(), SECRET));
  test("do not let in who joins without one", () => refused(here(), { kind: "joiner" }));
});
