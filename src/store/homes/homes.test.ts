// Homes of nodes that share no store of files, over real sockets: what one node has, another one fetches, whole or not at all.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, test } from "node:test";
import { bundleFiles, makePlace, writeFiles } from "../../../test/support/bundles.ts";
import { anyString, fc } from "../../../test/support/fast-check.ts";
import { peersWith, startNode } from "../../../test/support/nodes.ts";
import { until } from "../../../test/support/until.ts";
import { type systemClock, systemRandomness } from "../../app/clock.ts";
import type { BlueprintAsset } from "../../blueprints/records.ts";
import { Resources } from "../../blueprints/resources.ts";
import { SharedAssets } from "../../blueprints/shared-assets.ts";
import { Bundles } from "../../bundles/bundles.ts";
import { type ByteSource, BytesRefused, type FoundBytes } from "../../cluster/bytes.ts";
import { NodeBytes } from "../../cluster/node-bytes.ts";
import type { NodeRecord, NodeStatus } from "../../cluster/nodes.ts";
import { preparedFolders } from "../../execution/runner/paths.ts";
import { SharedRuns } from "../../launch/preparation/shared-runs.ts";
import { folderName } from "../../lib/paths.ts";
import { ModelFiles } from "../../models/model-files.ts";
import { FileBlobs } from "../blobs.ts";
import { FetchedBlobs } from "./fetched-blobs.ts";
import { FetchedFolders } from "./fetched-folders.ts";
import { HomeBytes, wayOf } from "./home-bytes.ts";

const RECIPE = "a1".repeat(32);
const VERSION = RECIPE.slice(0, 16);
const sha256Of = (content: string | Uint8Array) => createHash("sha256").update(content).digest("hex");
const unavailable = { name: "BytesUnavailable" };

let place: string;
let stops: (() => Promise<void>)[];
let rows: NodeRecord[];
beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), "troupe-homes-"));
  stops = [];
  rows = [];
});
afterEach(async () => {
  for (const stop of stops) await stop();
  await rm(place, { recursive: true, force: true });
});

type Node = Awaited<ReturnType<typeof start>>;

function rowOf(name: string, address: string, status: NodeStatus = "ready"): NodeRecord {
  const said = {
    version: "1",
    labels: {},
    pools: {},
    totals: {},
    reserved: {},
    resources: null,
    jobsOwned: 0,
    tasksRunning: 0,
    connectedNodes: [],
    servicesOwned: 0,
    jobsMoved: 0,
    drainUntilMs: null,
    maintenanceReason: null,
  };
  const times = { startedAtMs: 0, heartbeatAtMs: 0, leaseUntilMs: 0, leaseLeftMs: 0 };
  return { nodeId: name, owner: `${name}/1`, name, address, status, ...said, ...times };
}

/** A node with a home of its own, in this process, asked through its port. */
async function start(name: string) {
  const home = join(place, name);
  await mkdir(home, { recursive: true });
  const local = new FileBlobs(join(home, "blobs"));
  const here = new HomeBytes(home, local);
  /** What this node was asked for, and gives instead of what it has. */
  const served = { asked: [] as string[], instead: async (found: FoundBytes | null) => found };
  const bytes: ByteSource = {
    async open(asked) {
      served.asked.push(`${asked.kind}/${asked.key}`);
      return served.instead(await here.open(asked));
    },
    list: (kind, below) => here.list(kind, below),
  };
  const server = await startNode({ parts: { bytes } });
  const timers: (() => void)[] = [];
  const after: typeof systemClock.after = (_ms, then) => {
    timers.push(then);
    return () => void timers.splice(timers.indexOf(then), 1);
  };
  const peers = peersWith();
  const warnings: object[] = [];
  const log = { warn: (fields: object) => void warnings.push(fields), error: () => {} };
  const parts = { peers, nodes: { livingFirst: async () => rows }, owner: () => `${name}/1`, log };
  const elsewhere = new NodeBytes({ ...parts, clock: { after } });
  const blobs = new FetchedBlobs(local, () => elsewhere);
  const folders = new FetchedFolders({ home, here, elsewhere: () => elsewhere, newId: systemRandomness.id });
  rows.push(rowOf(name, server.address));
  const node = {
    name,
    home,
    here,
    local,
    blobs,
    folders,
    elsewhere,
    peers,
    warnings,
    served,
    address: server.address,
    /** Lets the time pass that a silent node is waited for. */
    loseSilent() {
      for (const then of timers.splice(0)) then();
    },
    waiting: () => timers.length,
    async put(content: string | Uint8Array) {
      const file = join(place, systemRandomness.id());
      await writeFile(file, content);
      return blobs.put(file);
    },
    async read(blob: { sha256: string; size: number }, first = 0, last = blob.size - 1) {
      const bytes = await blobs.read(blob, first, last);
      return bytes === null ? null : (await buffer(bytes)).toString();
    },
    /** What is left of fetches that did not come to their end. */
    async halves() {
      const folders = [join(home, "tmp"), join(home, "blobs/incoming")];
      return (await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])))).flat();
    },
    async stop(status: NodeStatus | "unnoticed" = "lost") {
      peers.close();
      await server.close();
      if (status !== "unnoticed") rows = rows.map((row) => (row.name === name ? { ...row, status } : row));
    },
  };
  stops.push(node.stop);
  return node;
}

