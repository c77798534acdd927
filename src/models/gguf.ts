// The header of a GGUF file (ggml describes it in its file gguf.md): what llama.cpp and what builds on
// it load. Of its data only the place is checked.
//
// A file may come from anywhere: each count is bounded by the bytes that are there for it, and what is not needed is passed
// over, a vocabulary for example.

import type { FileHandle } from "node:fs/promises";
import { FileCursor } from "./file-cursor.ts";
import type { ModelDetails } from "./model-details.ts";
import { ModelInvalid } from "./model-invalid.ts";
import { fileTypes, tensorTypes } from "./tensor-types.ts";

/** The largest known headers have some 20 MiB, most of it the vocabulary. */
const HEADER_BYTES_MAX = 64 * 1024 * 1024;
const ENTRIES_MAX = 10_000;
const TENSORS_MAX = 1_000_000;
const NAME_BYTES_MAX = 1_024;
/** Longer texts are passed over: of a chat template it is only told that there is one. */
const TEXT_BYTES_MAX = 1_024;
/** Of lists of numbers that are kept: one for each layer. */
const NUMBERS_MAX = 1_024;
const DIMENSIONS_MAX = 8;
const ALIGNMENT = 32;

const MAGIC = "GGUF";
const VERSIONS: ReadonlySet<number> = new Set([2, 3]);

/** Bytes of a value, by its type. */
const SCALAR_BYTES: readonly (number | undefined)[] = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];
const TEXT = 8;
const LIST = 9;

/** A text that is too long is null; of a list that is passed over its length is kept. */
type Value = number | boolean | string | null | readonly number[] | { readonly length: number };

/**
 * @param size bytes of the file
 * @throws ModelInvalid; the system's error
 */
export async function readGguf(file: FileHandle, size: number): Promise<ModelDetails> {
  const cursor = new FileCursor(file, size, HEADER_BYTES_MAX);
  await cursor.load(24);
  if (cursor.take(4).toString("latin1") !== MAGIC) throw new ModelInvalid("The file is no GGUF file.");
  const version = cursor.u32();
  if (!VERSIONS.has(version)) throw new ModelInvalid(versionText(version));
  const [tensorCount, entryCount] = [cursor.u64(), cursor.u64()];
  if (entryCount > ENTRIES_MAX || tensorCount > TENSORS_MAX) {
    throw new ModelInvalid(
      `It says that it has ${entryCount} entries and ${tensorCount} tensors; ${ENTRIES_MAX} and ${TENSORS_MAX} are the most.`,
    );
  }
  const entries = new Entries();
  for (let i = 0; i < entryCount; i++) {
    const name = await readName(cursor);
    await cursor.load(4);
    entries.set(name, await readValue(cursor, cursor.u32()));
  }
  const tensors = await readTensors(
    cursor,
    tensorCount,
    entries.number("general.alignment") ?? ALIGNMENT,
    size,
  );
  return detailsOf(version, entries, tensors);
}

class Entries {
  readonly #values = new Map<string, Value>();

