// Bodies that are announced and do not come: what is refused is answered at once, by the request's head alone.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { runtimeApiOf } from "../support/gateway-api.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { dial, read, request } from "../support/raw-http.ts";

const TOKEN = "correct-horse-battery-staple-0123456789";
const LIMIT = 100_000;

let gateway: Program;
let runtime: Program;
let withToken: Program;
before(async () => {
  const limits = { SVC_BODY_MAX_BYTES: String(LIMIT), SVC_BUNDLE_MAX_BYTES: String(LIMIT) };
  [gateway, withToken] = await Promise.all([
    startGatewayHere({ env: limits }),
    startGatewayHere({ env: { SVC_API_TOKEN: TOKEN, ...limits } }),
  ]);
  runtime = await runtimeApiOf(gateway);
});
after(() => Promise.all([gateway.stop(), withToken.stop()]));

const continues = "Expect: 100-continue";
const json = (length: number) => ["Content-Type: application/json", `Content-Length: ${length}`];
const form = (length: number) => [
  "Content-Type: multipart/form-data; boundary=x",
  `Content-Length: ${length}`,
];

/** Sends a head, and the body only if it is asked for. @returns the statuses of what came, in order */
async function statuses(program: Program, head: string, body: string, count: number): Promise<number[]> {
  const socket = await dial(program);
  socket.write(head);
  const seen: number[] = [];
  const asked = head.includes(continues);
  if (asked) seen.push(...(await read(socket, 1)).map(({ status }) => status));
  if (seen.length < count) {
    socket.write(body);
    seen.push(...(await read(socket, count - seen.length)).map(({ status }) => status));
  }
  socket.destroy();
  return seen;
}

for (const [kind, program] of [
  ["gateway", () => gateway],
  ["runtime API", () => runtime],
] as const) {
  describe(`the ${kind}`, () => {
    for (const [what, path, headers] of [
      ["a JSON body", "/api/v1/jobs", json(LIMIT + 1)],
      ["a JSON body of terabytes", "/api/v1/jobs", json(10 ** 13)],
      ["an upload", "/api/v1/bundles", form(LIMIT + 100_000)],
    ] as const) {
      test(`answers 413 at once to ${what} over the limit of which nothing comes, asked for or not`, async () => {
        for (const extra of [[], [continues]]) {
          const head = request("POST", path, [...headers, ...extra]);
          assert.deepEqual(await statuses(program(), head, "", 1), [413], extra.join());
        }
      });
    }

    test("tells a client that asks to go on, and then takes its body", async () => {
      const body = "[]";
      const head = request("POST", "/api/v1/jobs", [...json(body.length), continues, "Connection: close"]);
      const [first, second] = await statuses(program(), head, body, 2);
      assert.deepEqual([first, second === 400 || second === 422], [100, true], `${second}`);
    });

    test("an answer that came early is read by a client that sends all of its body first", async () => {
      const length = 20_000_000;
      const socket = await dial(program());
      socket.write(request("POST", "/api/v1/jobs", json(length)));
      socket.pause();
      await new Promise<void>((sent, failed) =>
        socket.write("x".repeat(length), (error) => (error == null ? sent() : failed(error))),
      );
      const [answer] = await read(socket, 1);
      assert.equal(answer?.status, 413);
      assert.equal(answer.headers.get("connection"), "close");
      socket.destroy();
    });
  });
}

test("without its token a client is not asked for a body", async () => {
  const head = request("POST", "/api/v1/jobs", [...json(10), continues]);
  assert.deepEqual(await statuses(withToken, head, "", 1), [401]);
});
