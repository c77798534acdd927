// How long what is large keeps all others waiting: one job of 1,000,000 messages, uploads of 500 MB, removal, a backup, and
// a graph of 20,000 nodes. Each part has a home of its own.

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { openAsBlob } from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Program, programEnvironment, programWords, temporaryHome } from "../test/support/program.ts";
import { send, submit } from "./client.ts";
import { addressesOf, noteGap, startWithGaps } from "./gaps.ts";
import { fan, pair } from "./manifests.ts";
import { zipOf } from "./zip.ts";

/** 20 workers make 41 messages of an input. */
const WORKERS = 20;
const INPUTS = 24_400;
const MB = 1024 * 1024;
const UPLOAD_MB = 500;
const UPLOAD_FILES = 5_000;
const NODES = 20_000;
const ROUNDS = 4;

interface Part {
  readonly program: Program;
  readonly gateway: string;
  readonly runtime: string;
  readonly figures: Map<string, string>;
}

const parts: Readonly<Record<string, (part: Part) => Promise<void>>> = {
  "stalls-messages": messages,
  "stalls-uploads": uploads,
  "stalls-graph": largeGraph,
};

export async function measureLargeStalls(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  for (const [name, measure] of Object.entries(parts)) {
    if (only !== null && !only.includes("stalls") && !only.includes(name)) continue;
    const home = await temporaryHome();
    try {
      await using program = await startWithGaps({ home });
      await measure({ program, ...(await addressesOf(program)), figures });
    } finally {
      await rm(home, { recursive: true });
    }
  }
  return figures;
}

/** Asks each path a few times. */
async function requests(
  { program, figures }: Part,
  api: string,
  what: string,
  paths: readonly string[],
): Promise<void> {
  for (const path of paths) {
    const shown = path.replace(/(job|run)_[a-z0-9]+|fan-[a-z0-9]+/, "{id}");
    await noteGap(program, figures, `GET ${shown}, ${what}`, ROUNDS, async () => {
      const { status, text } = await send(api, "GET", path);
      if (status !== 200) throw new Error(`${path}: ${status} ${text.slice(0, 300)}`);
    });
  }
}

async function messages(part: Part): Promise<void> {
  const { program, runtime, figures } = part;
  const manifest = JSON.stringify(fan(WORKERS, INPUTS));
  let jobId = "";
  let runId = "";
  await noteGap(program, figures, "1,000,000 messages: submitted, and worked on for a while", 1, async () => {
    const { id, run_id } = JSON.parse(await post(runtime, "/jobs", manifest)) as {
      id: string;
      run_id: string;
    };
    jobId = id;
    runId = run_id;
    await untilEvents(runtime, runId, 20 * INPUTS);
    await post(runtime, `/jobs/${jobId}/pause`);
  });
  const ofJob = [
    `/jobs/${jobId}`,
    `/jobs/${jobId}/events`,
    `/jobs/${jobId}/workflow-progress`,
    `/jobs/${jobId}/agent-graph`,
  ];
  const ofRun = ["timeline", "logs", "artifacts", "dead-letters", "observability-summary"].map(
    (name) => `/runs/${runId}/${name}`,
  );
  await requests(part, runtime, "half of 1,000,000 messages wait", [...ofJob, ...ofRun, "/metrics"]);
  await noteGap(program, figures, "1,000,000 messages: the rest", 1, async () => {
    await post(runtime, `/jobs/${jobId}/resume`);
    await (await fetch(`${runtime}/jobs/${jobId}/workflow-progress/stream`)).text();
  });
  await requests(part, runtime, "1,000,000 messages done", [...ofJob, ...ofRun]);
  await noteGap(program, figures, "purge of the run of 1,000,000 messages", 1, async () => {
    const answer = await post(runtime, "/system/gc", { max_bytes: 1 });
    if ((JSON.parse(answer) as { runs: { count: number } }).runs.count !== 1) throw new Error(answer);
  });
}

