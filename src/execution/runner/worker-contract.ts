// What a worker finds when it starts: its files, its environment, and the words of its command.
//
// - The environment is built from nothing: PATH, HOME, LANG, TZ and TMPDIR of the runtime or the sandbox, what the node's
//   config gives or passes on, and the contract's own names, which win over all others. Secrets of the runtime
//   itself are in none of it.
// - A large body is written without blocking the event loop; the usual small ones are written at once.

import { closeSync, constants, existsSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { ExecutorConfig } from "../../engine/graph.ts";
import { isWithheldVariable } from "../../engine/graph.ts";
import type { JsonObject } from "../../engine/json.ts";
import { type Demand, deviceClaims, portsByLabel, portVariable } from "../../engine/resources.ts";
import type { Lease, TaskStart } from "../../engine/task-port.ts";
import type { OpenFolder } from "../../lib/open-folder.ts";
import { isInside, joinInside } from "../../lib/paths.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { valuesOf } from "../process/side-command.ts";
import { preparedFolders } from "./paths.ts";
import { StagingError } from "./staging.ts";
import type { VolumeLink } from "./volume-links.ts";

const WORKSPACE_ALIAS = "/sandbox/job";
const SMALL_FILE_CHARS = 64 * 1024;
const MiB = 1024 ** 2;
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
const NEW_FILE = O_WRONLY | O_CREAT | O_EXCL;
const FILE_THAT_IS_THERE = O_WRONLY | O_NOFOLLOW | O_NONBLOCK;

/** Where one attempt's things are; all absolute. */
export interface AttemptFiles {
  /** The attempt's own folder. */
  readonly folder: string;
  readonly input: string;
  readonly message: string;
  readonly body: string;
  readonly context: string;
  readonly output: string;
  readonly eventStream: string;
  /** Answers of people, as lines of JSON; it grows while the worker runs. */
  readonly humanResponses: string;
}

export function attemptFiles({ envelope }: TaskStart, folder: string): AttemptFiles {
  const inside = (name: string) => join(folder, name);
  const input = inside("input.json");
  return {
    folder,
    input,
    message: inside("message.json"),
    body: typeof envelope.body === "string" ? inside("body.txt") : input,
    context: inside("context.json"),
    output: inside("out"),
    eventStream: inside("events"),
    humanResponses: inside("human-responses.jsonl"),
  };
}

/**
 * Writes the files a worker reads.
 *
 * @param own the attempt's folder
 * @param isSpare whether it has the files already, all but their contents (spare-folders.ts)
 * @throws the system's error
 */
export async function writeAttemptFiles(task: TaskStart, own: OpenFolder, isSpare: boolean): Promise<void> {
  const { envelope } = task;
  const flags = isSpare ? FILE_THAT_IS_THERE : NEW_FILE;
  const write = (name: string, content: string) => writeText(own.path(name), content, flags);
  await write("input.json", JSON.stringify(envelope.body));
  if (typeof envelope.body === "string") await writeText(own.path("body.txt"), envelope.body, NEW_FILE);
  await write("message.json", JSON.stringify(envelope));
  await write("context.json", JSON.stringify(contextIn(task)));
  const responses = task.humanResponses.map((line) => `${line}\n`).join("");
  if (responses !== "" || !isSpare) await write("human-responses.jsonl", responses);
}

/**
 * Makes an attempt's folder, which holds nothing but one for its outputs.
 *
 * @param way from the agent's folder to the attempt's
 * @throws SymlinkInPath when a worker has put one in the way; the system's error
 */
export async function makeAttemptFolder(agent: OpenFolder, way: string): Promise<OpenFolder> {
  using above = agent.made(dirname(way));
  await makeNew(above.path(basename(way)));
  const own = above.folder(basename(way));
  mkdirSync(own.path("out"), { mode: 0o700 });
  return own;
}

/** Makes a folder that holds nothing, whatever somebody had put there. */
async function makeNew(folder: string): Promise<void> {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    await removeTree(folder);
    mkdirSync(folder, { mode: 0o700 });
  }
}

function contextIn(task: TaskStart) {
  const module = task.config.kind === "executor" ? task.config.module : null;
  return module === null ? contextOf(task) : moduleContextOf(task, module.config);
}

/** What modules get as their second argument. @param config the node's own */
export function moduleContextOf(task: TaskStart, config: JsonObject) {
  return { ...contextOf(task), state: task.agentState, config };
}

/** What SVC_CONTEXT_FILE holds. */
function contextOf(task: TaskStart) {
  const { ref, runId, agentId, workflow } = task;
  return {
    job: {
      job_id: task.publicJobId,
      run_id: runId,
      graph_id: workflow.graph_id,
      job_name: workflow.job_name,
    },
    agent: { agent_id: agentId, sandbox_name: task.sandboxName },
    attempt: ref.attempt,
    max_attempts: task.maxAttempts,
    idempotency_key: task.idempotencyKey,
    agent_state: task.agentState,
    workflow,
  };
}

