// A process that may open few files: what does not fit is refused with 503 and a time to try again, and what was refused
// is taken as soon as there is room.

import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { after, before, test } from "node:test";
import { zipOf } from "../support/bundle-files.ts";
import { ask, runtimeApiOf, startGateway } from "../support/gateway-api.ts";
import { graph, router } from "../support/graphs.ts";
import type { Program } from "../support/program.ts";
import { dial, everything } from "../support/raw-http.ts";
import { until } from "../support/until.ts";

const FILES_MAX = 48;
const UPLOADS = 60;

let gateway: Program;
let runtime: Program;
before(async () => {
  // The launcher sets no limit of its own: what starts it does.
  const through = ["sh", "-c", `ulimit -n ${FILES_MAX}; exec "$@"`, "sh"];
  gateway = await startGateway({ through });
  runtime = await runtimeApiOf(gateway);
});
after(() => gateway.stop());

const statusOf = (text: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0);

for (const [kind, program] of [
  ["gateway", () => gateway],
  ["runtime API", () => runtime],
] as const) {
  test(`uploads to the ${kind} with no file left to open are refused with 503, and taken later`, async () => {
    const zip = await zipOf({ "manifest.json": JSON.stringify(graph("few-files", [router("in")])) });
    const head = Buffer.from(
      '--x\r\nContent-Disposition: form-data; name="bundle"; filename="b.zip"\r\n\r\n',
    );
    const form = Buffer.concat([head, zip, Buffer.from("\r\n--x--\r\n")]);
    const begin = [
      "POST /api/v1/bundles HTTP/1.1",
      `Host: ${new URL(program().url).host}`,
      "Content-Type: multipart/form-data; boundary=x",
      `Content-Length: ${form.length}`,
      "Connection: close",
      "",
      "",
    ].join("\r\n");
    // All of them hold a connection, and a file as far as there are any, before the first ends.
    const sockets: Socket[] = [];
    const answers: Promise<string>[] = [];
    for (let i = 0; i < UPLOADS; i++) {
      const socket = await dial(program());
      answers.push(everything(socket));
      socket.write(begin);
      socket.write(form.subarray(0, head.length + 10));
      sockets.push(socket);
    }
    for (const socket of sockets) socket.write(form.subarray(head.length + 10));
    const texts = await Promise.all(answers);
    for (const socket of sockets) socket.destroy();
    const statuses = texts.map(statusOf);
    // 0: there was not even room for the connection.
    assert.deepEqual(
      statuses.filter((status) => ![0, 201, 503].includes(status)),
      [],
      texts.find((text) => statusOf(text) === 500) ?? "",
    );
    const refused = texts.filter((text) => statusOf(text) === 503);
    assert.ok(refused.length > 0, `statuses: ${statuses}`);
    for (const text of refused) {
      assert.match(text, /^retry-after: \d+\r$/im);
      assert.match(text, /open files/);
    }
    await until("an upload is taken again", async () => {
      const body = new FormData();
      body.set("bundle", new Blob([new Uint8Array(zip)]), "b.zip");
      const answer = await fetch(`${program().api}/bundles`, { method: "POST", body }).catch(() => null);
      return answer?.status === 201;
    });
    assert.equal((await ask(program(), "GET", "/health")).body.status, "ok");
  });
}
