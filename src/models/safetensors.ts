// The header of a safetensors file (https://github.com/huggingface/safetensors): a length, and JSON that says of each tensor
// where it lies. What kind of model it is, other files beside it tell.

import type { FileHandle } from "node:fs/promises";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { FileCursor } from "./file-cursor.ts";
import type { ModelDetails } from "./model-details.ts";
import { ModelInvalid } from "./model-invalid.ts";
import { safetensorsTypes } from "./tensor-types.ts";

const LENGTH_BYTES = 8;
/** Room for some 40,000 tensors, which are parsed in one go. */
const HEADER_BYTES_MAX = 4 * 1024 * 1024;
const ABOUT = "__metadata__";
/** Characters of names: in messages, and of types. */
const NAME_MAX = 100;
const TYPE_MAX = 16;

interface Tensor {
  readonly name: string;
  readonly type: string;
  readonly elements: number;
  readonly start: number;
  readonly end: number;
}

/**
 * @param size bytes of the file
 * @throws ModelInvalid; the system's error
 */
export async function readSafetensors(file: FileHandle, size: number): Promise<ModelDetails> {
  const cursor = new FileCursor(file, size, LENGTH_BYTES + HEADER_BYTES_MAX);
  await cursor.load(LENGTH_BYTES);
  const length = cursor.u64();
  await cursor.load(length);
  const header = parse(cursor.take(length).toString("utf8"));
  const tensors = Object.entries(header)
    .filter(([name]) => name !== ABOUT)
    .map(([name, value]) => tensorOf(name, value))
    .sort((a, b) => a.start - b.start || a.end - b.end);
  // Without gaps, as the format asks: what lies between tensors would be nobody's.
  let end = 0;
  for (const tensor of tensors) {
    if (tensor.start !== end)
      throw new ModelInvalid(
        `The tensor ${tensor.name} begins at byte ${tensor.start} of the data, not at ${end}.`,
      );
    end = tensor.end;
  }
  const there = size - LENGTH_BYTES - length;
  if (end > there)
    throw new ModelInvalid(`Its tensors have ${end} bytes, and ${there} are there: it was not copied whole.`);
  if (end < there) throw new ModelInvalid(`Behind its tensors are ${there - end} bytes that belong to none.`);
  const bytesByType = new Map<string, number>();
  for (const { type, start, end: to } of tensors)
    bytesByType.set(type, (bytesByType.get(type) ?? 0) + to - start);
  return {
    format: "safetensors",
    formatVersion: null,
    name: null,
    architecture: null,
    license: null,
    parameters: tensors.reduce((sum, { elements }) => sum + elements, 0),
    quantisation: [...bytesByType].sort(([, a], [, b]) => b - a)[0]?.[0] ?? null,
    context: null,
    tokenizer: null,
    vocabulary: null,
    hasChatTemplate: false,
    weightBytes: end,
    shape: null,
    warnings: [],
  };
}

function parse(text: string): JsonObject {
  let header: JsonValue;
  try {
    header = JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new ModelInvalid(`Its header is no JSON: ${(error as Error).message}`);
  }
  if (!isObject(header)) throw new ModelInvalid("Its header is no JSON object.");
  return header;
}

function tensorOf(given: string, value: JsonValue | undefined): Tensor {
  const name = JSON.stringify(given.slice(0, NAME_MAX));
  const { dtype, shape, data_offsets: offsets } = isObject(value) ? value : {};
  if (
    typeof dtype !== "string" ||
    dtype.length > TYPE_MAX ||
    !areCounts(shape) ||
    !areCounts(offsets) ||
    offsets.length !== 2
  )
    throw new ModelInvalid(`The tensor ${name} lacks its dtype, shape or data_offsets.`);
  const [start = 0, end = 0] = offsets;
  const elements = shape.reduce((product, one) => product * one, 1);
  const bytes = safetensorsTypes.get(dtype);
  if (
    end < start ||
    !Number.isSafeInteger(elements) ||
    (bytes !== undefined && end - start !== elements * bytes)
  )
    throw new ModelInvalid(
      `The tensor ${name} has ${end - start} bytes, which its type and shape do not have.`,
    );
  return { name, type: dtype, elements, start, end };
}

function areCounts(value: JsonValue | undefined): value is number[] {
  return Array.isArray(value) && value.every((one) => Number.isSafeInteger(one) && Number(one) >= 0);
}
