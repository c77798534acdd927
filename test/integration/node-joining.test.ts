// Real programs, each on its own at first, that join a cluster of another one on PostgreSQL.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { startHere } from "../support/command-line.ts";
import {
  ask,
  assertProblem,
  call,
  createJob,
  ended,
  frames,
  startGateway,
  startRun,
} from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { hasOpenssl, makeAuthority } from "../support/node-certificates.ts";
import { inPostgres } from "../support/postgres.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { sandboxLabels } from "../support/sandboxes.ts";
import { Nodes } from "../support/several-nodes.ts";
import { until } from "../support/until.ts";

const LEFT = { code: 3, signal: null };

let nodes: Nodes<"a">;
let cluster: Program;
let databaseUrl: string;
let address: string;
const programs: Program[] = [];
before(async () => {
  nodes = await Nodes.start(["a"], { filesAreShared: false });
  cluster = nodes.of("a");
  databaseUrl = nodes.environmentOf("a").SVC_DATABASE_URL!;
  const { items } = await call(cluster, "GET", "/nodes");
  address = String((items as JsonObject[])[0]!.address);
});
after(async () => {
  await Promise.all(programs.map((program) => program.kill()));
  await Promise.all(programs.map(({ home }) => rm(home, { recursive: true, force: true })));
  await nodes[Symbol.asyncDispose]();
});

/** A program on its own, with a home to join with. */
async function alone(home?: string, env: Readonly<Record<string, string>> = {}): Promise<Program> {
  const program = await startGateway({
    home: home ?? (await temporaryHome()),
    env: { SVC_NODE_LEASE_SECONDS: "10", ...env },
  });
  programs.push(program);
  return program;
}

async function added(
  name: string,
  labels: JsonObject = {},
): Promise<{ readonly token: string; readonly id: string }> {
  const { join_token, node_id } = await call(cluster, "POST", "/system/cluster/nodes:add", { name, labels });
  return { token: String(join_token), id: String(node_id) };
}

const asked = (program: Program, body: JsonObject) =>
  call(program, "POST", "/system/cluster/nodes:join", body);
const refused = (program: Program, body: JsonObject) =>
  ask(program, "POST", "/system/cluster/nodes:join", { body });

/** The operation once it has ended; the program may be starting again. */
const operationEnded = (program: Program, { operation_id: id }: JsonObject): Promise<JsonObject> =>
  until(`the end of ${id}`, async () => {
    const answer = await ask(program, "GET", `/operations/${id}`).catch(() => null);
    return answer?.body.finished_at != null && answer.body;
  });

async function failure(program: Program, body: JsonObject): Promise<JsonObject> {
  const { status, error } = await operationEnded(program, await asked(program, body));
  assert.equal(status, "failed");
  return error as JsonObject;
}

const shown = async (name: string) =>
  ((await call(cluster, "GET", "/nodes")).items as JsonObject[]).find((one) => one.name === name);

test("a program that is added joins, works as a node, and leaves", async () => {
  const { token, id } = await added("b", { zone: "b" });
  const program = await alone();
  const words = ["node", "join", "--cluster", address, "--token", token, "--url", program.api];
  const { code, out, err } = await startHere(words, program.home).ended;
  assert.equal(code, 0, out + err);
  assert.match(err, /Asking a node.*Starting again as a node/s);

  const [operation] = (await call(program, "GET", "/operations")).items as JsonObject[];
  assert.deepEqual([operation?.kind, operation?.result], ["node_join", { node_id: id, name: "b" }]);
  const history = await Array.fromAsync(
    frames(program, `/operations/${operation?.operation_id}/events/stream`),
  );
  assert.deepEqual(
    history.map((frame) => frame.id),
    history.map((_, n) => n + 1),
  );
  const { labels, status } = (await shown("b"))!;
  assert.deepEqual([labels, status], [{ zone: "b", ...sandboxLabels }, "ready"]);
  assert.equal(
    (await asked(program, { token, cluster_address: address })).operation_id,
    operation?.operation_id,
  );
  const other = (await added("other")).token;
  assertProblem(await refused(program, { token: other, cluster_address: address }), 409, "conflict");

  const node = executor("x", ["sh", "-c", "echo $SVC_HOME"], { node_labels: { zone: "b" } });
  const runId = await startRun(cluster, await createJob(cluster, graph("there", [node])));
  assert.equal((await ended(program, runId)).run.status, "completed");

  const file = join(program.home, "cluster.json");
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.equal((await stat(join(program.home, "secret.key"))).mode & 0o777, 0o600);
  await until("the operation is forgotten", async () =>
    (await readFile(file, "utf8")).includes('"joining":null'),
  );
  assert.ok(!existsSync(join(program.home, "troupe.db")));
  const secret = new URL(databaseUrl).href;
  for (const text of [
    program.output(),
    cluster.output(),
    JSON.stringify(history),
    JSON.stringify(operation),
    out,
    err,
  ])
    assert.ok(!text.includes(secret) && !text.includes(token.split(".")[1]!));
  const config = await startHere(["config", "--json"], program.home).ended;
  assert.match(config.out, /"SVC_DATABASE_URL"[^}]*"cluster\.json"/);

  assert.equal((await startHere(["node", "leave", "--url", program.api], program.home).ended).code, 0);
  assert.deepEqual(await program.exited, LEFT);
  const again = await alone(program.home);
  await until("b is back", async () => (await shown("b"))?.status === "ready");
  const nodesSeen = (await call(again, "GET", "/nodes")).items as JsonObject[];
  assert.equal(nodesSeen.find(({ self }) => self === true)?.node_id, id);
});

