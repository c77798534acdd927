// The server behind bench/llm.ts: a stream of tokens, each with the time at which it was sent.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { parentPort } from "node:worker_threads";

const server = createServer(async (request, answer) => {
  let text = "";
  for await (const chunk of request) text += chunk;
  const { tokens = 0, fast = false } = text === "" ? {} : JSON.parse(text);
  answer.writeHead(200, { "content-type": "text/event-stream" });
  for (let n = 0; n < tokens; n++) {
    const content = String(performance.timeOrigin + performance.now());
    const choices = [{ index: 0, delta: { content }, finish_reason: null }];
    const data = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices };
    const hasRoom = answer.write(`data: ${JSON.stringify(data)}\n\n`);
    if (!fast) await delay(1);
    else if (!hasRoom) await once(answer, "drain");
  }
  answer.end("data: [DONE]\n\n");
});
server.listen(0, "127.0.0.1", () => parentPort?.postMessage((server.address() as AddressInfo).port));
