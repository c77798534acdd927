// The dashboard's server as a process: who is let in, what it serves, and how it relays a run's events. The gateway that
// it reads is a small server of this test, so that connections break just when they are to.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { appendFile, cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { closed, freePorts, listenAt } from "../../../test/support/ports.ts";
import served from "./served.json" with { type: "json" };

const SERVER = join(import.meta.dirname, "server.mjs");
const RUN = "run_01k9z1v7m3e8q2x4c6t8b0n5dh";

interface Dashboard {
  readonly url: string;
  readonly process: ChildProcess;
}

const started: ChildProcess[] = [];
let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe dashboard "));
});
after(async () => {
  for (const child of started) child.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

/** Starts the server and waits until it says where it is. @param onStderr sees what it complains of */
async function start(
  env: Record<string, string>,
  cwd = folder,
  script = SERVER,
  onStderr: (text: string) => void = (text) => process.stderr.write(text),
): Promise<Dashboard> {
  const child = spawn(process.execPath, [script], { cwd, env, stdio: "pipe" });
  started.push(child);
  child.stderr.on("data", (chunk: Buffer) => onStderr(String(chunk)));
  for await (const text of child.stdout.iterator({ destroyOnReturn: false })) {
    const url = /http:\S+/.exec(String(text))?.[0];
    if (url !== undefined) return { url, process: child };
  }
  throw new Error("the dashboard has ended");
}

const line = (id: number, type = "log", payload: unknown = { message: `line ${id}` }) =>
  JSON.stringify({ id, run_id: RUN, timestamp: "2026-11-21T09:30:00.000Z", type, agent_id: "a", payload });

const idsIn = (text: string) => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
const upTo = (count: number, from = 1) => Array.from({ length: count - from + 1 }, (_, i) => from + i);

/** A request whose Host and path are sent just as they are. */
async function raw(url: string, path: string, headers: Record<string, string> = {}, method = "GET") {
  const { hostname, port } = new URL(url);
  const asked = request({ hostname, port, path, method, headers });
  asked.end();
  const [answer] = await once(asked, "response");
  return { status: answer.statusCode, headers: answer.headers, text: await textOf(answer) };
}

// ------------------------------------------------------------------------------------------- saved runs

describe("beside a saved run", () => {
  async function saved(name: string, lines: readonly string[]): Promise<string> {
    const home = join(folder, name);
    await mkdir(home);
    await writeFile(join(home, "events.jsonl"), lines.map((one) => `${one}\n`).join(""));
    return home;
  }

  test("the page is served with its parts and its policy, and no other file is", async () => {
    const { url } = await start({}, await saved("page", [line(1, "job_completed")]));
    const page = await fetch(url);
    assert.equal(page.headers.get("content-security-policy"), served.pagePolicy);
    const html = await page.text();
    assert.doesNotMatch(html, /https?:|style=|<script>|\son[a-z]+=/);
    for (const [, name = ""] of html.matchAll(/="\.\/([^"]+)"/g)) {
      const part = await fetch(url + name);
      assert.equal(part.status, 200, name);
      for (const [, other = ""] of (await part.text()).matchAll(/ from "\.\/([^"]+)"/g))
        assert.equal((await fetch(url + other)).status, 200, other);
    }
    for (const path of [
      "server.mjs",
      "model.test.ts",
      "..%2fdashboard%2fserver.mjs",
      "events.jsonl",
      "%00",
      "%ff",
    ]) {
      assert.match(String((await fetch(url + path)).status), /40[04]/, path);
    }
    assert.equal((await fetch(url, { method: "POST" })).status, 405);
  });

  test("the events are told from the file, as it grows, until the last one; then there are no more", async () => {
    const home = await saved("growing", [line(1), line(2)]);
    const { url } = await start({}, home);
    const answer = await fetch(`${url}events`, { headers: { "last-event-id": "1" } });
    const reading = answer.text();
    await appendFile(join(home, "events.jsonl"), `${line(3).slice(0, 20)}`);
    await appendFile(join(home, "events.jsonl"), `${line(3).slice(20)}\n${line(4, "job_completed")}\n`);
    assert.deepEqual(idsIn(await reading), [2, 3, 4]);
    assert.equal((await fetch(`${url}events`, { headers: { "last-event-id": "4" } })).status, 204);
  });

  test("a history in parts is one, and lines that are no events are passed over", async () => {
    const home = await saved("parts", ["no json", line(3), "{}", line(4, "job_failed")]);
    await writeFile(join(home, "events.001.jsonl"), `${line(1)}\n${line(2)}\n`);
    const { url } = await start({}, home);
    assert.deepEqual(idsIn(await (await fetch(`${url}events`)).text()), [1, 2, 3, 4]);
  });

  test("of more events than are kept a browser still gets all, from the first", async () => {
    const lines = [...upTo(24_999).map((id) => line(id)), line(25_000, "job_completed")];
    const { url } = await start({}, await saved("long", lines));
    await (await fetch(`${url}events`, { headers: { "last-event-id": "24000" } })).text();
    const [whole, end] = await Promise.all(
      ["0", "24990"].map(async (id) =>
        (await fetch(`${url}events`, { headers: { "last-event-id": id } })).text(),
      ),
    );
    assert.deepEqual(idsIn(whole ?? ""), upTo(25_000));
    assert.deepEqual(idsIn(end ?? ""), upTo(25_000, 24_991));
  });

  test("the files in artifacts.json are the outputs; none leads out of the folder", async () => {
    const home = await saved("files", [line(1, "job_completed")]);
    await mkdir(join(home, "out"));
    await writeFile(join(home, "out/report.html"), "<p>x</p>");
    await symlink("/etc/hostname", join(home, "out/link.txt"));
    const names = ["out/report.html", "out/link.txt", "../../etc/hostname", "gone.txt"];
    const artifacts = names.map((name, i) => ({
      artifact_id: `art_${i}`,
      name,
      size: 8,
      content_type: "text/html",
    }));
    await writeFile(join(home, "artifacts.json"), JSON.stringify(artifacts));
    const { url } = await start({}, home);
    const { items } = (await (await fetch(`${url}outputs`)).json()) as { items: readonly { url: string }[] };
    const answers = await Promise.all(items.map((item) => fetch(url + item.url)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 404, 404, 404],
    );
    assert.match(answers[0]?.headers.get("content-disposition") ?? "", /^attachment/);
    assert.equal(await answers[0]?.text(), "<p>x</p>");
    const preview = await fetch(`${url}preview/art_0`);
    assert.match(preview.headers.get("content-security-policy") ?? "", /default-src 'none'.*sandbox/);
    assert.equal(preview.headers.get("content-disposition"), null);
  });
});

test("of a long run that continues, any number of browsers read the whole history, and then follow it", async () => {
  const home = join(folder, "long and growing");
  await mkdir(home);
  const count = 23_000;
  const lines = upTo(count).map((id) => line(id));
  await writeFile(join(home, "events.jsonl"), `${lines.join("\n")}\n`);
  const complaints = join(home, "complaints.txt");
  const { url } = await start({ NODE_OPTIONS: `--redirect-warnings="${complaints}"` }, home);
  const open: AsyncIterator<string>[] = [];
  // More than may read by themselves at one time.
  for (let i = 0; i < 25; i++) {
    const answer = await fetch(`${url}events`);
    assert.equal(answer.status, 200, `browser ${i}`);
    const texts = answer.body?.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]() ?? assert.fail();
    let seen = "";
    let ids = 0;
    while (!seen.includes(`\nid: ${count}\n`)) {
      const { value } = await texts.next();
      ids += (value?.match(/^id: /gm) ?? []).length;
      seen = seen.slice(-200) + value;
    }
    assert.ok(ids >= count - 100 && ids <= count, `browser ${i} was told ${ids}`);
    open.push(texts);
  }
  await appendFile(join(home, "events.jsonl"), `${line(count + 1, "job_completed")}\n`);
  for (const texts of open) {
    let rest = "";
    for (let next = await texts.next(); !next.done; next = await texts.next()) rest += next.value;
    assert.match(rest, new RegExp(`id: ${count + 1}\n[^]*event: final`));
  }
  assert.equal(existsSync(complaints), false, "such as of listeners that pile up");
});