describe("a program stays on its own", () => {
  test("with a token that is wrong, void, used by another one, or for another cluster", async () => {
    const program = await alone();
    const { token, id } = await added("c");
    const wrong = `${token.slice(0, -64)}${token.at(-64) === "A" ? "B" : "A"}${token.slice(-63)}`;
    const withUrl = { database_url: databaseUrl };
    const notGood = await failure(program, { token: wrong, ...withUrl });
    assert.deepEqual([notGood.code, notGood.retryable], ["join_failed", true]);
    assert.match(String(notGood.detail), /not good any more/);
    const wrongCluster = `${token.slice(0, -2)}${token.endsWith("AA") ? "BB" : "AA"}`;
    assert.match(
      String((await failure(program, { token: wrongCluster, ...withUrl })).detail),
      /no node of the cluster/,
    );

    const second = await alone();
    assert.match(String((await failure(second, { token, ...withUrl })).detail), /Another program has used/);
    await inPostgres(databaseUrl, "UPDATE expected_nodes SET joiner = NULL, expires_at = 0");
    assert.match(String((await failure(second, { token, ...withUrl })).detail), /not good any more/);
    const { token: fresh, id: freshId } = await added("c");
    assert.notEqual(freshId, id);
    await inPostgres(databaseUrl, "UPDATE expected_nodes SET attempts = 10");
    assert.match(String((await failure(second, { token: fresh, ...withUrl })).detail), /not good any more/);
    await call(program, "GET", "/health");
    assert.ok(!existsSync(join(program.home, "cluster.json")));
  });

  test("when its home is not empty, or what it is asked makes no sense", async () => {
    const program = programs.at(-1)!;
    const { token } = await added("d");
    for (const body of [
      {},
      { token },
      { token: "x", cluster_address: address },
      { token, cluster_address: address, database_url: databaseUrl },
      { token, cluster_address: "nowhere" },
      { token, database_url: "http://x/y" },
      { token, database_url: databaseUrl, address: "a b" },
    ])
      assertProblem(await refused(program, body), 422, "validation_failed");
    const closed = await failure(program, { token, cluster_address: "127.0.0.1:1" });
    assert.match(String(closed.detail), /cannot be reached/);
    const url = new URL(databaseUrl);
    url.pathname = "/nothing";
    const none = await failure(program, { token, database_url: url.href });
    assert.match(String(none.detail), /does not exist/);
    assert.ok(!JSON.stringify(none).includes(url.hostname));
    await inPostgres(databaseUrl, "UPDATE schema_admits SET oldest = '9999'");
    const newer = await failure(program, { token, database_url: databaseUrl });
    assert.match(String(newer.detail), /for Troupe 0\.1\.0 and newer/);
    await inPostgres(databaseUrl, "UPDATE schema_admits SET oldest = ''");
    await createJob(program, graph("n", [executor("n", ["true"])]));
    const full = assertProblem(await refused(program, { token, cluster_address: address }), 409, "conflict");
    assert.match(String(full.detail), /holds .*jobs.*troupe store copy/);
  });
});

test("a program that is killed while it joins is on its own or a node, and can ask again with its token", async () => {
  const { token } = await added("e");
  const body = { token, cluster_address: address };
  // Its answer is lost: the token is used, and the home has nothing of it.
  const first = await alone();
  const operation = await asked(first, body);
  await until("the token is used", async () =>
    inPostgres(
      databaseUrl,
      "DO $$ BEGIN ASSERT EXISTS (SELECT FROM expected_nodes WHERE joiner IS NOT NULL AND name = 'e'); END $$",
    ).then(
      () => true,
      () => false,
    ),
  );
  await first.kill();
  const second = await alone(first.home);
  const isNode = existsSync(join(first.home, "cluster.json"));
  const end = await operationEnded(second, operation);
  assert.deepEqual(
    [end.status, (end.error as JsonObject | null)?.code],
    isNode ? ["completed", undefined] : ["failed", "join_interrupted"],
  );
  const next = await asked(second, body);
  await until("the home is a node's", async () => existsSync(join(first.home, "cluster.json")));
  await second.kill();
  const third = await alone(first.home);
  assert.equal((await operationEnded(third, next)).status, "completed");
  await until("e is ready", async () => (await shown("e"))?.status === "ready");
});

test("a node with certificates lets in only who has one of them", {
  skip: !hasOpenssl() && "there is no openssl",
}, async () => {
  using authority = makeAuthority();
  const { cert, key, ca } = authority.files("IP:127.0.0.1");
  const env = { SVC_NODE_TLS_CERT: cert, SVC_NODE_TLS_KEY: key, SVC_NODE_TLS_CA: ca };
  await using own = await Nodes.start(["a"], { filesAreShared: false, env: () => env });
  const { items } = await call(own.of("a"), "GET", "/nodes");
  const { join_token: token } = await call(own.of("a"), "POST", "/system/cluster/nodes:add", { name: "b" });
  const body = { token, cluster_address: (items as JsonObject[])[0]!.address } as JsonObject;
  assert.match(String((await failure(await alone(), body)).detail), /cannot be reached.*SVC_NODE_TLS_CERT/);
  const program = await alone(undefined, env);
  assert.equal((await operationEnded(program, await asked(program, body))).status, "completed");
});
