// `troupe run`: from a folder, a zip or a manifest on this machine to the outputs of a run, in one command; and `troupe
// demo`, which runs an example that ships with the program.
//
// - When no gateway answers, one is started in this process until the run ends, unless --url names one.
// - Everything is read from this machine before anything is started or sent.

import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Job, TroupeClient, TroupeUnreachable } from "../../sdk/src/index.ts";
import type { RunningProgram } from "../app/app.ts";
import { describePackage } from "../blueprints/describe-package.ts";
import type { JsonObject } from "../engine/json.ts";
import { type Priority, priorities } from "../engine/share.ts";
import { noteWarnings, readTarget, type Target, uploadTarget } from "./bundles.ts";
import { type Call, exitCodes, UsageError } from "./command.ts";
import { configFor, gatewayAddress } from "./connection.ts";
import { readObject, withInputs } from "./input.ts";
import { listenForInterrupts } from "./interrupts.ts";
import { oneOf } from "./lists.ts";
import { gatewayRun, runtimeRun } from "./named-run.ts";
import { startServer } from "./serve.ts";
import { type ServerCall, withServer } from "./session.ts";
import { cleanText } from "./text.ts";
import { started, watchesAsked, watchRun } from "./watching.ts";

const DEMO = fileURLToPath(new URL("../../examples/document-digest", import.meta.url));

/** What is to be run, as it was read from this machine. */
interface RunPlan {
  readonly target: Target;
  readonly name: string | null;
  readonly inputs: JsonObject | undefined;
  readonly config: JsonObject | undefined;
  readonly priority: Priority | undefined;
  readonly watches: boolean;
}

export const demo = (call: Call): Promise<number> => run({ ...call, words: [DEMO] });

export async function run(call: Call): Promise<number> {
  const plan: RunPlan = {
    target: readTarget(call),
    name: call.text("name"),
    inputs: readObject(call, "input"),
    config: readObject(call, "config"),
    priority: oneOf(call, "priority", priorities),
    watches: watchesAsked(call, true),
  };
  noteMissingPayloads(call, plan.target);
  if (call.flag("runtime")) return withServer(call, (server) => runOnRuntime(server, plan));
  if (call.text("url") !== null) return withServer(call, (server) => runOnGateway(server, plan));
  // Until the program of our own has stopped, not only while it is used.
  const interrupts = listenForInterrupts(() => process.exit(exitCodes.interrupted));
  try {
    const own = await startOwnGateway(call, interrupts.signal);
    if (own === null) return await withServer(call, (server) => runOnGateway(server, plan));
    const there = { ...call, text: (name: string) => (name === "url" ? own.gatewayUrl : call.text(name)) };
    try {
      return await withServer(there, (server) => runOnGateway(server, { ...plan, watches: true }), {
        isOwnServer: true,
      });
    } finally {
      await own.close();
    }
  } catch (error) {
    if (interrupts.signal.aborted) return exitCodes.interrupted;
    throw error;
  } finally {
    interrupts.release();
  }
}

/** A manifest in a bundle's folder is mostly meant to be run with its payloads. */
function noteMissingPayloads({ terminal }: Call, { kind, path }: Target): void {
  const folder = dirname(path);
  if (kind !== "manifest" || basename(path) !== "manifest.json" || !existsSync(join(folder, "payloads")))
    return;
  terminal.note(`Only the manifest is run, without its payloads; \`troupe run ${folder}\` includes them.`);
}

// ------------------------------------------------------------------------------------------ the gateway

async function runOnGateway(call: ServerCall, plan: RunPlan): Promise<number> {
  const { client } = call;
  let job: Job | null = null;
  try {
    const bundle = await uploadTarget(call, plan.target);
    tell(call, plan, `Bundle ${bundle.bundle_id}`);
    job = await client.jobs.create({
      bundle_id: bundle.bundle_id,
      name: plan.name ?? undefined,
      resolved_configuration: plan.config,
    });
    tell(call, plan, `Job ${job.job_id}`);
    const run = await client.runs.start(job.job_id, { inputs: plan.inputs, priority: plan.priority });
    job = null;
    const also = { bundle_id: bundle.bundle_id };
    if (!plan.watches) return started(call, run.run_id, { ...also, ...run });
    tell(call, plan, `Run ${run.run_id}`);
    return await watchRun(call, gatewayRun(call, run.run_id), also);
  } finally {
    // The job stays: it can be run again when what was wrong with the run is fixed.
    if (job !== null)
      call.terminal.note(`The job ${cleanText(job.job_id)} is there; troupe runs start runs it.`);
  }
}

/** Without watching, the run's id is alone on stdout, for scripts. */
function tell({ terminal, flag }: Call, { watches }: RunPlan, line: string): void {
  if (flag("json")) return;
  if (watches) terminal.print(cleanText(line));
  else terminal.note(cleanText(line));
}

// -------------------------------------------------------------------------------------- the runtime API

async function runOnRuntime(call: ServerCall, plan: RunPlan): Promise<number> {
  const { id, run_id } = await submit(call, plan);
  if (!plan.watches) return started(call, id, { job_id: id, run_id });
  if (!call.flag("json")) call.terminal.print(`Job ${cleanText(id)}`);
  return watchRun(call, runtimeRun(call, id));
}

/** Sends it. A folder is registered by path, so the runtime must see the same disk. */
async function submit(call: ServerCall, { target, inputs, config, priority }: RunPlan) {
  const { runtime } = call;
  if (target.kind === "zip") {
    throw new UsageError("The runtime API takes a folder or a manifest; without --runtime a zip can be run.");
  }
  if (target.kind === "folder") {
    const bundle = await runtime.registerBundle(realpathSync(target.path));
    noteWarnings(call, bundle.warnings ?? []);
    return runtime.submit({ bundle_id: bundle.bundle_id, inputs, config, priority });
  }
  if (config !== undefined) {
    throw new UsageError("--config belongs to a bundle folder; a manifest alone has no configuration.");
  }
  const { manifest } = target;
  // The runtime checks it and reports its problems.
  const { warnings } = describePackage({ manifest, configuration: null, graph: null }, null);
  noteWarnings(call, warnings);
  const given = inputs === undefined ? manifest : withInputs(manifest, inputs);
  return runtime.submit(priority === undefined ? given : { ...given, priority });
}

// ------------------------------------------------------------------------------ a gateway of our own

/** @returns the program that was started, or null when a gateway answers */
async function startOwnGateway(call: Call, signal: AbortSignal): Promise<RunningProgram | null> {
  const config = configFor(call, "gateway");
  // No gateway listens at a port that the system will choose.
  const missing = config.apiPort === 0 ? "SVC_API_PORT is 0." : await whyUnreachable(call, signal);
  if (missing === null) return null;
  const own = await startServer({
    ...config,
    // Its log would disturb the live screen, unless a level was set.
    ...(!config.fromEnvironment.includes("SVC_LOG_LEVEL") && { logLevel: "error" as const }),
  });
  call.terminal.note(`${missing} This process runs one for the length of the run, at ${own.gatewayUrl}.`);
  return own;
}

/** @returns null when a gateway answers, or another program does, which is for the run to meet; else that none does */
async function whyUnreachable(call: Call, signal: AbortSignal): Promise<string | null> {
  const { baseUrl, fetch } = gatewayAddress(call);
  try {
    await new TroupeClient({ baseUrl, fetch, signal, retries: 0 }).system.health();
    return null;
  } catch (error) {
    if (!(error instanceof TroupeUnreachable)) throw error;
    return error.status === null ? error.message : null;
  }
}
