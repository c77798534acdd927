// The files of `troupe node certificates`: real programs that have them believe each other, and nobody else; what is there stays.

import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { makeCertificates } from "../../src/security/node-certificates.ts";
import { startHere } from "../support/command-line.ts";
import { ask, assertProblem, call, createJob, ended, happens, startRun } from "../support/gateway-api.ts";
import { graph, sensor } from "../support/graphs.ts";
import { Nodes } from "../support/several-nodes.ts";
import { until } from "../support/until.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

const root = mkdtempSync(join(tmpdir(), "troupe certificates "));
after(() => rmSync(root, { recursive: true }));

async function certificates(folder: string, ...nodes: readonly string[]) {
  const args = ["node", "certificates", join(root, folder), ...nodes.flatMap((node) => ["--node", node])];
  return startHere(args, root).ended;
}

const read = (...path: readonly string[]) => readFileSync(join(root, ...path), "utf8");
const certificate = (...path: readonly string[]) => new X509Certificate(read(...path));

describe("the files", () => {
  test("are an authority and a certificate for each node, its key for the user alone; a node may be added later", async () => {
    const { code, out } = await certificates("set", "a=10.0.0.1,A.example.org", "b=fd00::1:2");
    assert.equal(code, 0, out);
    assert.match(out, /valid until 20/);
    assert.equal((await certificates("set", "c=c")).code, 0);
    const names = ["a.key", "a.pem", "b.key", "b.pem", "c.key", "c.pem", "ca.key", "ca.pem"];
    assert.deepEqual(readdirSync(join(root, "set")).sort(), names);
    const authority = certificate("set", "ca.pem");
    assert.ok(authority.ca);
    for (const [name, hosts] of [
      ["a", "IP Address:10.0.0.1, DNS:a.example.org"],
      ["b", "IP Address:FD00:0:0:0:0:0:1:2"],
      ["c", "DNS:c"],
    ] as const) {
      const node = certificate("set", `${name}.pem`);
      assert.ok(node.checkIssued(authority) && node.verify(authority.publicKey) && !node.ca);
      assert.equal(node.subjectAltName, hosts);
      assert.equal(node.subject, `CN=${name}`);
      const days = (node.validToDate.getTime() - Date.now()) / DAY_MS;
      assert.ok(days > 700 && days < 731 && node.validFromDate.getTime() < Date.now());
    }
    for (const name of names.filter((one) => one.endsWith(".key")))
      assert.equal(statSync(join(root, "set", name)).mode & 0o777, 0o600);
  });

  test("are never replaced, and a call that is refused makes none", async () => {
    await certificates("kept", "a=10.0.0.1");
    const before = readdirSync(join(root, "kept")).map((name) => read("kept", name));
    const again = await certificates("kept", "b=10.0.0.2", "a=10.0.0.1");
    assert.equal(again.code, 1);
    assert.match(
      again.err,
      /a\.key exists, and no file is replaced\. To renew .* move a\.pem and a\.key away/,
    );
    assert.deepEqual(
      readdirSync(join(root, "kept")).map((name) => read("kept", name)),
      before,
    );
    rmSync(join(root, "kept", "ca.key"));
    assert.match((await certificates("kept", "b=b")).err, /ca\.key is missing: put it back/);
    writeFileSync(join(root, "kept", "ca.key"), read("kept", "a.key"));
    assert.match((await certificates("kept", "b=b")).err, /cannot be used \(they do not belong together\)/);
    assert.equal((await certificates("kept/ca.pem", "b=b")).code, 1);
  });

  test("need a name that is a file's, each once, and hosts", async () => {
    for (const node of [
      "../a=h",
      "a/b=h",
      "ca=h",
      "CA=h",
      "=h",
      "a",
      "a=",
      "a=no host",
      "a=10.0.0.1:55052",
      "a=fe80::1%eth0",
    ]) {
      const { code, err } = await certificates("none", node);
      assert.equal(code, 2, `${node}: ${err}`);
      assert.match(err, /^troupe: --node/);
    }
    assert.equal((await certificates("none")).code, 2);
    assert.equal((await certificates("none", "a=h", "a=i")).code, 2);
    assert.ok(!readdirSync(root).includes("none"));
  });

  test("are valid no longer than their authority, which is not used when it has ended; doctor says when", async () => {
    const folder = join(root, "old");
    const authorityEndsMs = Date.now() + 20 * DAY_MS;
    await makeCertificates(folder, [], authorityEndsMs - 3_650 * DAY_MS);
    const { validUntil } = await makeCertificates(folder, [{ name: "a", hosts: ["127.0.0.1"] }], Date.now());
    assert.ok(Math.abs(validUntil.getTime() - authorityEndsMs) < 1_000);
    await assert.rejects(makeCertificates(folder, [{ name: "b", hosts: ["b"] }], authorityEndsMs + DAY_MS), {
      name: "CertificatesRefused",
      message: /it ended on/,
    });
    const files = (ca: string) => ({
      SVC_NODE_TLS_CERT: join(folder, "a.pem"),
      SVC_NODE_TLS_KEY: join(folder, "a.key"),
      SVC_NODE_TLS_CA: ca,
    });
    const doctor = async (ca: string) => {
      const { out } = await startHere(["doctor", "--json"], root, files(ca)).ended;
      const found = JSON.parse(out) as readonly { name: string; state: string; text: string }[];
      return found.filter(({ name }) => name === "node certificate");
    };
    const [own, ca] = await doctor(join(root, "set", "ca.pem"));
    assert.deepEqual([own?.state, ca?.state], ["warn", "ok"]);
    assert.match(own!.text, /a\.pem is valid until /);
    const [, noCertificate] = await doctor(join(folder, "a.key"));
    assert.equal(noCertificate?.state, "fail");
  });
});

test("programs with certificates of one authority reach each other, and one of another authority reaches none", async () => {
  await certificates("one", "a=127.0.0.1", "b=127.0.0.1");
  await certificates("other", "stranger=127.0.0.1");
  const env = (name: "a" | "b" | "stranger") => {
    const folder = join(root, name === "stranger" ? "other" : "one");
    return {
      SVC_NODE_TLS_CERT: join(folder, `${name}.pem`),
      SVC_NODE_TLS_KEY: join(folder, `${name}.key`),
      SVC_NODE_TLS_CA: join(folder, "ca.pem"),
    };
  };
  await using nodes = await Nodes.start(["a", "b", "stranger"], { filesAreShared: true, env });
  const [a, b, stranger] = [nodes.of("a"), nodes.of("b"), nodes.of("stranger")];
  const runId = await startRun(a, await createJob(a, graph("waits", [sensor("wait")])));
  await happens(a, runId, "agent_started");
  assertProblem(
    await ask(stranger, "PATCH", `/runs/${runId}`, { body: { desired_state: "cancelled" } }),
    503,
    "unavailable",
  );
  await until("a node's log tells of the stranger", () => /did not prove/.test(a.output()));
  await call(b, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  assert.equal((await ended(b, runId)).run.status, "cancelled");
});