/** Some bytes of a source, and then what `end` does. */
function cut({ madeAtMs, bytes }: FoundBytes, end: () => Promise<void>): FoundBytes {
  async function* some() {
    for await (const chunk of bytes) {
      yield chunk.subarray(0, Math.ceil(chunk.length / 2));
      break;
    }
    await end();
  }
  return { madeAtMs, bytes: some() };
}

async function* once<One>(one: One): AsyncGenerator<One> {
  yield one;
}

describe("a blob that another node has", () => {
  const content = "made by a worker ".repeat(50_000);

  test("is read whole and in parts, and fetched once, however many read it", async () => {
    const [a, b] = [await start("a"), await start("b")];
    const blob = await a.put(content);
    const reads = await Promise.all([b.read(blob), b.read(blob, 5, 6), b.read(blob)]);
    assert.deepEqual(reads, [content, "by", content]);
    assert.deepEqual([a.served.asked, b.served.asked], [[`blobs/${blob.sha256}`], []]);
    await a.stop();
    assert.equal(await b.read(blob), content);
    assert.deepEqual(await b.halves(), []);
  });

  test("may be empty", async () => {
    const [a, b] = [await start("a"), await start("b")];
    const blob = await a.put("");
    (await b.blobs.read(blob, 0, 0))?.destroy();
    assert.equal((await b.local.open(blob.sha256))?.size, 0);
  });

  test("is fetched from the next node when the first one dies in the middle", async () => {
    const [a, c, b] = [await start("a"), await start("c"), await start("b")];
    const blob = await a.put(content);
    await c.put(content);
    a.served.instead = async (found) => cut(found!, () => a.stop("unnoticed"));
    assert.equal(await b.read(blob), content);
    assert.deepEqual([a.served.asked.length, c.served.asked.length], [1, 1]);
    assert.deepEqual(await b.halves(), []);
  });

  test("is unavailable while only a node that dies, or cannot be reached, has it; nothing half is left, and later it is there", async () => {
    const [a, b] = [await start("a"), await start("b")];
    const blob = await a.put(content);
    a.served.instead = async (found) =>
      cut(found!, async () => {
        throw new Error("the disk is broken");
      });
    await assert.rejects(b.read(blob), unavailable);
    assert.equal(await b.local.open(blob.sha256), null);
    assert.deepEqual(await b.halves(), []);
    const { address } = a;
    rows = rows.map((row) => (row.name === "a" ? { ...row, address: "127.0.0.1:1" } : row));
    await assert.rejects(b.read(blob), unavailable);
    rows = rows.map((row) => (row.name === "a" ? { ...row, address } : row));
    a.served.instead = async (found) => found;
    assert.equal(await b.read(blob), content);
  });

  test("is not waited for where nothing comes", async () => {
    const [a, c, b] = [await start("a"), await start("c"), await start("b")];
    const blob = await a.put(content);
    await c.put(content);
    const hangs = Promise.withResolvers<void>();
    a.served.instead = async (found) => cut(found!, () => hangs.promise);
    const reading = b.read(blob);
    await until("the first half has come", async () => (await b.halves()).length > 0 && b.waiting() > 0);
    b.loseSilent();
    await until("the next node is asked", () => c.served.asked.length > 0);
    assert.equal(await reading, content);
    hangs.resolve();
  });

  test("is kept only with the bytes of its hash", async () => {
    const [a, b] = [await start("a"), await start("b")];
    const blob = await a.put(content);
    const others = [content.replace("m", "M"), `${content}more`, content.slice(1), ""];
    for (const other of others) {
      a.served.instead = async () => ({ madeAtMs: 0, bytes: once(Buffer.from(other)) });
      await assert.rejects(b.read(blob), unavailable);
      assert.equal(await b.local.open(blob.sha256), null);
      assert.equal(await b.local.open(sha256Of(other)), null);
    }
    let given = 0;
    async function* many() {
      while (++given < 50) yield Buffer.from(content);
    }
    a.served.instead = async () => ({ madeAtMs: 0, bytes: many() });
    await assert.rejects(b.read(blob), unavailable);
    assert.ok(given < 50, "all that a node may send was taken");
    assert.deepEqual(await b.halves(), []);
    const c = await start("c");
    await c.put(content);
    assert.equal(await b.read(blob), content);
  });

  test("is gone when no node has it, said to be lost when it went with its node, and neither is remembered", async () => {
    const [a, b] = [await start("a"), await start("b")];
    const blob = { sha256: sha256Of(content), size: content.length };
    assert.equal(await b.read(blob), null);
    assert.deepEqual([a.served.asked.length, b.served.asked.length], [1, 0]);
    rows.push(rowOf("gone-node", "127.0.0.1:1", "lost"));
    await assert.rejects(b.read(blob), { ...unavailable, message: /gone-node.*SVC_BLOB_URL/ });
    await a.put(content);
    assert.equal(await b.read(blob), content);
  });

  test("is asked for first at the node that gave something last", async () => {
    const [a, c, b] = [await start("a"), await start("c"), await start("b")];
    const [first, second] = [await c.put("one"), await c.put("two")];
    await b.read(first);
    await b.read(second);
    assert.deepEqual([a.served.asked.length, c.served.asked.length], [1, 2]);
  });

  test("is read there no faster than it is taken here, and no further when its taker leaves", async () => {
    const [a, b] = [await start("a"), await start("b")];
    const chunk = Buffer.alloc(256 * 1024);
    const chunksMax = 400;
    let given = 0;
    let isOver = false;
    async function* many() {
      try {
        while (given < chunksMax) {
          given++;
          yield chunk;
        }
      } finally {
        isOver = true;
      }
    }
    a.served.instead = async () => ({ madeAtMs: 0, bytes: many() });
    const leaving = new Error("the disk is full");
    const fetching = b.elsewhere.fetch({ kind: "blobs", key: "0".repeat(64) }, async ({ bytes }) => {
      for await (const _ of bytes) {
        // As many round trips on the same connection as would carry all the chunks.
        for (let trips = 0; trips < chunksMax; trips++)
          await b.peers.call(a.address, (peer) => peer.status({}));
        assert.ok(given < chunksMax / 4, `${given} chunks were read for a taker of one`);
        throw leaving;
      }
    });
    await assert.rejects(fetching, leaving);
    await until("the source is closed", () => isOver);
  });
});

