// `troupe models …`: models that the gateway knows, and what of them is installed.

import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { Model, NewModel } from "../../sdk/src/index.ts";
import { type Call, exitCodes, printAnswer, UsageError } from "./command.ts";
import { checkedId, idOf } from "./ids.ts";
import { readLine } from "./input.ts";
import { countOf, limitOf, printList } from "./lists.ts";
import { ending, followed, showEnd } from "./operations.ts";
import { ago, fieldLines } from "./record-text.ts";
import type { ServerCall } from "./session.ts";
import type { Style } from "./terminal.ts";
import { bytes, cleanText } from "./text.ts";

const OLLAMA_URL = "http://127.0.0.1:11434";

const rowStyles: Readonly<Partial<Record<Model["state"], Style>>> = { installing: "yellow", failed: "red" };

export async function list(call: ServerCall): Promise<number> {
  return printList<Model>(call, {
    limit: limitOf(call),
    items: (pageSize) => call.client.models.list({ page_size: pageSize }),
    head: ["MODEL", "STATE", "SIZE", "QUANTISATION", "FROM"],
    row: (model) => [
      model.model_id,
      model.state,
      model.size === null ? "-" : bytes(model.size),
      model.quantisation ?? "-",
      sourceText(model),
    ],
    style: ({ state }) => rowStyles[state] ?? null,
    nothing: "No models. `troupe models add FILE` registers one.",
  });
}

export async function show(call: ServerCall): Promise<number> {
  const model = await call.client.models.get(idOf(call, "model"));
  return printAnswer(call, model, () => modelLines(model));
}

export async function add(call: ServerCall): Promise<number> {
  const context = countOf(call, "context", { example: 8192 });
  const registration: NewModel = {
    source: await sourceOf(call),
    ...given("model_id", call.text("id")),
    ...given("name", call.text("name")),
    ...given("license", call.text("license")),
    ...given("context", context),
  };
  const model = await call.client.models.register(registration);
  if (call.flag("install") !== true)
    return printAnswer(
      call,
      model,
      () => `${cleanText(model.model_id)} registered; troupe models install ${cleanText(model.model_id)}`,
    );
  return ending(call, (await call.client.models.install(model.model_id)).operation_id);
}

export async function install(call: ServerCall): Promise<number> {
  const operation = await call.client.models.install(idOf(call, "model"), call.flag("force") === true);
  return ending(call, operation.operation_id);
}

export async function update(call: ServerCall): Promise<number> {
  const operation = await call.client.models.refresh(idOf(call, "model"), call.flag("force") === true);
  return ending(call, operation.operation_id);
}

export async function validate(call: ServerCall): Promise<number> {
  const context = countOf(call, "context", { example: 8192 }) ?? undefined;
  const found = await call.client.models.validate(idOf(call, "model"), context);
  printAnswer(call, found, () =>
    [found.verdict, ...found.warnings.map((one) => `warning: ${one}`)].map(cleanText),
  );
  return found.valid ? exitCodes.success : exitCodes.failure;
}

export async function serve(call: ServerCall): Promise<number> {
  const settings = {
    ...given("context", countOf(call, "context", { example: 8192 })),
    ...given("concurrency", countOf(call, "concurrency", { example: 2 })),
    ...given("queue", countOrNone(call, "queue", 64)),
    ...given("idle_unload_seconds", countOrNone(call, "idle-unload", 300)),
    ...(call.flag("embeddings") === true && { embeddings: true }),
  };
  const operation = await call.client.models.serve(idOf(call, "model"), settings);
  return ending(call, operation.operation_id);
}

export async function stop(call: ServerCall): Promise<number> {
  const id = idOf(call, "model");
  const stopped = await call.client.models.stop(id);
  return printAnswer(call, stopped, () => [`${cleanText(id)} is served no more`]);
}