async function writeText(path: string, text: string, flags: number): Promise<void> {
  if (text.length < SMALL_FILE_CHARS) {
    const file = openSync(path, flags, 0o600);
    try {
      writeFileSync(file, text);
    } finally {
      closeSync(file);
    }
    return;
  }
  await using file = await open(path, flags, 0o600);
  await file.writeFile(text);
}

/** Finds the folder a command runs in. @throws StagingError when it is not inside the workspace */
export async function findWorkdir(config: ExecutorConfig, workspace: string): Promise<string> {
  if (config.workdir === null) return workspace;
  const named = withAlias(config.workdir, workspace, config);
  const path = named === config.workdir ? joinInside(workspace, config.workdir) : named;
  if (path === null || !isInside(workspace, path)) {
    throw new StagingError(`workdir "${config.workdir}" is outside the agent's workspace.`);
  }
  const real = await realpath(path).catch(() => null);
  if (real === null || !(await stat(real)).isDirectory()) {
    throw new StagingError(
      `workdir "${config.workdir}" is no folder in the agent's workspace; stage it with upload_path.`,
    );
  }
  if (!isInside(await realpath(workspace), real)) {
    throw new StagingError(`workdir "${config.workdir}" leaves the agent's workspace through a symlink.`);
  }
  return path;
}

/** The path with a leading alias replaced by the workspace; unchanged when it has none. */
function withAlias(word: string, workspace: string, config: ExecutorConfig): string {
  for (const alias of aliases(config)) {
    if (word === alias) return workspace;
    if (word.startsWith(`${alias}/`)) return join(workspace, word.slice(alias.length + 1));
  }
  return word;
}

function aliases(config: ExecutorConfig): string[] {
  const own = config.sandboxUploadPath?.replace(/\/+$/, "");
  return own ? [own, WORKSPACE_ALIAS] : [WORKSPACE_ALIAS];
}

export interface WorkerPlaces {
  readonly files: AttemptFiles;
  readonly workspace: string;
  readonly workdir: string;
  readonly runFolder: string;
  readonly brought: BroughtPlaces;
  readonly volumes: readonly VolumeLink[];
  /** The Node that the runtime runs on. */
  readonly node: string;
}

/** Where a worker finds what its package brings along or requires; null where there is nothing of the kind. */
export interface BroughtPlaces {
  readonly resources: string | null;
  readonly models: string | null;
}

export function findBrought(home: string, { runId, hasOwnPayload }: TaskStart): BroughtPlaces {
  if (!hasOwnPayload) return { resources: null, models: null };
  const { resources, models } = preparedFolders(home, runId);
  const ifThere = (folder: string) => (existsSync(folder) ? folder : null);
  return { resources: ifThere(resources), models: ifThere(models) };
}

/** Where a worker reads the live events of its run. */
export interface RunEventsPlace {
  readonly url: string;
  /** What it shows there; null when nobody asks for it. */
  readonly token: string | null;
}

/** Where a worker asks the model that its node declares. */
export interface LlmPlace {
  readonly baseUrl: string;
  readonly key: string;
}

/** What `{name}` stands for in a command's words. */
function placeholders(task: TaskStart, places: WorkerPlaces): ReadonlyMap<string, string> {
  const { files, workdir, runFolder } = places;
  return new Map([
    ["input_file", files.input],
    ["message_file", files.message],
    ["body_file", files.body],
    ["context_file", files.context],
    ["output_dir", files.output],
    ["workdir", workdir],
    ["run_dir", runFolder],
    ["job_id", task.publicJobId],
    ["run_id", task.runId],
    ["agent_id", task.agentId],
    ["attempt", String(task.ref.attempt)],
    ["node", places.node],
  ]);
}

const PLACEHOLDER = /(?<!\$)\{([a-z_]+)\}/g;
const SHELL_SAFE = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** The program to start and its arguments, with placeholders and workspace aliases replaced. */
export function commandWords(
  config: ExecutorConfig,
  task: TaskStart,
  places: WorkerPlaces,
): { readonly file: string; readonly args: readonly string[] } {
  const values = placeholders(task, places);
  const fill = (text: string, quote: (value: string) => string) =>
    text.replace(PLACEHOLDER, (whole, name: string) => {
      const value = values.get(name);
      return value === undefined ? whole : quote(value);
    });
  if (typeof config.command === "string") {
    const script = fill(shellAliases(config.command, places.workspace, config), shellQuoted);
    return { file: "/bin/sh", args: ["-c", script] };
  }
  const words = config.command.map((word) =>
    fill(withAlias(word, places.workspace, config), (value) => value),
  );
  const [file = "", ...args] = words;
  return { file, args };
}

