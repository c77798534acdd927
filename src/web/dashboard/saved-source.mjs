// A run that is told by files instead of by a gateway: events.jsonl, as runs are saved, which may still grow. Beside it
// may lie run.json, the run's record. The outputs are the files in artifacts.json, or without that those that lie there.

import { hash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { open, readdir, readFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { contentTypeOf, fileInside, filesBelow } from "./files.mjs";
import { terminalTypes } from "./run-stream.mjs";

const LOOK_EVERY_MS = 300;
const READ_BYTES = 256 * 1024;
const LINE_BYTES_MAX = 4 * 1024 * 1024;
const JSON_BYTES_MAX = 16 * 1024 * 1024;
const LF = 10;
/** What is told of a run, in the folder of its events; what it made has other names. */
const EVIDENCE =
  /^(?:(?:events|logs|errors|timeline)(?:\.\d+)?\.jsonl|(?:run|config|inputs|result|observability_summary|timeline|artifacts)\.json)$/;
/** What a header may hold. */
const CONTENT_TYPE = /^[\w.+-]+\/[\w.+-]+(?:; ?[\w-]+=[\w-]+)*$/;
/** As in addresses of this server. */
const ARTIFACT_ID = /^[\w.-]{1,200}$/;

export class SavedSource {
  pageUrl = null;
  runId;
  endsWithRun = false;
  #eventsFile;
  #folder;
  #outputsFolder;

  /**
   * @param eventsFile path of events.jsonl; it may come into being later
   * @param outputsFolder where the files are that the run has left; null: only those in artifacts.json are told of
   */
  constructor({ eventsFile, outputsFolder, runId }) {
    this.#eventsFile = eventsFile;
    this.#folder = dirname(eventsFile);
    this.#outputsFolder = outputsFolder;
    this.runId = runId;
  }

  /** As GatewaySource.follow; without an end when the file has none. */
  async follow(afterId, { onFrame, onState, hasRoom, signal }) {
    const place = { id: 0, isOver: false };
    const take = (line) => {
      const frame = frameOf(line, place.id + 1);
      if (frame === null || place.isOver) return;
      place.id = frame.id;
      place.isOver = terminalTypes.has(frame.event);
      if (frame.id > afterId) onFrame(frame);
    };
    for (const file of await this.#fullParts())
      await tail(file, take, { hasRoom, signal, isFinished: () => true });
    onState("live");
    await tail(this.#eventsFile, take, { hasRoom, signal, isFinished: () => place.isOver });
  }

  /** Long histories are saved in parts: events.001.jsonl and so on, of which events.jsonl is the last. */
  async #fullParts() {
    const name = basename(this.#eventsFile, ".jsonl");
    const isPart = (file) => file.startsWith(`${name}.`) && /\.\d+\.jsonl$/.test(file);
    const files = await readdir(this.#folder).catch(() => []);
    const numberOf = (file) => Number(/(\d+)\.jsonl$/.exec(file)[1]);
    return files
      .filter(isPart)
      .sort((a, b) => numberOf(a) - numberOf(b))
      .map((file) => join(this.#folder, file));
  }

  run() {
    return readJson(this.#folder, "run.json");
  }

  async outputs() {
    return { items: (await this.#artifacts()).items, next_page_token: null };
  }

  /** Files by their ids, and the folder that their names are seen from. */
  async #artifacts() {
    const list = await readJson(this.#folder, "artifacts.json");
    if (list === null) return { folder: this.#outputsFolder, items: await this.#filesThere() };
    const items = Array.isArray(list) ? list : (list.items ?? list.data);
    const isUsable = (one) => typeof one?.name === "string" && ARTIFACT_ID.test(one.artifact_id);
    return { folder: this.#folder, items: Array.isArray(items) ? items.filter(isUsable) : [] };
  }

  /** Without a history the folder is that of no saved run, and its files are not served. */
  async #filesThere() {
    if (this.#outputsFolder === null || !existsSync(this.#eventsFile)) return [];
    const isTold = (path) =>
      path === relative(this.#outputsFolder, this.#folder) ||
      (dirname(join(this.#outputsFolder, path)) === this.#folder &&
        (EVIDENCE.test(basename(path)) || basename(path) === basename(this.#eventsFile)));
    const files = await filesBelow(this.#outputsFolder, (path) => !isTold(path));
    return files.map(({ name, size }) => ({
      artifact_id: `file_${hash("sha256", name, "hex").slice(0, 32)}`,
      name,
      size,
      content_type: contentTypeOf(name),
      primary: basename(name).startsWith("final_artifact."),
    }));
  }

  async file(id) {
    const { folder, items } = await this.#artifacts();
    const artifact = items.find((one) => one.artifact_id === id);
    const found = artifact === undefined ? null : await fileInside(folder, artifact.name);
    if (found === null) return { status: 404, headers: {}, body: null };
    const { content_type: type } = artifact;
    const name = encodeURIComponent(basename(artifact.name).toWellFormed());
    return {
      status: 200,
      headers: {
        "content-type": CONTENT_TYPE.test(type) ? type : contentTypeOf(artifact.name),
        "content-length": String(found.size),
        "content-disposition": `attachment; filename*=UTF-8''${name}`,
      },
      body: found.size === 0 ? null : createReadStream(found.path, { end: found.size - 1 }),
    };
  }
}

/**
 * Reads a file line by line, and continues as it grows.
 *
 * @param isFinished asked at the end of what is there
 */
async function tail(path, take, { hasRoom, signal, isFinished }) {
  const buffer = Buffer.alloc(READ_BYTES);
  let offset = 0;
  let rest = Buffer.alloc(0);
  while (!signal.aborted) {
    const file = await open(path).catch(() => null);
    try {
      for (let read = await more(file, buffer, offset); read > 0; read = await more(file, buffer, offset)) {
        offset += read;
        rest = takeLines(Buffer.concat([rest, buffer.subarray(0, read)]), take);
        await hasRoom();
        if (signal.aborted) return;
      }
    } finally {
      await file?.close();
    }
    if (isFinished()) {
      // A finished file may end without a line break.
      if (rest.length > 0) take(rest.toString("utf8"));
      return;
    }
    await delay(LOOK_EVERY_MS, undefined, { signal }).catch(() => {});
  }
}

async function more(file, buffer, offset) {
  return file === null ? 0 : (await file.read(buffer, 0, buffer.length, offset)).bytesRead;
}

/** @returns what is behind the last line break; of a line that is too long nothing is kept */
function takeLines(bytes, take) {
  let from = 0;
  for (let end = bytes.indexOf(LF); end >= 0; end = bytes.indexOf(LF, from)) {
    take(bytes.toString("utf8", from, end));
    from = end + 1;
  }
  const rest = bytes.subarray(from);
  return rest.length > LINE_BYTES_MAX ? Buffer.alloc(0) : Buffer.from(rest);
}

/** @param nextId of an event that does not tell its own @returns null for what is no event */
function frameOf(line, nextId) {
  try {
    const event = JSON.parse(line);
    if (typeof event?.type !== "string") return null;
    const id = Number.isSafeInteger(event.id) && event.id >= nextId ? event.id : nextId;
    const type = /^[\w.:-]+$/.test(event.type) ? event.type : "message";
    const data = event.id === id ? line.replace(/[\r\n]/g, "") : JSON.stringify({ ...event, id });
    return { id, event: type, text: `id: ${id}\nevent: ${type}\ndata: ${data}\n\n` };
  } catch {
    return null;
  }
}

/** @returns null when it is not there, or cannot be used */
async function readJson(folder, name) {
  const found = await fileInside(folder, name);
  if (found === null || found.size > JSON_BYTES_MAX) return null;
  try {
    return JSON.parse(await readFile(found.path, "utf8"));
  } catch {
    return null;
  }
}