describe("beside a run that was saved with its outputs", () => {
  async function savedRun(name: string): Promise<string> {
    const home = join(folder, name);
    await mkdir(join(home, "evidence"), { recursive: true });
    await mkdir(join(home, "charts"));
    const event = `${line(1, "job_completed")}\n`;
    for (const part of ["events.001.jsonl", "events.jsonl", "logs.jsonl", "timeline.json"]) {
      await writeFile(join(home, "evidence", part), event);
    }
    await writeFile(join(home, "evidence/run.json"), JSON.stringify({ run_id: RUN, status: "completed" }));
    await writeFile(join(home, "charts/one.svg"), "<svg/>");
    await writeFile(join(home, "events.jsonl.txt"), "an output");
    await writeFile(join(home, "final_artifact.html"), "<p>x</p>");
    await writeFile(join(home, ".secret"), "no");
    await symlink("/etc/hostname", join(home, "link.txt"));
    await symlink("/etc", join(home, "etc"));
    return home;
  }

  interface Listed {
    readonly name: string;
    readonly size: number;
    readonly content_type: string;
    readonly primary: boolean;
    readonly url: string;
  }

  async function outputsOf(url: string): Promise<readonly Listed[]> {
    return ((await (await fetch(`${url}outputs`)).json()) as { items: readonly Listed[] }).items;
  }

  test("the outputs are the files that lie there: no history, nothing hidden, and no symlink", async () => {
    const home = await savedRun("whole");
    const { url } = await start({}, home);
    const items = await outputsOf(url);
    assert.deepEqual(
      items.map(({ name, size, content_type: type, primary }) => [name, size, type, primary]),
      [
        ["charts/one.svg", 6, "image/svg+xml", false],
        ["events.jsonl.txt", 9, "text/plain; charset=utf-8", false],
        ["final_artifact.html", 8, "text/html; charset=utf-8", true],
      ],
    );
    assert.equal(await (await fetch(url + items[0]?.url)).text(), "<svg/>");
    assert.deepEqual(idsIn(await (await fetch(`${url}events`)).text()), [1]);
    const config = (await (await fetch(`${url}config.json`)).json()) as Record<string, unknown>;
    assert.deepEqual([config.run_id, config.console], [RUN, null]);
  });

  test("in the folder of the history they are what lies beside it", async () => {
    const home = join(await savedRun("history"), "evidence");
    await writeFile(join(home, "report.md"), "# mine");
    const { url } = await start({}, home);
    assert.deepEqual(
      (await outputsOf(url)).map(({ name }) => name),
      ["report.md"],
    );
  });

  test("a folder without a history is no saved run: nothing of it is shown", async () => {
    const home = join(folder, "no run");
    await mkdir(home);
    await writeFile(join(home, "diary.txt"), "private");
    const { url } = await start({}, home);
    assert.deepEqual(await outputsOf(url), []);
  });

  test("a worker that has only its run's folder lists nothing of that", async () => {
    const home = await savedRun("own");
    const { url } = await start({ SVC_RUN_DIR: join(home, "evidence") });
    assert.deepEqual(await outputsOf(url), []);
    assert.deepEqual(idsIn(await (await fetch(`${url}events`)).text()), [1]);
  });

  test("of very many files a thousand are listed", async () => {
    const home = await savedRun("many");
    await Promise.all(upTo(1_100).map((i) => writeFile(join(home, `charts/${i}.txt`), "")));
    const { url } = await start({}, home);
    assert.equal((await outputsOf(url)).length, 1_000);
  });

  test("pipes and hostile lists neither block nor break the server", async () => {
    const home = await savedRun("hostile");
    await Promise.all(upTo(8).map((i) => once(spawn("mkfifo", [join(home, `pipe${i}`)]), "exit")));
    const files = upTo(8).map((i) => ({ artifact_id: `p${i}`, name: `../pipe${i}` }));
    const inside = upTo(8).map((i) => ({ artifact_id: `q${i}`, name: `fifo${i}` }));
    await Promise.all(upTo(8).map((i) => once(spawn("mkfifo", [join(home, `evidence/fifo${i}`)]), "exit")));
    const odd = { artifact_id: "odd", name: "timeline.json", content_type: "text/html\r\nset-cookie: a=b" };
    const lists = [null, 7, { artifact_id: "\ud800", name: "a" }, odd, ...files, ...inside];
    await writeFile(join(home, "evidence/artifacts.json"), JSON.stringify(lists));
    const { url } = await start({}, home);
    assert.equal((await outputsOf(url)).length, 17);
    const asked = [...files, ...inside].map(({ artifact_id: id }) => fetch(`${url}files/${id}`));
    for (const answer of await Promise.all(asked)) assert.equal(answer.status, 404);
    const answer = await fetch(`${url}files/odd`);
    assert.equal(answer.headers.get("content-type"), "application/json; charset=utf-8");
    assert.equal(answer.headers.get("set-cookie"), null);
    await answer.text();
  });
});

