// A lean HTTP client for measuring: keep-alive, no parsing unless asked.

import http from "node:http";

const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });

export interface RawAnswer {
  readonly status: number;
  readonly text: string;
}

export function send(
  api: string,
  method: string,
  path: string,
  body?: string,
  more: http.OutgoingHttpHeaders = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const headers: http.OutgoingHttpHeaders =
      body === undefined
        ? more
        : { ...more, "content-type": "application/json", "content-length": Buffer.byteLength(body) };
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

/**
 * Submits a job, and is answered with its end. A server that knows no `Prefer: wait` is asked until then.
 *
 * @returns the job's id
 * @throws Error when it does not complete
 */
export async function submitAndWait(api: string, manifest: string): Promise<string> {
  const { status, text } = await send(api, "POST", "/jobs", manifest, { prefer: "wait=60" });
  if (status !== 200 && status !== 201) throw new Error(`submit: ${status} ${text.slice(0, 300)}`);
  const { id, job_id: endedId = id } = JSON.parse(text) as { id: string; job_id?: string };
  const end = status === 200 ? statusIn(text) : await untilOver(api, endedId);
  if (end !== "completed") throw new Error(`the job ended as ${end}`);
  return endedId;
}

const terminal = new Set(["completed", "failed", "cancelled"]);
const statusIn = (text: string) => /"status":"([a-z]+)"/.exec(text)?.[1] ?? "";

/** Asks every few ms until the job is over. */
export async function untilOver(api: string, jobId: string, everyMs = 2): Promise<string> {
  for (;;) {
    const { text } = await send(api, "GET", `/jobs/${jobId}`);
    const status = statusIn(text);
    if (terminal.has(status)) return status;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