/** Waits for so many events, of which there is one for each message, about. */
async function untilEvents(runtime: string, runId: string, count: number): Promise<void> {
  for (;;) {
    const { text } = await send(runtime, "GET", `/runs/${runId}/observability-summary`);
    const { counts } = JSON.parse(text) as { counts: { events: number } };
    if (counts.events >= count) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function post(api: string, path: string, body: object | string = {}): Promise<string> {
  const { status, text } = await send(
    api,
    "POST",
    path,
    typeof body === "string" ? body : JSON.stringify(body),
  );
  if (status >= 300) throw new Error(`POST ${path}: ${status} ${text.slice(0, 300)}`);
  return text;
}

async function uploads({ program, gateway, runtime, figures }: Part): Promise<void> {
  const manifest = { "manifest.json": JSON.stringify(pair) };
  const one = { ...manifest, "payloads/data.bin": randomBytes(UPLOAD_MB * MB) };
  const ofEach = Math.floor((UPLOAD_MB * MB) / UPLOAD_FILES);
  const many: Record<string, string | Buffer> = { ...manifest };
  for (let i = 0; i < UPLOAD_FILES; i++) many[`payloads/part-${i % 100}/${i}.bin`] = randomBytes(ofEach);
  const file = join(program.home, "upload.zip");
  for (const [what, files] of [
    ["one file", one],
    [`${UPLOAD_FILES} files`, many],
  ] as const) {
    const zip = await open(file, "w");
    await zip.writeFile(await zipOf(files));
    await zip.close();
    for (const [name, api] of [
      ["runtime", runtime],
      ["gateway", gateway],
    ] as const) {
      await noteGap(program, figures, `${name}: upload of ${UPLOAD_MB} MB, ${what}`, 1, async () => {
        const form = new FormData();
        form.set("bundle", await openAsBlob(file), "bundle.zip");
        const answer = await fetch(`${api}/bundles`, { method: "POST", body: form });
        if (answer.status !== 201) throw new Error(`upload: ${answer.status} ${await answer.text()}`);
      });
    }
    await rm(file);
  }
}

async function largeGraph(part: Part): Promise<void> {
  const { program, gateway, runtime, figures } = part;
  const wide = fan(NODES - 2, 1);
  const text = JSON.stringify(wide);
  let jobId = "";
  await noteGap(program, figures, `runtime: POST /jobs, ${NODES} nodes`, 2, async () => {
    jobId = await submit(runtime, text);
    await (await fetch(`${runtime}/jobs/${jobId}/events/stream`)).text();
  });
  await requests(part, runtime, `${NODES} nodes`, [
    `/jobs/${jobId}`,
    `/jobs/${jobId}/agent-graph`,
    `/jobs/${jobId}/workflow-progress`,
  ]);
  const zip = await zipOf({ "manifest.json": text });
  let bundleId = "";
  // What the first one finds out of the package, the second one knows.
  for (const round of ["the first", "the second"]) {
    await noteGap(program, figures, `gateway: POST /bundles, ${NODES} nodes, ${round}`, 1, async () => {
      const form = new FormData();
      form.set("bundle", new Blob([zip]), "bundle.zip");
      const answer = await fetch(`${gateway}/bundles`, { method: "POST", body: form });
      bundleId = ((await answer.json()) as { bundle_id: string }).bundle_id;
    });
  }
  let definitionId = "";
  await noteGap(program, figures, `gateway: POST /jobs, ${NODES} nodes`, 2, async () => {
    definitionId = (JSON.parse(await post(gateway, "/jobs", { bundle_id: bundleId })) as { job_id: string })
      .job_id;
  });
  await noteGap(program, figures, `gateway: POST /jobs/{id}/runs, ${NODES} nodes`, 2, async () => {
    const { run_id } = JSON.parse(await post(gateway, `/jobs/${definitionId}/runs`)) as { run_id: string };
    await (await fetch(`${gateway}/runs/${run_id}/events/stream`)).text();
  });
  await requests(part, gateway, `${NODES} nodes`, [
    `/jobs/${definitionId}?view=full`,
    `/jobs/${definitionId}/workflow-progress`,
  ]);
  await noteGap(program, figures, "a backup meanwhile", 1, async () => {
    const [node, ...args] = programWords({
      args: ["backup", join(program.home, "backup.tar"), "--force"],
    });
    await promisify(execFile)(node, args, { env: programEnvironment(program.home) });
  });
}