/** Replaces aliases where a word of the script begins. */
function shellAliases(script: string, workspace: string, config: ExecutorConfig): string {
  let filled = script;
  for (const alias of aliases(config)) {
    const atWord = new RegExp(`(?<=^|[\\s"'=;|&<>(\`])${RegExp.escape(alias)}(?=$|[\\s"'/;|&<>)\`])`, "g");
    filled = filled.replace(atWord, () => shellQuoted(workspace));
  }
  return filled;
}

/** A value as one word of a shell script; plain ones as they are, so that they also fit between quotes. */
function shellQuoted(value: string): string {
  return SHELL_SAFE.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}

export interface WorkerEnvironment {
  readonly config: ExecutorConfig;
  readonly task: TaskStart;
  readonly places: WorkerPlaces;
  readonly prefixes: readonly string[];
  /** Null when the worker has not asked for them, or nobody serves them. */
  readonly runEvents: RunEventsPlace | null;
  /** Null when its node declares no model, or nobody serves any. */
  readonly llm: LlmPlace | null;
  /** The runtime's own environment. */
  readonly runtimeEnv: Readonly<Record<string, string | undefined>>;
  /** What the worker has before all else. */
  readonly base: Readonly<Record<string, string>>;
}

/** Builds a worker's whole environment. */
export function workerEnvironment(given: WorkerEnvironment): Record<string, string> {
  const { config, task, places, prefixes, runEvents, llm, runtimeEnv, base } = given;
  const passed = config.passEnv.filter((name) => !isWithheldVariable(name));
  const env: Record<string, string> = { ...base, ...valuesOf(passed, runtimeEnv), ...config.environment };
  // A module is given what it gets as arguments.
  if (config.module !== null) return env;
  const { files, workdir, runFolder, brought, volumes } = places;
  const contract = {
    INPUT_FILE: files.input,
    MESSAGE_FILE: files.message,
    BODY_FILE: files.body,
    CONTEXT_FILE: files.context,
    OUTPUT_DIR: files.output,
    EVENT_STREAM: files.eventStream,
    HUMAN_RESPONSES: files.humanResponses,
    JOB_ID: task.publicJobId,
    RUN_ID: task.runId,
    AGENT_ID: task.agentId,
    ATTEMPT: String(task.ref.attempt),
    IDEMPOTENCY_KEY: task.idempotencyKey,
    WORKDIR: workdir,
    RUN_DIR: runFolder,
    TRACEPARENT: task.traceparent,
    BLUEPRINT_CONFIG_JSON: task.configurationJson ?? "{}",
    ...(brought.resources !== null && { RESOURCES_DIR: brought.resources }),
    ...(brought.models !== null && { MODELS_DIR: brought.models }),
    ...(runEvents !== null && { BLUEPRINT_RUN_EVENTS_URL: runEvents.url }),
    ...(runEvents?.token != null && { BLUEPRINT_RUN_EVENTS_TOKEN: runEvents.token }),
    ...(llm !== null && {
      LLM_API_BASE: llm.baseUrl,
      LLM_API_KEY: llm.key,
      LLM_MODEL: config.llm?.model ?? "",
    }),
    ...(config.demand !== null && allocationVariables(config, config.demand, { lease: task.lease, volumes })),
  };
  for (const prefix of new Set(["SVC_", ...prefixes])) {
    for (const [name, value] of Object.entries(contract)) env[prefix + name] = value;
  }
  // Where clients of the OpenAI protocol look.
  if (llm !== null && config.llm?.openaiEnv === true) {
    env.OPENAI_BASE_URL = llm.baseUrl;
    env.OPENAI_API_KEY = llm.key;
  }
  // Where OpenTelemetry's libraries look.
  env.TRACEPARENT = task.traceparent;
  // And CUDA's: programs see these GPUs alone, as numbers 0 and on.
  if (task.lease?.gpus !== undefined) env.CUDA_VISIBLE_DEVICES = task.lease.gpus.join();
  return env;
}

/** What of the machine is the command's own. */
function allocationVariables(
  config: ExecutorConfig,
  demand: Demand,
  { lease, volumes }: { readonly lease: Lease | null; readonly volumes: readonly VolumeLink[] },
): Record<string, string> {
  const ports = portsByLabel(config.ports, lease?.ports);
  const allocation = {
    cpu: demand.cpuMillis / 1_000,
    memory_mb: demand.memoryBytes / MiB,
    disk_mb: demand.diskBytes / MiB,
    gpu_indices: lease?.gpus ?? [],
    ports: Object.fromEntries(ports),
    volumes: Object.fromEntries(volumes.map(({ need, path }) => [need.name, path])),
    devices: deviceClaims(demand).map(({ name }) => name),
  };
  const variables = Array.from(ports, ([label, port]) => [portVariable(label), String(port)]);
  return { ALLOCATION_JSON: JSON.stringify(allocation), ...Object.fromEntries(variables) };
}