/** What is installed goes, and then the registration, unless it is to stay or another node has the model. */
export async function remove(call: ServerCall): Promise<number> {
  const id = idOf(call, "model");
  const { models } = call.client;
  const dry_run = call.flag("dry-run") === true;
  const { operation_id: operationId } = await models.uninstall(id, {
    dry_run,
    force: call.flag("force") === true,
  });
  const operation = await followed(call, operationId);
  if (operation.error !== null || dry_run || call.flag("keep") === true) return showEnd(call, operation);
  const { installations, used_by: users } = await models.get(id);
  if (installations.length === 0 && users.length === 0) await models.delete({ model_id: id, etag: "*" });
  return showEnd(call, operation);
}

// ---------------------------------------------------------------------------------- what was asked for

/** Files and folders are this machine's: so they are the gateway's only if it is the same. */
async function sourceOf(call: Call): Promise<NewModel["source"]> {
  const [word = ""] = call.words;
  const sha256 = call.text("sha256");
  const key = call.text("key");
  const secret = key === null ? null : readLine(key);
  const server = /^(ollama|openai):(.+)$/s.exec(word);
  if (server !== null) {
    const [, kind = "", model = ""] = server;
    const base_url = call.text("base-url") ?? (kind === "ollama" ? OLLAMA_URL : null);
    if (base_url === null)
      throw new UsageError("An endpoint needs its address: --base-url https://api.example.com/v1");
    return { [kind]: { base_url, model, ...(secret !== null && { api_key: secret }) } };
  }
  if (/^https?:\/\//i.test(word)) {
    if (sha256 === null)
      throw new UsageError("A download is checked: give --sha256 with the 64 digits that its page tells.");
    return { url: word, sha256, ...(secret !== null && { token: secret }) };
  }
  const payload = /^blueprint:([^/]+)\/(.+)$/s.exec(word);
  if (payload !== null) {
    const [, blueprintId = "", path = ""] = payload;
    return { payload: path, blueprint_id: checkedId(blueprintId, "blueprint") };
  }
  if (!existsSync(word))
    throw new UsageError(
      `There is no file or folder ${JSON.stringify(cleanText(word))}. Besides these a model is at https://…, ollama:NAME, openai:NAME or blueprint:ID/PATH.`,
    );
  const path = resolve(word);
  return (await stat(path)).isDirectory() ? { folder: path } : { file: path };
}

const countOrNone = (call: Call, option: string, example: number) =>
  call.text(option) === "0" ? 0 : countOf(call, option, { example });

function given<Name extends string, Value>(name: Name, value: Value | null | undefined) {
  return (value == null ? {} : { [name]: value }) as { readonly [Key in Name]?: Value };
}

// ------------------------------------------------------------------------------------------- in words

function sourceText({ source }: Pick<Model, "source">): string {
  const { file, folder, url, payload, blueprint_id: blueprintId } = source;
  if (payload !== undefined) return `blueprint:${String(blueprintId)}/${String(payload)}`;
  for (const kind of ["ollama", "openai"] as const) {
    const server = source[kind] as { readonly base_url?: unknown; readonly model?: unknown } | undefined;
    if (server !== undefined) return `${kind}:${String(server.model)} at ${String(server.base_url)}`;
  }
  return String(file ?? folder ?? url ?? "");
}

function modelLines(model: Model): readonly string[] {
  return [
    ...fieldLines([
      ["Model", cleanText(model.model_id)],
      ["Name", model.name === model.model_id ? null : cleanText(model.name)],
      ["State", model.state],
      ["From", cleanText(sourceText(model))],
      ["Format", model.format],
      ["Architecture", model.details?.architecture ?? null],
      ["Family", model.family],
      ["Parameters", model.parameters],
      ["Quantisation", model.quantisation],
      ["Context", model.context],
      ["License", model.license && cleanText(model.license)],
      ["Size", model.size === null ? null : bytes(model.size)],
      ["SHA-256", model.sha256],
      ["Used by", model.used_by.length === 0 ? null : model.used_by.map(cleanText).join(", ")],
      ["Registered", ago(model.created_at)],
    ]),
    ...model.installations.map((one) => {
      const pin = one.pinned ? ", pinned" : "";
      const error = one.error === null ? "" : `: ${one.error.code}: ${one.error.detail}`;
      return cleanText(`  on ${one.node_id}: ${one.state}, ${bytes(one.bytes)}${pin}${error}`);
    }),
  ];
}