describe("folders that another node has", () => {
  test("are bundles: what one node has taken in, another one launches, with the same files", async () => {
    const [a, b] = [await start("a"), await start("b")];
    await using one = await makePlace({ shared: () => a.folders });
    const bundlesOf = ({ home, folders }: Node) =>
      Bundles.open({
        home,
        records: one.records,
        shared: folders,
        bundleBytesMax: 64 * 1024,
        bundlesBytesMax: 0,
        nowMs: Date.now,
      });
    const [there, here] = [await bundlesOf(a), await bundlesOf(b)];
    const path = await writeFiles(join(one.folder, "src"), bundleFiles(), 0o755);
    const { fingerprint } = await there.registerFolder({ path, bundleId: "b" });
    const launches = await Promise.all([here.launch("b", {}), here.snapshots.ensure(fingerprint)]);
    assert.equal(launches[0]?.fingerprint, fingerprint);
    const file = "worker/run.py";
    assert.equal(
      await readFile(join(here.snapshots.payloads(fingerprint), file), "utf8"),
      await readFile(join(there.snapshots.payloads(fingerprint), file), "utf8"),
    );
    assert.deepEqual(a.served.asked, [`bundles/${fingerprint}`]);
    await here.snapshots.shareAll((error) => assert.fail(String(error)));
    assert.deepEqual(await b.halves(), []);
  });

  test("are bundles that are refused when they have another content than their name says", async () => {
    const [a, b] = [await start("a"), await start("b")];
    await using one = await makePlace({ shared: () => b.folders });
    const fingerprint = "0".repeat(64);
    await writeFiles(join(a.home, "bundles", fingerprint), bundleFiles());
    await assert.rejects(one.bundles.snapshots.ensure(fingerprint), /is another one/);
    assert.deepEqual(await readdir(one.bundles.snapshots.root), ["incoming"]);
    assert.deepEqual(await b.halves(), []);
  });

  test("are bundles that went with their node, which is said", async () => {
    const b = await start("b");
    rows.push(rowOf("gone-node", "127.0.0.1:1", "lost"));
    await using one = await makePlace({ shared: () => b.folders });
    await assert.rejects(one.bundles.snapshots.ensure("0".repeat(64)), {
      ...unavailable,
      message: /gone-node/,
    });
  });

  test("are what was prepared for a run, with what it links to", async () => {
    const [a, b] = [await start("a"), await start("b")];
    const weights = "the weights";
    const target = { resources: `resources/bp/index~${VERSION}`, models: `models/m/${sha256Of(weights)}` };
    await writeFiles(a.home, { [`${target.resources}/rows`]: "indexed", [target.models]: weights });
    const run = preparedFolders(a.home, "run_1");
    await writeFiles(run.payload, { data: "rows" });
    for (const folder of ["resources", "models"] as const) {
      await mkdir(run[folder]);
      await symlink(join(a.home, target[folder]), join(run[folder], "named"));
    }
    const runs = new SharedRuns(b.home, b.folders);
    await Promise.all([runs.ensure("run_1"), runs.ensure("run_1")]);
    assert.deepEqual(
      a.served.asked.toSorted(),
      ["models/", "resources/", "runs/run_1"].map((begin) =>
        a.served.asked.find((asked) => asked.startsWith(begin)),
      ),
    );
    await a.stop();
    const fetched = preparedFolders(b.home, "run_1");
    assert.equal(await readFile(join(fetched.payload, "data"), "utf8"), "rows");
    assert.equal(await readFile(join(fetched.resources, "named/rows"), "utf8"), "indexed");
    assert.equal(await readFile(join(fetched.models, "named"), "utf8"), weights);
    assert.deepEqual(await b.halves(), []);
  });

  test("are closed there when their taker leaves in the middle", {
    skip: !existsSync("/proc/self/fd") && "the system does not show which files are open",
  }, async () => {
    const [a, b] = [await start("a"), await start("b")];
    const { payload } = preparedFolders(a.home, "run_1");
    await writeFiles(payload, { large: "x".repeat(20_000_000) });
    const openFiles = async () => {
      const targets = (await readdir("/proc/self/fd")).map((fd) =>
        readlink(`/proc/self/fd/${fd}`).catch(() => ""),
      );
      return (await Promise.all(targets)).filter((target) => target.startsWith(dirname(payload)));
    };
    const leaving = new Error("the disk is full");
    const fetching = b.elsewhere.fetch({ kind: "runs", key: "run_1" }, async ({ bytes }) => {
      for await (const _ of bytes) {
        assert.deepEqual(await openFiles(), [join(payload, "large")]);
        throw leaving;
      }
    });
    await assert.rejects(fetching, leaving);
    await until("its files are closed", async () => (await openFiles()).length === 0);
  });

  describe("are made for a blueprint", () => {
    const weights = "the weights";
    const sha256 = sha256Of(weights);
    const common = { blueprintId: "bp", ready: true, bytes: 1, createdAtMs: 0 };
    const assets: BlueprintAsset[] = [
      { ...common, kind: "resource", assetId: "index", recipe: RECIPE },
      { ...common, kind: "model", assetId: "org/Model", recipe: sha256 },
    ];
    function assetsOn({ home, folders }: Node) {
      const resources = new Resources({ home, runCommand: async () => assert.fail("nothing is made here") });
      const records = {
        assets: async () => assets,
        allPrepared: async () => [{ blueprintId: "bp" } as never],
        openRunsOf: async () => 0,
      };
      const models = { allInstallations: async () => [] };
      return { resources, shared: new SharedAssets({ home, shared: folders, records, models, resources }) };
    }
    /** Each is a second younger than the one before. */
    let madeAt = 0;
    async function make(node: Node, version: string, text: string): Promise<void> {
      const folder = join(node.home, `resources/bp/index~${version}`);
      await writeFiles(folder, { rows: text });
      await utimes(folder, ++madeAt, madeAt);
      await assetsOn(node).resources.show("bp", "index", version);
    }
    async function rowsOn(node: Node): Promise<string> {
      const { resources, shared } = assetsOn(node);
      await shared.ensureResources("bp");
      const folder = (await resources.folders("bp")).get("index");
      return folder === undefined ? "none" : readFile(join(folder, "rows"), "utf8");
    }

    test("and each resource is found in its newest version, whichever node made or fetched it", async () => {
      const [a, b, c] = [await start("a"), await start("b"), await start("c")];
      assert.equal(await rowsOn(b), "none");
      await make(a, VERSION, "first");
      await make(b, `${VERSION}-forced`, "again");
      // It fetches the older one last.
      const old = `resources/bp/index~${VERSION}`;
      await c.folders.fetch(old, join(c.home, old));
      await assetsOn(c).resources.show("bp", "index", VERSION);
      for (const node of [b, a, c]) assert.equal(await rowsOn(node), "again");
      await make(b, `${VERSION}-broken.part`, "half");
      assert.equal(await rowsOn(a), "again");
    });

    test("and a model is kept only with the content of its hash", async () => {
      const [a, c, b] = [await start("a"), await start("c"), await start("b")];
      const path = join("models", folderName("org/Model"), sha256);
      await writeFiles(a.home, { [path]: "others" });
      const { shared } = assetsOn(b);
      const models = new ModelFiles(b.home);
      await assert.rejects(shared.ensureModel("org/Model", sha256), unavailable);
      assert.equal(await models.file("org/Model", sha256), null);
      await writeFiles(c.home, { [path]: weights });
      await chmod(join(c.home, path), 0o400);
      await shared.ensureModel("org/Model", sha256);
      assert.equal(await readFile((await models.file("org/Model", sha256)) ?? "", "utf8"), weights);
    });

    test("and are made again where they went with their node", async () => {
      const b = await start("b");
      rows.push(rowOf("gone-node", "127.0.0.1:1", "lost"));
      await assetsOn(b).shared.ensureModel("org/Model", sha256);
      assert.equal(await rowsOn(b), "none");
    });

    test("and are not taken for missing while a node that may have them cannot be asked", async () => {
      const [a, b] = [await start("a"), await start("b")];
      await a.stop("unnoticed");
      await assert.rejects(rowsOn(b), unavailable);
      await assert.rejects(assetsOn(b).shared.ensureModel("org/Model", sha256), unavailable);
    });

    test("and one that is here does while a node that may have a newer version cannot be asked", async () => {
      const [a, b] = [await start("a"), await start("b")];
      await make(b, VERSION, "first");
      await a.stop("unnoticed");
      assert.equal(await rowsOn(b), "first");
    });
  });
});

