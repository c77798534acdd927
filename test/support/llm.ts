// For tests of served models: a server of the OpenAI protocol that does what a test says, a gateway with nothing but the
// protocol's routes, and a program that stands in for llama-server.

import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { systemClock } from "../../src/app/clock.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import type { Clock } from "../../src/engine/ports.ts";
import type { ConventionSettings } from "../../src/http/core/conventions.ts";
import * as llm from "../../src/http/resources/llm.ts";
import { defaultSettings, type ServeSettings } from "../../src/models/serving/model-backend.ts";
import { ModelServers } from "../../src/models/serving/model-servers.ts";
import type { ServedModel } from "../../src/models/serving/records.ts";
import type { Servable } from "../../src/models/serving/servable.ts";
import { type LlmCall, type LlmCaller, ModelServing } from "../../src/models/serving/serving.ts";
import { startApp } from "./api.ts";

export interface UpstreamRequest {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: JsonObject;
  readonly answer: ServerResponse;
}

/** A server that answers each request with the next of these, and the last one again and again. */
export async function startUpstream(...answers: ((request: UpstreamRequest) => void)[]) {
  const requests: UpstreamRequest[] = [];
  const server = createServer((request, answer) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      const body = text === "" ? {} : JSON.parse(text);
      const asked = { path: request.url ?? "", headers: request.headers, body, answer };
      requests.push(asked);
      const next = answers[Math.min(requests.length, answers.length) - 1];
      if (next === undefined) answer.writeHead(404).end();
      else next(asked);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export const sendJson =
  (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}) =>
  ({ answer }: UpstreamRequest) =>
    void answer
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(JSON.stringify(body));

export const completion = (content: string, more: JsonObject = {}) => ({
  id: "c1",
  object: "chat.completion",
  created: 1,
  model: "upstream-model",
  choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
  ...more,
});

/** A part of a streamed answer, as an event. */
export const part = (content: string, more: JsonObject = {}, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content }, finish_reason: finish }], ...more })}\n\n`;
export const USAGE_EVENT = `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", choices: [], usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } })}\n\n`;
export const DONE = "data: [DONE]\n\n";

export const sendEvents =
  (...events: readonly string[]) =>
  ({ answer }: UpstreamRequest) =>
    void answer.writeHead(200, { "content-type": "text/event-stream" }).end(events.join(""));

export interface LlmGatewayOptions {
  readonly models: readonly Servable[];
  readonly settings?: Partial<ServeSettings>;
  readonly silenceMs?: number;
  readonly clock?: Clock;
  readonly caller?: LlmCaller;
  readonly conventions?: Partial<ConventionSettings>;
  readonly servers?: ModelServers;
}

/** Clocks on which waits between attempts are over at once, noted in the order in which they began. */
export function hurriedClock(waits: number[] = []): Clock {
  return {
    ...systemClock,
    after(delayMs, run) {
      // The longest ones are limits, which are to be kept.
      if (delayMs > 60_000) return systemClock.after(delayMs, run);
      waits.push(delayMs);
      return systemClock.after(0, run);
    },
  };
}

export async function startLlmGateway(options: LlmGatewayOptions) {
  const { models, settings = {}, silenceMs, caller = null, clock = systemClock } = options;
  const calls: LlmCall[] = [];
  const served = (modelId: string): ServedModel => ({
    modelId,
    settings: { ...defaultSettings, ...settings },
    createdAtMs: 1_000,
    updatedAtMs: 1_000,
  });
  const records = {
    served: async (modelId: string) =>
      models.some((one) => one.modelId === modelId) ? served(modelId) : null,
    allServed: async () => models.map(({ modelId }) => served(modelId)),
  };
  const servers =
    options.servers ??
    new ModelServers({
      servables: {
        find: async (modelId) => models.find((one) => one.modelId === modelId) ?? null,
      },
      records,
      startDaemon: () => Promise.reject(new Error("Nothing is to be started.")),
      environment: {},
      folder: "/",
      clock,
      log: { info: () => {}, warn: () => {}, error: () => {} },
    });
  const serving = new ModelServing({
    meter: { ended: (call) => void calls.push(call) },
    backendOf: (modelId) => servers.backendOf(modelId),
    clock,
    fraction: () => 0,
    ...(silenceMs !== undefined && { silenceMs }),
  });
  const app = await startApp(options.conventions, (api) =>
    llm.gatewayRoutes(api, {
      records: { servedModels: records },
      modelServing: serving,
      llmCaller: () => caller,
    }),
  );
  const baseURL = `${app.url}/llm/v1`;
  return {
    url: baseURL,
    /** The client of those who made the protocol, which retries nothing. */
    client: new OpenAI({ baseURL, apiKey: "any", maxRetries: 0 }),
    calls,
    servers,
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await servers.close();
    },
  };
}

/** What stands in for llama-server does. */
export interface FakeServerBehaviour {
  /** It ends at once with this exit code. */
  readonly exits?: number;
  /** It answers to nobody until this file is there. */
  readonly loadedBy?: string;
  /** A file that it adds a line to at each start: its process id and its arguments. */
  readonly startsIn: string;
}

/** A folder for PATH with a `llama-server` in it: a Node program that speaks the protocol. */
export function fakeLlamaServer(behaviour: FakeServerBehaviour): string {
  const folder = join(mkdtempSync(join(tmpdir(), "llama-server-")), "bin");
  mkdirSync(folder);
  const file = join(folder, "llama-server");
  writeFileSync(
    file,
    `#!${process.execPath}\n${fakeProgram.toString()}\nfakeProgram(${JSON.stringify(behaviour)});\n`,
  );
  chmodSync(file, 0o755);
  return folder;
}

/** Runs in a process of its own: it sees nothing of this file. */
function fakeProgram(behaviour: FakeServerBehaviour): void {
  const { appendFileSync, existsSync } = process.getBuiltinModule("node:fs");
  const http = process.getBuiltinModule("node:http");
  const words = process.argv.slice(2);
  const option = (name: string) => words[words.indexOf(name) + 1];
  appendFileSync(behaviour.startsIn, `${JSON.stringify({ pid: process.pid, words })}\n`);
  console.log("llama_model_loader: loaded meta data");
  if (behaviour.exits !== undefined) {
    console.error("error: failed to load model");
    process.exit(behaviour.exits);
  }
  const isLoaded = () => behaviour.loadedBy === undefined || existsSync(behaviour.loadedBy);
  http
    .createServer((request, answer) => {
      const json = (status: number, body: unknown) =>
        answer.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
      if (request.url === "/health") {
        if (isLoaded()) json(200, { status: "ok" });
        else json(503, { error: { message: "Loading model" } });
        return;
      }
      if (request.headers.authorization !== `Bearer ${process.env.LLAMA_API_KEY}`) {
        json(401, { error: { message: "Invalid API Key" } });
        return;
      }
      let text = "";
      request.on("data", (chunk) => {
        text += chunk;
      });
      request.on("end", () => {
        const body = JSON.parse(text);
        const content = body.messages.at(-1).content;
        if (content === "crash") process.exit(7);
        const choices = [
          { index: 0, message: { role: "assistant", content: `${process.pid}` }, finish_reason: "stop" },
        ];
        json(200, { id: "c", object: "chat.completion", created: 1, model: option("--alias"), choices });
      });
    })
    .listen(Number(option("--port")), "127.0.0.1");
}
