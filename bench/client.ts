// A lean HTTP client for measuring: keep-alive, no parsing unless asked.

import http from "node:http";

const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });

export interface RawAnswer {
  readonly status: number;
  readonly text: string;
}

export function send(api: string, method: string, path: string, body?: string): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const headers: http.OutgoingHttpHeaders =
      body === undefined
        ? {}
        : { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const request = http.request(api + path, { method, agent, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      );
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

/** @returns the new job's id */
export async function submit(api: string, manifest: string): Promise<string> {
  const { status, text } = await send(api, "POST", "/jobs", manifest);
  if (status !== 201) throw new Error(`submit: ${status} ${text.slice(0, 300)}`);
  return (JSON.parse(text) as { id: string }).id;
}

const terminal = new Set(["completed", "failed", "cancelled"]);

/** Asks every few ms until the job is over. */
export async function untilOver(api: string, jobId: string, everyMs = 2): Promise<string> {
  for (;;) {
    const { text } = await send(api, "GET", `/jobs/${jobId}`);
    const status = /"status":"([a-z]+)"/.exec(text)?.[1] ?? "";
    if (terminal.has(status)) return status;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