describe("a node gives nothing but what its home has for others", () => {
  const SECRET = "not for others";

  /** A home with what must stay in it. */
  async function guarded(): Promise<Node> {
    const node = await start("a");
    await writeFiles(node.home, {
      "secret.key": SECRET,
      "runs/run_1/shared/file": SECRET,
      "bundles/incoming/1/file": SECRET,
      "resources/bp/index~link/file": SECRET,
    });
    await symlink(join(node.home, "runs/run_1"), join(node.home, "runs/linked"));
    await mkdir(join(node.home, "runs/run_2"));
    await symlink(node.home, join(node.home, "runs/run_2/prepared"));
    await mkdir(join(node.home, "models/m"), { recursive: true });
    await symlink(join(node.home, "secret.key"), join(node.home, "models/m", "0".repeat(64)));
    return node;
  }

  const TRICKS = [
    "",
    ".",
    "..",
    "../secret.key",
    "../../etc/passwd",
    "/etc/passwd",
    "run_1/../run_1",
    "run_1/shared",
    "run_1\0",
    "run_1\n",
    "linked",
    "run_2",
    "incoming",
    "incoming/1",
    `${"0".repeat(64)}/`,
    "0".repeat(63),
    "A".repeat(64),
    `m/${"0".repeat(64)}`,
    `m/../m/${"0".repeat(64)}`,
    "bp/index~link",
    `bp/index~${VERSION}.part`,
    `bp/../index~${VERSION}`,
    "%2e%2e/secret.key",
  ];

  test("whatever key is asked for", async () => {
    const { here } = await guarded();
    for (const kind of ["blobs", "bundles", "runs", "resources", "models"])
      for (const key of TRICKS) assert.equal(await here.open({ kind, key }), null, `${kind} ${key}`);
  });

  test("whatever a key is made of", () =>
    fc.assert(
      fc.property(
        fc.constantFrom("blobs", "bundles", "runs", "resources", "models"),
        fc.oneof(
          anyString({ maxLength: 80 }),
          fc.stringMatching(/^[a-z0-9~./_-]{0,60}$/),
          fc
            .array(fc.constantFrom("..", ".", "/", "a", "~", "0".repeat(24), VERSION, "-", "\0", "\\"))
            .map((all) => all.join("")),
        ),
        (kind, key) => {
          const way = wayOf({ kind, key });
          if (way === null) return;
          assert.ok(way.startsWith(`${kind}/`), way);
          assert.ok(
            way.split("/").every((part) => /^[^.\0\\][^\0\\]*$/.test(part)),
            way,
          );
        },
      ),
    ));

  test("of no other kind, and lists nothing else", async () => {
    const { here, address } = await guarded();
    using peers = peersWith();
    for (const kind of ["", "secret.key", "..", "tmp", "blobs/..", "constructor", "__proto__"]) {
      await assert.rejects(here.open({ kind, key: "0".repeat(64) }), BytesRefused);
      await assert.rejects(here.list(kind, "bp"), BytesRefused);
      const stream = peers.stream(address, new AbortController().signal, (peer, options) =>
        peer.fetchBytes({ kind, key: "" }, options),
      );
      await assert.rejects(stream.next(), /no such kind/);
      const listing = peers.call(address, (peer) => peer.listBytes({ kind, below: "bp" }));
      await assert.rejects(listing, { name: "PeerUnreachable", mayHaveArrived: false });
    }
    for (const below of TRICKS) assert.deepEqual(await here.list("resources", below), []);
  });

  test("and no file into which a link of a listed resource leads", async () => {
    const { here, home } = await guarded();
    await symlink("../../secret.key", join(home, "resources/bp/index"));
    await symlink(`index~${VERSION}`, join(home, "resources/bp/other"));
    assert.deepEqual(await here.list("resources", "bp"), []);
    await symlink(dirname(home), join(home, `resources/bp/index~${VERSION}`));
    assert.equal(await here.open({ kind: "resources", key: `bp/index~${VERSION}` }), null);
  });

  test("nothing at all where it has nothing to give", async () => {
    await using bare = await startNode();
    using peers = peersWith();
    const stream = peers.stream(bare.address, new AbortController().signal, (peer, options) =>
      peer.fetchBytes({ kind: "blobs", key: "0".repeat(64) }, options),
    );
    await assert.rejects(stream.next(), /not here/);
  });
});
