// `troupe run`: submit, watch, say how it ended and where the files are.

import { fileURLToPath } from "node:url";
import { type Config, loadConfig } from "../app/config.ts";
import { RuntimeClient, Unreachable } from "./client.ts";
import { type Call, exitCodes } from "./command.ts";
import { configFor, findClient, settled, throughSocket } from "./connection.ts";
import { type WatchStyle, watch, watchStyleFor } from "./follow.ts";
import { listenForInterrupts } from "./interrupts.ts";
import { endLines } from "./result-text.ts";
import { artifactsOf } from "./runtime-jobs.ts";
import { checkSaveFolder, saveFiles } from "./save.ts";
import { startServer } from "./serve.ts";
import { readSubmission, type Submission, submit } from "./submission.ts";
import { cleanText } from "./text.ts";
import type { JobDetail, RunArtifact } from "./wire.ts";

const DEMO = fileURLToPath(new URL("../../examples/document-digest", import.meta.url));

/** `troupe demo`: `troupe run --watch` of an example that ships with the program. */
export function demo(call: Call): Promise<number> {
  const flag = (name: string) => (name === "watch" ? true : call.flag(name));
  return run({ ...call, words: [DEMO], flag });
}

export async function run(call: Call): Promise<number> {
  checkSaveFolder(call);
  const submission = readSubmission(call);
  if (submission.kind === "manifest" && submission.hint !== null) call.terminal.note(submission.hint);
  const interrupts = listenForInterrupts(() => process.exit(exitCodes.interrupted));
  try {
    const connection = await connect(call, interrupts.signal);
    try {
      return await runOn(call, connection, submission, interrupts.signal);
    } finally {
      await connection.close();
    }
  } catch (error) {
    if (interrupts.signal.aborted) return exitCodes.interrupted;
    throw error;
  } finally {
    interrupts.release();
  }
}

async function runOn(
  call: Call,
  connection: Connection,
  submission: Submission,
  interrupt: AbortSignal,
): Promise<number> {
  const { client, isOwn } = connection;
  const { jobId, runId } = await submit(call, client, submission);
  const style = chooseStyle(call, isOwn);
  if (style === null) return submitted(call, jobId, runId);
  if (!call.flag("json")) call.terminal.print(`Job ${cleanText(jobId)}`);
  try {
    await watch({ id: jobId, events: client.follow(jobId) }, call.terminal, style);
    return await ended(call, connection, jobId);
  } catch (error) {
    if (!interrupt.aborted) throw error;
    return interrupted(call, jobId, isOwn);
  }
}

/** How the run is watched; null when it is only submitted. */
function chooseStyle(call: Call, isOwn: boolean): WatchStyle | null {
  const asked = call.flag("watch");
  const watches = asked ?? call.terminal.isScreen;
  if (call.flag("json")) return asked === true || isOwn ? "silent" : null;
  if (watches) return watchStyleFor(call.terminal);
  if (!isOwn) return null;
  return asked === false ? "silent" : "lines";
}

interface Connection {
  readonly client: RuntimeClient;
  /** Whether the runtime lives in this process, for the length of the run. */
  readonly isOwn: boolean;
  close(): Promise<void>;
}

async function connect(call: Call, signal: AbortSignal): Promise<Connection> {
  const given = call.text("url");
  const client = findClient(call, configFor(call, "client"), signal);
  const missing = client === null ? new Unreachable("No address is configured.") : await look(client);
  if (client !== null && missing === null) return { client, isOwn: false, close: async () => {} };
  if (given !== null && missing !== null) throw missing;
  const config = settled(loadConfig(call.env, "up"));
  const server = await startServer(ownConfig(config, missing?.isStranger === true));
  const { runtimeUrl, runtimeSocket } = server;
  const place = runtimeUrl ?? runtimeSocket;
  if (place === null) throw new Error("A runtime of our own serves the runtime API.");
  call.terminal.note(`${missing?.message} This process runs one for the length of the run, at ${place}.`);
  const token = config.runtimeApiTokens[0] ?? null;
  const door = runtimeUrl === null ? throughSocket(place) : { baseUrl: runtimeUrl, token };
  return {
    client: new RuntimeClient({ ...door, signal }),
    isOwn: true,
    close: () => server.close(),
  };
}

