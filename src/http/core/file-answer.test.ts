// A stored file over a real socket: what its headers promise, and that nothing stays open when its reader leaves.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readlinkSync, realpathSync } from "node:fs";
import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { problemIn, startApp } from "../../../test/support/api.ts";
import { until } from "../../../test/support/until.ts";
import { fileBytes } from "../../runs/store/open-bytes.ts";
import { type StoredFile, sendFile } from "./file-answer.ts";

/** A server with one file. */
async function serve(bytes: Buffer, more: Partial<StoredFile> = {}) {
  // As /proc shows it.
  const folder = await mkdtemp(join(realpathSync(tmpdir()), "file-answer-"));
  const path = join(folder, "blob");
  await writeFile(path, bytes);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const file: StoredFile = {
    open: fileBytes({ path, size: bytes.length }),
    sizeBytes: bytes.length,
    sha256,
    contentType: "text/html; charset=utf-8",
    fileName: "report.html",
    ...more,
  };
  const app = await startApp({}, (api) => {
    api.head("/file", (asked, reply) => sendFile(asked, reply, file));
    api.get("/file", (asked, reply) => sendFile(asked, reply, file));
  });
  return {
    path,
    etag: `"${sha256}"`,
    url: `${app.url}/file`,
    get: (headers: Record<string, string> = {}, method = "GET") =>
      fetch(`${app.url}/file`, { method, headers }),
    isOpen: () => openFiles().includes(path),
    [Symbol.asyncDispose]: async () => {
      await app[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    },
  };
}

/** The paths that this process has open. */
function openFiles(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

test("a file is sent whole, with its length, its hash as ETag, and as a download that nothing may run", async () => {
  const bytes = randomBytes(300_000);
  await using server = await serve(bytes);
  const answer = await server.get();
  assert.equal(answer.status, 200);
  assert.deepEqual(Buffer.from(await answer.arrayBuffer()), bytes);
  const expected = {
    "content-length": "300000",
    "content-type": "text/html; charset=utf-8",
    etag: server.etag,
    "accept-ranges": "bytes",
    "content-disposition": 'attachment; filename="report.html"',
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "private, no-cache",
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(answer.headers.get(name), value, name);
  await until("the file is closed", () => !server.isOpen());
});

test("HEAD says what GET would, and does not open the file", async () => {
  await using server = await serve(randomBytes(1_000));
  await rm(server.path);
  const answer = await server.get({ range: "bytes=0-1" }, "HEAD");
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-length"), "1000");
  assert.equal(answer.headers.get("etag"), server.etag);
  assert.equal(await answer.text(), "");
});

test("a range is sent as 206 with its place; the parts of a cut download make the whole", async () => {
  const bytes = randomBytes(100_000);
  await using server = await serve(bytes);
  const parts: Buffer[] = [];
  for (const range of ["bytes=0-9999", "bytes=10000-99998", "bytes=-1"]) {
    const answer = await server.get({ range });
    assert.equal(answer.status, 206);
    const part = Buffer.from(await answer.arrayBuffer());
    assert.equal(answer.headers.get("content-length"), String(part.length));
    parts.push(part);
    if (range === "bytes=-1") assert.equal(answer.headers.get("content-range"), "bytes 99999-99999/100000");
  }
  assert.deepEqual(Buffer.concat(parts), bytes);
});

test("a range outside the file is refused with the file's size, as a problem", async () => {
  await using server = await serve(randomBytes(10));
  const answer = await server.get({ range: "bytes=10-" });
  assert.equal(answer.headers.get("content-range"), "bytes */10");
  assert.equal(answer.headers.get("content-disposition"), null);
  await problemIn(answer, 416, "range_not_satisfiable");
});

test("If-Range lets the range count only for the file that the client has a part of", async () => {
  await using server = await serve(randomBytes(10));
  const status = async (condition: string) => {
    const answer = await server.get({ range: "bytes=2-3", "if-range": condition });
    await answer.arrayBuffer();
    return answer.status;
  };
  assert.equal(await status(server.etag), 206);
  assert.equal(await status('"another"'), 200);
  assert.equal(await status(`W/${server.etag}`), 200);
  assert.equal(await status("Sat, 21 Nov 2026 09:30:00 GMT"), 200);
});

test("a client that has the file is told so, and gets no body", async () => {
  await using server = await serve(randomBytes(10));
  for (const given of [server.etag, `W/${server.etag}`, `"x", ${server.etag}`, "*"]) {
    const answer = await server.get({ "if-none-match": given, range: "bytes=90-" });
    assert.equal(answer.status, 304, given);
    assert.equal(answer.headers.get("etag"), server.etag);
    assert.equal(await answer.text(), "");
  }
  const changed = await server.get({ "if-none-match": '"x"' });
  assert.equal((await changed.arrayBuffer()).byteLength, 10);
});

test("an empty file is an empty answer", async () => {
  await using server = await serve(Buffer.alloc(0));
  const answer = await server.get();
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-length"), "0");
  assert.equal(await answer.text(), "");
});

test("any name can be saved under: quotes, other alphabets, controls, and halves of characters", async () => {
  const table: readonly [string, string][] = [
    ["plain name (1).txt", 'attachment; filename="plain name (1).txt"'],
    ["Überblick.pdf", "attachment; filename=\"_berblick.pdf\"; filename*=UTF-8''%C3%9Cberblick.pdf"],
    ['a"b\\c', "attachment; filename=\"a_b_c\"; filename*=UTF-8''a%22b%5Cc"],
    ["it's*.txt", "attachment; filename=\"it_s_.txt\"; filename*=UTF-8''it%27s%2A.txt"],
    [
      "a\r\nset-cookie: x",
      "attachment; filename=\"a__set-cookie_ x\"; filename*=UTF-8''a%0D%0Aset-cookie%3A%20x",
    ],
    ["\ud800", "attachment; filename=\"_\"; filename*=UTF-8''%EF%BF%BD"],
  ];
  for (const [fileName, expected] of table) {
    await using server = await serve(Buffer.from("x"), { fileName });
    const answer = await server.get();
    assert.equal(answer.headers.get("content-disposition"), expected, fileName);
    await answer.arrayBuffer();
  }
});

test("a file that was damaged is not sent", async () => {
  await using server = await serve(randomBytes(1_000));
  await truncate(server.path, 500);
  const answer = await server.get();
  assert.equal(answer.headers.get("etag"), null);
  await problemIn(answer, 500, "internal");
  assert.ok(!server.isOpen());
});

test("the file is closed when its reader leaves in the middle, or before the first byte", async () => {
  await using server = await serve(randomBytes(20_000_000));
  const slow = request(server.url);
  slow.end();
  const [answer] = await once(slow, "response");
  await once(answer, "readable");
  assert.ok(server.isOpen());
  slow.destroy();
  await until("the file is closed", () => !server.isOpen());

  for (let i = 0; i < 20; i++) {
    const hasty = request(server.url);
    hasty.on("error", () => {});
    hasty.end();
    await once(hasty, "finish");
    hasty.destroy();
  }
  assert.equal((await server.get({ range: "bytes=0-0" })).status, 206);
  await until("all are closed", () => !server.isOpen());
});
