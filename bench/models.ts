// Models: how fast one is installed, beside a bare loop that hashes while it copies, in turns; and the list of a thousand.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway } from "../test/support/gateway-api.ts";
import { ggufFile, text, tinyLlama, tinyTensors } from "../test/support/model-files.ts";

const BYTES = 1024 ** 3;
const ROUNDS = 3;
const MODELS = 1_000;
const WALKS = 15;
const CHUNK_BYTES = 1024 * 1024;

export async function measureModels(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("models")) return figures;
  await using program = await startGateway({ env: { SVC_LOG_LEVEL: "warn" } });
  const { api } = program;
  const folder = await mkdtemp(join(tmpdir(), "troupe-models-"));
  const bare: number[] = [];
  const installed: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const file = await modelFile(join(folder, `${round}.gguf`), round);
    bare.push(await seconds(() => copyHashed(file, join(folder, "copy"))));
    await asked(api, "POST", "/models", { model_id: `large-${round}`, source: { file } });
    installed.push(await seconds(() => operated(api, `/models/large-${round}/install`)));
  }
  const rate = (times: readonly number[]) => BYTES / 1e6 / median(times);
  const share = Math.round((100 * median(bare)) / median(installed));
  figures.set("a model of 1 GiB installed", `${Math.round(rate(installed))} MB/s`);
  figures.set("— of a bare loop that hashes while it copies", `${share} % of ${Math.round(rate(bare))} MB/s`);
  for (let i = ROUNDS; i < MODELS; i++)
    await asked(api, "POST", "/models", { model_id: `m${i}`, source: { file: "/m" } });
  const walks: number[] = [];
  for (let i = 0; i < WALKS; i++) walks.push(1_000 * (await seconds(() => walk(api))));
  figures.set("the list of 1,000 models, five pages, p50", `${median(walks).toFixed(1)} ms`);
  await rm(folder, { recursive: true });
  return figures;
}

/** Of one tensor of zeros, which takes no room; each of another content. */
async function modelFile(path: string, round: number): Promise<string> {
  const tensors = [...tinyTensors, { name: "large", shape: [1024, BYTES / 4096], size: 0 }];
  const header = ggufFile({ ...tinyLlama, "general.name": text(`Large ${round}`) }, tensors);
  await using file = await open(path, "w");
  await file.write(header);
  await file.truncate(header.length + BYTES);
  return path;
}

async function copyHashed(from: string, to: string): Promise<void> {
  const hash = createHash("sha256");
  await using target = await open(to, "w");
  for await (const chunk of createReadStream(from, { highWaterMark: CHUNK_BYTES })) {
    hash.update(chunk as Buffer);
    await target.write(chunk as Buffer);
  }
  await target.sync();
  hash.digest();
}

async function operated(api: string, path: string): Promise<void> {
  const { operation_id: id } = (await asked(api, "POST", path, {})) as { readonly operation_id: string };
  const stream = await fetch(`${api}/operations/${id}/events/stream`);
  const events = await stream.text();
  if (!events.includes("operation_completed")) throw new Error(events.slice(-500));
}

async function walk(api: string): Promise<void> {
  let token: string | null = null;
  do {
    const query: string = token === null ? "" : `&page_token=${encodeURIComponent(token)}`;
    const page = await asked(api, "GET", `/models?page_size=200${query}`);
    token = page.next_page_token as string | null;
  } while (token !== null);
}

async function asked(
  api: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Record<string, unknown>> {
  const sent =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const answer = await fetch(api + path, { method, ...sent });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Record<string, unknown>;
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return (performance.now() - from) / 1_000;
}

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
