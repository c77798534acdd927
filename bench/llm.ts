// Served models: what a token of a streamed answer costs on its way through the gateway, over one that comes directly.
//
// The server behind it is a thread of its own, which writes into each token when it was sent; the gateway is a process.

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { call, startGateway } from "../test/support/gateway-api.ts";
import { until } from "../test/support/until.ts";

const TOKENS = 1_000;
const ROUNDS = 5;
const FAST_TOKENS = 50_000;

export async function measureLlm(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("llm")) return figures;
  const upstream = new Worker(new URL("./llm-upstream.ts", import.meta.url));
  const [port] = (await once(upstream, "message")) as [number];
  const direct = `http://127.0.0.1:${port}/v1`;
  const gateway = await startGateway();
  const source = { openai: { base_url: direct, model: "m" } };
  await call(gateway, "POST", "/models", { model_id: "m", source });
  const { operation_id: id } = await call(gateway, "POST", "/models/m/serve", {});
  await until(
    "it is served",
    async () => (await call(gateway, "GET", `/operations/${id}`)).status === "completed",
  );
  const proxied = `${gateway.api}/llm/v1`;
  const added: number[] = [];
  const slowest: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const [fromServer, fromGateway] = [await delays(direct), await delays(proxied)];
    added.push(at(fromGateway, 0.5) - at(fromServer, 0.5));
    slowest.push(at(fromGateway, 0.99) - at(fromServer, 0.99));
  }
  figures.set("a streamed token through the gateway, over a direct one", `${at(added, 0.5).toFixed(3)} ms`);
  figures.set("— of the slowest 1 %", `${at(slowest, 0.5).toFixed(3)} ms`);
  const began = performance.now();
  await delays(proxied, FAST_TOKENS);
  const each = (performance.now() - began) / FAST_TOKENS;
  figures.set("— when they come as fast as they can", `${each.toFixed(4)} ms`);
  await gateway.stop();
  await upstream.terminate();
  return figures;
}

/** @param fast tokens that are sent at once; without it TOKENS, one each millisecond. @returns how long each was under way, in ms */
async function delays(baseUrl: string, fast?: number): Promise<number[]> {
  const answer = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "m",
      stream: true,
      messages: [],
      tokens: fast ?? TOKENS,
      fast: fast !== undefined,
    }),
  });
  const found: number[] = [];
  let open = "";
  for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
    const now = performance.timeOrigin + performance.now();
    const lines = (open + chunk).split("\n");
    open = lines.pop() ?? "";
    for (const line of lines) {
      const sent = /"content":"([\d.]+)"/.exec(line)?.[1];
      if (sent !== undefined) found.push(now - Number(sent));
    }
  }
  if (found.length !== (fast ?? TOKENS)) throw new Error(`${found.length} tokens came.`);
  return found;
}

function at(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(share * (values.length - 1))]!;
}
