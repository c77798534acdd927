// Servers from which models come: one that gives files, with faults, and one that speaks Ollama's API.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ModelServer extends AsyncDisposable {
  readonly url: string;
  /** What was asked for, with its Range: "GET /tiny.gguf bytes=100-". */
  readonly asked: readonly string[];
  /** The Authorization headers that came. */
  readonly keys: readonly (string | undefined)[];
}

type Handle = (request: IncomingMessage, response: ServerResponse, body: string) => void | Promise<void>;

async function serve(handle: Handle): Promise<ModelServer> {
  const asked: string[] = [];
  const keys: (string | undefined)[] = [];
  const server = createServer(async (request, response) => {
    const { range, authorization } = request.headers;
    asked.push([request.method, request.url, range].filter((part) => part !== undefined).join(" "));
    keys.push(authorization);
    let body = "";
    for await (const chunk of request) body += chunk;
    await handle(request, response, body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    keys,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** How one answer goes wrong. */
export type FileFault =
  /** It ends after so many bytes. */
  | { readonly cutAfter: number }
  /** It never ends after so many bytes. */
  | { readonly hangAfter: number }
  | { readonly status: number; readonly retryAfter?: number }
  | { readonly redirectTo: string };

/**
 * Gives one content at every path, and continues it where it is asked to.
 *
 * @param faults of the first answers, one each
 */
export function fileServer(content: Buffer, faults: readonly FileFault[] = []): Promise<ModelServer> {
  const left = [...faults];
  return serve((request, response) => {
    const fault = left.shift();
    if (fault !== undefined && "status" in fault) {
      const retry = fault.retryAfter === undefined ? {} : { "retry-after": String(fault.retryAfter) };
      return void response.writeHead(fault.status, retry).end();
    }
    if (fault !== undefined && "redirectTo" in fault)
      return void response.writeHead(302, { location: fault.redirectTo }).end();
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const rest = content.subarray(from);
    const whole = { etag: '"v1"', "accept-ranges": "bytes", "content-length": rest.length };
    const range = { "content-range": `bytes ${from}-${content.length - 1}/${content.length}` };
    response.writeHead(from > 0 ? 206 : 200, from > 0 ? { ...whole, ...range } : whole);
    if (fault === undefined) return void response.end(rest);
    if ("hangAfter" in fault) return void response.write(rest.subarray(0, fault.hangAfter));
    response.write(rest.subarray(0, fault.cutAfter), () => response.destroy());
  });
}

export interface OllamaServer extends ModelServer {
  /** The models that it has. */
  readonly models: ReadonlySet<string>;
}

/** Has no model until it pulls one; what is called `absent` it cannot pull. */
export async function ollamaServer(): Promise<OllamaServer> {
  const models = new Set<string>();
  const digest = "ab".repeat(32);
  const server = await serve((request, response, body) => {
    const model = body === "" ? "" : String(JSON.parse(body).model);
    const full = model.includes(":") ? model : `${model}:latest`;
    const json = (value: unknown, status = 200) =>
      void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    switch (`${request.method} ${request.url}`) {
      case "POST /api/pull": {
        response.writeHead(200, { "content-type": "application/x-ndjson" });
        const line = (value: unknown) => response.write(`${JSON.stringify(value)}\n`);
        line({ status: "pulling manifest" });
        if (model === "absent") {
          line({ error: "pull model manifest: file does not exist" });
          return void response.end();
        }
        for (const completed of [0, 50, 100]) line({ status: "pulling", digest, total: 100, completed });
        models.add(full);
        line({ status: "success" });
        return void response.end();
      }
      case "GET /api/tags":
        return json({ models: [...models].map((name) => ({ name, model: name, size: 100, digest })) });
      case "POST /api/show":
        return json({
          license: "Apache License\nVersion 2.0",
          template: "{{ .Prompt }}",
          details: { format: "gguf", family: "llama", quantization_level: "Q4_K_M" },
          model_info: {
            "general.architecture": "llama",
            "general.parameter_count": 8,
            "llama.context_length": 4096,
          },
        });
      case "DELETE /api/delete":
        models.delete(full);
        return void response.writeHead(200).end();
      default:
        return json({ error: "not found" }, 404);
    }
  });
  return Object.assign(server, { models });
}
