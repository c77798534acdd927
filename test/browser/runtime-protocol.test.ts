// The runtime protocol as a page calls it: gRPC-Web over fetch, from an origin that SVC_CORS_ORIGINS lists and from another one.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { launchChromium, noChromium, openPage } from "../support/chromium.ts";
import { grpcAddress } from "../support/grpc.ts";
import { startGatewayHere } from "../support/in-process.ts";

const TOKEN = "a-token-of-sixteen-characters";

/** A server with an empty page. */
async function serveSite() {
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "text/html").end("<title>console</title>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

describe("gRPC-Web in a browser", { skip: noChromium }, () => {
  let browser: Browser;
  before(async () => {
    browser = await launchChromium();
  });
  after(() => browser.close());

  test("is answered to pages of an origin that may call, and not to others", async () => {
    await using ours = await serveSite();
    await using theirs = await serveSite();
    const env = { SVC_CORS_ORIGINS: ours.origin, SVC_API_TOKEN: TOKEN };
    await using program = await startGatewayHere({ env });
    const asked = { address: grpcAddress(program.output()), token: TOKEN };
    const answers: string[] = [];
    for (const { origin } of [ours, theirs]) {
      const { page } = await openPage(browser, origin);
      answers.push(
        await page.evaluate(async ({ address, token }) => {
          const headers = {
            "content-type": "application/grpc-web+proto",
            "x-grpc-web": "1",
            authorization: `Bearer ${token}`,
          };
          // A frame without a message: all of its fields are at their defaults.
          const body = new Uint8Array(5);
          const url = `http://${address}/svc.runtime.v1.NodeService/ListNodes`;
          try {
            const answer = await fetch(url, { method: "POST", headers, body });
            return await answer.text();
          } catch (error) {
            return String(error);
          }
        }, asked),
      );
      await page.context().close();
    }
    assert.match(answers[0]!, /node_.*grpc-status: ?0/s);
    assert.match(answers[1]!, /Failed to fetch/);
  });
});