// ------------------------------------------------------------------------------------------- a live run

/** A gateway that tells what the test says. */
interface Upstream extends Disposable {
  readonly url: string;
  readonly server: Server;
  /** Last-Event-ID and Authorization of every request for the stream. */
  readonly asked: (readonly [lastId: string, authorization: string])[];
  /** The stream that is open now. */
  stream: ServerResponse | null;
  events: string[];
  send(from: number, to: number): void;
}

async function startUpstream(): Promise<Upstream> {
  const server = createServer((asked, response) => {
    if (asked.url?.endsWith("/events/stream")) {
      const lastId = asked.headers["last-event-id"] ?? "";
      upstream.asked.push([String(lastId), asked.headers.authorization ?? ""]);
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      upstream.stream = response;
      server.emit("asked");
    } else if (asked.url?.includes("/artifacts/")) {
      response.writeHead(206, {
        "content-range": `${asked.headers.range} of it`,
        "content-type": "text/html",
      });
      response.end("part");
    } else if (asked.url?.includes("/outputs")) {
      response.end(
        JSON.stringify({ items: [{ artifact_id: "art_1", url: "/api/x" }], next_page_token: null }),
      );
    } else response.end(JSON.stringify({ run_id: RUN, status: "completed", finished_at: "x" }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const upstream: Upstream = {
    [Symbol.dispose]: () => server.close().closeAllConnections(),
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/runs/${RUN}/events/stream`,
    server,
    asked: [],
    stream: null,
    events: [],
    send: (from, to) => {
      for (const id of upTo(to, from)) {
        const data = upstream.events[id - 1] ?? line(id);
        upstream.stream?.write(`id: ${id}\nevent: ${JSON.parse(data).type}\ndata: ${data}\n\n`);
      }
    },
  };
  return upstream;
}

// Each with a gateway of its own: dashboards of other tests continue asking theirs.
describe("as a worker of a run", () => {
  test("any number of browsers share one connection, which resumes where it broke off; none gets an event twice", async () => {
    using upstream = await startUpstream();
    upstream.events[9] = line(10, "job_completed");
    const connected = once(upstream.server, "asked");
    const { url } = await start({ SVC_BLUEPRINT_RUN_EVENTS_URL: upstream.url });
    await connected;
    const browsers = [0, 0, 3].map((id) =>
      fetch(`${url}events`, { headers: { "last-event-id": String(id) } }),
    );
    await Promise.all(browsers);
    upstream.send(1, 5);
    const again = once(upstream.server, "asked");
    upstream.stream?.end("id: 6\nevent: lo");
    await again;
    // A gateway that sends again what was sent before.
    upstream.send(4, 10);
    upstream.stream?.end();
    const texts = await Promise.all(browsers.map(async (browser) => (await browser).text()));
    assert.deepEqual(texts.map(idsIn), [upTo(10), upTo(10), upTo(10, 4)]);
    for (const text of texts)
      assert.match(text, /event: final\ndata: \{"run":\{"run_id":"run_01k9z1v7m3e8q2x4c6t8b0n5dh"/);
    assert.deepEqual(upstream.asked, [
      ["", ""],
      ["5", ""],
    ]);
    const health = (await (await fetch(`${url}healthz`)).json()) as { run_id: string };
    assert.equal(health.run_id, RUN);
  });

  test("files are handed through in parts, and never as pages of this server", async () => {
    using upstream = await startUpstream();
    const { url } = await start({ SVC_BLUEPRINT_RUN_EVENTS_URL: upstream.url });
    const answer = await fetch(`${url}files/art_1`, { headers: { range: "bytes=1-2" } });
    assert.equal(answer.status, 206);
    assert.equal(answer.headers.get("content-range"), "bytes=1-2 of it");
    assert.equal(answer.headers.get("content-disposition"), "attachment");
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    assert.match(answer.headers.get("content-security-policy") ?? "", /sandbox/);
    await answer.text();
    assert.equal((await fetch(`${url}files/a%2f..%2fb`)).status, 404);
    const outputs = (await (await fetch(`${url}outputs`)).json()) as { items: readonly { url: string }[] };
    assert.equal(outputs.items[0]?.url, "files/art_1");
  });

  test("asked to end with its run, it stays until a browser has the end; without one it ends at once", async () => {
    using lonely = await startUpstream();
    const alone = await start({ SVC_BLUEPRINT_RUN_EVENTS_URL: lonely.url });
    alone.process.kill("SIGTERM");
    // It has not seen the run's end: the runtime takes it for a failure if it did not.
    assert.deepEqual(await once(alone.process, "exit"), [143, null]);

    using upstream = await startUpstream();
    upstream.events = [line(1), line(2, "job_completed")];
    const connected = once(upstream.server, "asked");
    const watched = await start({ SVC_BLUEPRINT_RUN_EVENTS_URL: upstream.url });
    await connected;
    const browser = await fetch(`${watched.url}events`);
    upstream.send(1, 1);
    const ended = once(watched.process, "exit");
    // It stays for three seconds at most: nothing that takes time may come before the run's end.
    watched.process.kill("SIGTERM");
    assert.equal((await raw(watched.url, "/healthz")).status, 200);
    upstream.send(2, 2);
    assert.deepEqual(idsIn(await browser.text()), [1, 2]);
    assert.deepEqual(await ended, [0, null]);
  });

  test("with a token it shows that, and asks browsers for it: once in the address, from then on as a cookie", async () => {
    using upstream = await startUpstream();
    const token = "a-token-of-this-run";
    const connected = once(upstream.server, "asked");
    const { url } = await start({
      SVC_BLUEPRINT_RUN_EVENTS_URL: upstream.url,
      SVC_BLUEPRINT_RUN_EVENTS_TOKEN: token,
    });
    await connected;
    assert.deepEqual(upstream.asked, [["", `Bearer ${token}`]]);
    for (const path of ["/", "/config.json", "/events", "/page.js", "/?key=wrong", "/files/art_1"]) {
      assert.equal((await raw(url, path)).status, 401, path);
    }
    assert.equal((await raw(url, "/healthz")).status, 200);
    const shown = await raw(url, `/?a=1&key=${token}`);
    assert.deepEqual([shown.status, shown.headers.location], [303, "/?a=1"]);
    const [cookie = ""] = shown.headers["set-cookie"] ?? [];
    assert.match(cookie, /; HttpOnly; SameSite=Strict; Path=\/$/);
    assert.doesNotMatch(cookie, new RegExp(token));
    const sent = cookie.slice(0, cookie.indexOf(";"));
    assert.equal((await raw(url, "/", { cookie: `other=1; ${sent}` })).status, 200);
    assert.equal((await raw(url, "/", { cookie: `${sent}x` })).status, 401);
    // Nobody comes in through a name of another host.
    assert.equal((await raw(url, "/", { cookie: sent, host: "elsewhere.example" })).status, 200);
    const foreign = await raw(url, `//evil.example/?key=${token}`, {
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "navigate",
    });
    assert.deepEqual([foreign.status, foreign.headers.refresh], [200, "0; url=/evil.example/"]);
  });

  test("without a token it answers only to names of this machine", async () => {
    using upstream = await startUpstream();
    const { url } = await start({
      SVC_BLUEPRINT_RUN_EVENTS_URL: upstream.url,
      SVC_WEB_UI_PUBLIC_URL: "http://desk.example:8080/",
    });
    const statuses = await Promise.all(
      ["rebound.example", "127.0.0.1.example", "localhost:1", "[::1]", "desk.example:8080"].map(
        async (host) => (await raw(url, "/config.json", { host })).status,
      ),
    );
    assert.deepEqual(statuses, [403, 403, 200, 200, 200]);
  });

  test("pages of other sites read nothing, also where they know the key; links from them lead here", async () => {
    using upstream = await startUpstream();
    const events = { SVC_BLUEPRINT_RUN_EVENTS_URL: upstream.url };
    const key = { SVC_BLUEPRINT_RUN_EVENTS_TOKEN: "a-token" };
    for (const env of [events, { ...events, ...key }]) {
      const { url } = await start(env);
      const ask = async (headers: Record<string, string>) =>
        (await raw(url, "/config.json", { authorization: "Bearer a-token", ...headers })).status;
      const cross = { "sec-fetch-site": "cross-site" };
      assert.equal(await ask({ ...cross, "sec-fetch-mode": "no-cors" }), 403);
      assert.equal(await ask(cross), 403);
      for (const origin of ["https://evil.example", "null"]) assert.equal(await ask({ origin }), 403, origin);
      assert.equal(await ask({ ...cross, "sec-fetch-mode": "navigate" }), 200);
      assert.equal(await ask({ "sec-fetch-site": "same-origin", origin: new URL(url).origin }), 200);
    }
  });

  test("a page of the blueprint's own is served with what lies beside it, and the run's data below /_run/", async () => {
    using upstream = await startUpstream();
    const own = join(folder, "own");
    await cp(import.meta.dirname, own, { recursive: true, filter: (path) => !path.endsWith(".ts") });
    await mkdir(join(own, "site/parts"), { recursive: true });
    await writeFile(join(own, "site/index.html"), "mine");
    await writeFile(join(own, "site/parts/a.js"), "1");
    await writeFile(join(own, "site/.hidden"), "no");
    await symlink("../server.mjs", join(own, "site/out.js"));
    const { url } = await start(
      {
        SVC_BLUEPRINT_RUN_EVENTS_URL: upstream.url,
        SVC_WEB_UI_ADAPTER: "static_html",
        SVC_WEB_UI_PAGE: "site/index.html",
      },
      folder,
      join(own, "server.mjs"),
    );
    assert.equal((await raw(url, "/")).text, "mine");
    assert.equal((await raw(url, "/parts/a.js")).text, "1");
    for (const path of [
      "/../server.mjs",
      "/%2e%2e/server.mjs",
      "/..%2fserver.mjs",
      "/out.js",
      "/.hidden",
      "/parts",
    ]) {
      assert.equal((await raw(url, path)).status, 404, path);
    }
    assert.equal(JSON.parse((await raw(url, "/_run/config.json")).text).run_id, RUN);
    assert.equal((await raw(url, "/config.json")).status, 404);
  });

  test("a port that is taken is waited for", async (t) => {
    using upstream = await startUpstream();
    const port = await freePorts(1);
    const holder = await listenAt(port);
    t.after(() => closed(holder));
    let said = "";
    const env = { SVC_WEB_UI_PORT: String(port), NODE_DEBUG: "net" };
    const starting = start({ SVC_BLUEPRINT_RUN_EVENTS_URL: upstream.url, ...env }, folder, SERVER, (text) => {
      said += text;
      // Node tells each time that a port is asked for: at the second time, the first one was in vain.
      if (said.split("setupListenHandle").length > 2) holder.close();
    });
    assert.equal(new URL((await starting).url).port, String(port));
  });
});