/** @returns null when a runtime answers, else why none does */
async function look(client: RuntimeClient): Promise<Unreachable | null> {
  try {
    await client.health();
    return null;
  } catch (error) {
    if (error instanceof Unreachable) return error;
    throw error;
  }
}

/**
 * A runtime inside another command: it serves no gateway, takes another port when a stranger holds the configured one, and keeps its
 * own log out of the picture unless a level was asked for.
 */
function ownConfig(config: Config, isPortTaken: boolean): Config {
  return {
    ...config,
    command: "client",
    ...(isPortTaken && { runtimeApiPort: 0 }),
    // Closed for others, it is still how this command reaches its own runtime.
    ...(config.runtimeApi === "off" && { runtimeApi: "socket" as const }),
    ...(!config.fromEnvironment.includes("SVC_LOG_LEVEL") && { logLevel: "error" as const }),
  };
}

function submitted(call: Call, jobId: string, runId: string | null): number {
  if (call.flag("json")) call.terminal.print(JSON.stringify({ job_id: jobId, run_id: runId }));
  else {
    call.terminal.print(cleanText(jobId));
    call.terminal.note(`Submitted. Follow it with: troupe events ${cleanText(jobId)} --follow`);
  }
  return exitCodes.success;
}

function interrupted(call: Call, jobId: string, isOwn: boolean): number {
  const id = cleanText(jobId);
  call.terminal.note(
    isOwn
      ? `Stopped watching. The job is kept and carries on at the next \`troupe up\` or \`troupe run\`.`
      : `Stopped watching; the job goes on. Follow it: troupe events ${id} --follow. End it: troupe cancel ${id}`,
  );
  return exitCodes.interrupted;
}

async function ended(call: Call, { client, isOwn }: Connection, jobId: string): Promise<number> {
  const { terminal } = call;
  const detail = await client.job(jobId);
  const artifacts = await artifactsOf(client, detail.job.run_id);
  const saved = await save(call, client, artifacts);
  const address = (url: string) => client.address(url);
  const place: Place = ({ artifact_id: id, url }) => saved.get(id) ?? address(url);
  const { status, result, failure = null } = detail.job;
  const run = { id: jobId, status, result, failure, files: artifacts, place, address };
  if (call.flag("json")) terminal.print(JSON.stringify(summary(detail, artifacts, place)));
  else for (const line of endLines(run, terminal.paint)) terminal.print(line);
  if (isOwn && artifacts.length > saved.size) {
    terminal.note(
      "The addresses answer while a runtime is up (`troupe up`); --save FOLDER copies the outputs at once.",
    );
  }
  switch (status) {
    case "completed":
      return exitCodes.success;
    case "cancelled":
      return exitCodes.cancelled;
    default:
      return exitCodes.failure;
  }
}

async function save(
  call: Call,
  client: RuntimeClient,
  artifacts: readonly RunArtifact[],
): Promise<ReadonlyMap<string, string>> {
  const folder = call.text("save");
  if (folder === null) return new Map();
  const outputs = artifacts.filter((artifact) => artifact.kind === "output");
  const files = outputs.length > 0 ? outputs : artifacts;
  return saveFiles(files, (file) => client.download(file.url), folder, call.flag("force") === true);
}

type Place = (file: Pick<RunArtifact, "artifact_id" | "url">) => string;

function summary({ job }: JobDetail, artifacts: readonly RunArtifact[], place: Place) {
  return {
    job_id: job.job_id,
    run_id: job.run_id ?? null,
    status: job.status,
    result: job.result ?? null,
    failure: job.failure ?? null,
    artifacts: artifacts.map((artifact) => ({ ...artifact, place: place(artifact) })),
  };
}