  set(name: string, value: Value): void {
    if (this.#values.has(name))
      throw new ModelInvalid(`It has two entries of the name ${JSON.stringify(name)}.`);
    this.#values.set(name, value);
  }

  /** Of the model's kind, such as llama.context_length. */
  own(name: string): number | null {
    return this.number(`${this.text("general.architecture")}.${name}`);
  }

  number(name: string): number | null {
    const value = this.#values.get(name);
    return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
  }

  text(name: string): string | null {
    const value = this.#values.get(name);
    return typeof value === "string" ? value : null;
  }

  /** One number for each of `count` layers: as a list, or one that holds for all. Null when it has neither. */
  layers(name: string, count: number): readonly number[] | null {
    const value = this.#values.get(`${this.text("general.architecture")}.${name}`);
    const numbers = Array.isArray(value) ? (value as readonly number[]) : [];
    if (numbers.length === count && numbers.every((one) => one >= 0)) return numbers;
    const one = this.own(name);
    return one === null ? null : Array.from({ length: count }, () => one);
  }

  /** Of a list, kept or not. */
  length(name: string): number | null {
    const value = this.#values.get(name);
    return typeof value === "object" && value !== null ? value.length : null;
  }

  isFalse(name: string): boolean {
    return this.#values.get(name) === false;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }
}

async function readName(cursor: FileCursor): Promise<string> {
  await cursor.load(8);
  const bytes = cursor.u64();
  if (bytes > NAME_BYTES_MAX)
    throw new ModelInvalid(
      `At byte ${cursor.position - 8} is a name of ${bytes} bytes; ${NAME_BYTES_MAX} are the most.`,
    );
  await cursor.load(bytes);
  return cursor.take(bytes).toString("utf8");
}

async function readValue(cursor: FileCursor, type: number): Promise<Value> {
  if (type === LIST) return readList(cursor);
  if (type === TEXT) {
    await cursor.load(8);
    const bytes = cursor.u64();
    if (bytes > TEXT_BYTES_MAX) {
      cursor.skip(bytes);
      return null;
    }
    await cursor.load(bytes);
    return cursor.take(bytes).toString("utf8");
  }
  await cursor.load(scalarBytes(cursor, type));
  return takeScalar(cursor, type);
}

async function readList(cursor: FileCursor): Promise<Value> {
  await cursor.load(12);
  const type = cursor.u32();
  const length = cursor.u64();
  // The format has them, no model does, and llama.cpp does not load them.
  if (type === LIST) throw new ModelInvalid(`At byte ${cursor.position - 12} is a list of lists.`);
  if (type === TEXT) {
    for (let i = 0; i < length; i++) {
      if (!cursor.has(8)) await cursor.load(8);
      cursor.skip(cursor.u64());
    }
  } else {
    const bytes = scalarBytes(cursor, type) * length;
    if (length > NUMBERS_MAX) cursor.skip(bytes);
    else {
      await cursor.load(bytes);
      return Array.from({ length }, () => Number(takeScalar(cursor, type)));
    }
  }
  return { length };
}

function scalarBytes(cursor: FileCursor, type: number): number {
  const bytes = SCALAR_BYTES[type];
  if (bytes === undefined)
    throw new ModelInvalid(`At byte ${cursor.position} is a value of the unknown type ${type}.`);
  return bytes;
}

function takeScalar(cursor: FileCursor, type: number): number | boolean {
  const bytes = cursor.take(scalarBytes(cursor, type));
  switch (type) {
    case 0:
      return bytes.readUInt8();
    case 1:
      return bytes.readInt8();
    case 2:
      return bytes.readUInt16LE();
    case 3:
      return bytes.readInt16LE();
    case 4:
      return bytes.readUInt32LE();
    case 5:
      return bytes.readInt32LE();
    case 6:
      return bytes.readFloatLE();
    case 7:
      return bytes.readUInt8() !== 0;
    case 10:
      return Number(bytes.readBigUInt64LE());
    case 11:
      return Number(bytes.readBigInt64LE());
    default:
      return bytes.readDoubleLE();
  }
}

interface Tensors {
  readonly parameters: number;
  readonly bytes: number;
  /** By the name of their type. */
  readonly bytesByType: ReadonlyMap<string, number>;
  readonly unknownTypes: readonly number[];
}

/** @throws ModelInvalid also when a tensor lies outside the file */
async function readTensors(
  cursor: FileCursor,
  count: number,
  alignment: number,
  size: number,
): Promise<Tensors> {
  if (alignment === 0 || alignment % 8 !== 0)
    throw new ModelInvalid(`Its alignment is ${alignment}, and no multiple of 8.`);
  const bytesByType = new Map<string, number>();
  const unknownTypes = new Set<number>();
  let [parameters, bytes, end] = [0, 0, 0];
  let last = "";
  for (let i = 0; i < count; i++) {
    const name = JSON.stringify(await readName(cursor));
    await cursor.load(4);
    const dimensions = cursor.u32();
    if (dimensions > DIMENSIONS_MAX)
      throw new ModelInvalid(`The tensor ${name} has ${dimensions} dimensions.`);
    await cursor.load(dimensions * 8 + 12);
    const shape = Array.from({ length: dimensions }, () => cursor.u64());
    const type = cursor.u32();
    const offset = cursor.u64();
    const elements = shape.reduce((product, one) => product * one, 1);
    if (!Number.isSafeInteger(elements))
      throw new ModelInvalid(`The tensor ${name} is too large to be true.`);
    parameters += elements;
    const known = tensorTypes.get(type);
    if (known === undefined) {
      unknownTypes.add(type);
      continue;
    }
    if ((shape[0] ?? 1) % known.elements !== 0 || offset % alignment !== 0)
      throw new ModelInvalid(
        `The tensor ${name} does not fit its type ${known.name} or the file's alignment.`,
      );
    const ofTensor = (elements / known.elements) * known.bytes;
    bytes += ofTensor;
    bytesByType.set(known.name, (bytesByType.get(known.name) ?? 0) + ofTensor);
    if (offset + ofTensor > end) [end, last] = [offset + ofTensor, name];
  }
  const dataStart = Math.ceil(cursor.position / alignment) * alignment;
  if (dataStart + end > size) {
    throw new ModelInvalid(
      `The file has ${size} bytes, and its tensor ${last} ends at byte ${dataStart + end}: it was not copied whole.`,
    );
  }
  return { parameters, bytes, bytesByType, unknownTypes: [...unknownTypes] };
}

function detailsOf(version: number, entries: Entries, tensors: Tensors): ModelDetails {
  const layers = entries.own("block_count");
  const largest = [...tensors.bytesByType].sort(([, a], [, b]) => b - a)[0];
  const parts = entries.number("split.count") ?? 1;
  const warnings = [
    ...(parts > 1
      ? [
          `This is part ${(entries.number("split.no") ?? 0) + 1} of ${parts}: the model needs all of them, in one folder.`,
        ]
      : []),
    ...tensors.unknownTypes.map(
      (type) => `Tensors of the type ${type} are not known here: their size is not counted.`,
    ),
  ];
  return {
    format: "gguf",
    formatVersion: version,
    name: entries.text("general.name"),
    architecture: entries.text("general.architecture"),
    license: entries.text("general.license"),
    parameters: tensors.parameters,
    quantisation: fileTypes.get(entries.number("general.file_type") ?? -1) ?? largest?.[0] ?? null,
    context: entries.own("context_length"),
    tokenizer: entries.text("tokenizer.ggml.model"),
    vocabulary: entries.length("tokenizer.ggml.tokens") ?? entries.own("vocab_size"),
    hasChatTemplate: entries.has("tokenizer.chat_template"),
    weightBytes: tensors.bytes,
    shape: layers === null ? null : shapeOf(entries, Math.min(layers, NUMBERS_MAX)),
    warnings,
  };
}

function shapeOf(entries: Entries, layers: number): ModelDetails["shape"] {
  const embedding = entries.own("embedding_length");
  const heads = entries.layers("attention.head_count", layers);
  if (embedding === null || heads === null) return null;
  const ofHead = Math.max(...heads) > 0 ? embedding / Math.max(...heads) : 0;
  const keptPerHead =
    (entries.own("attention.key_length") ?? ofHead) + (entries.own("attention.value_length") ?? ofHead);
  const keptHeads = entries.layers("attention.head_count_kv", layers) ?? heads;
  const isCausal = !entries.isFalse(`${entries.text("general.architecture")}.attention.causal`);
  return {
    embedding,
    feedForward: Math.max(0, ...(entries.layers("feed_forward_length", layers) ?? [])),
    keptPerToken: isCausal ? keptHeads.reduce((sum, count) => sum + count, 0) * keptPerHead : 0,
  };
}

function versionText(version: number): string {
  if (Buffer.from(Uint32Array.of(version).buffer).readUInt32BE() <= 3 && version !== 1)
    return "It is a big-endian GGUF file: convert the model for a little-endian machine.";
  if (version === 1)
    return "It has version 1 of GGUF, which nothing reads any more: convert the model again.";
  return `It has version ${version} of GGUF, and 2 and 3 are known here.`;
}
