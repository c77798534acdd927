// Values cut down to a size (CONTRACTS §5 "Failure"): what is too long in them is replaced by {truncated, chars,
// preview}, and the rest stays as it is.
//
// V1. What comes out has at most as many bytes as JSON as were asked for.
// V2. A value that fits comes out as it went in; so cutting twice is cutting once.
// V3. Of what is replaced, the largest goes first: small members beside it stay.

import { isObject, type JsonValue } from "./json.ts";

/** What one text may have, and twice as much one list or object inside, from try to try. */
const TEXT_BYTES_MAX = [8_192, 4_096, 2_048, 1_024, 512, 256, 128];
/** Of a replaced value, the share of what it might have had; escapes make characters up to six bytes long. */
const PREVIEW_SHARE = 1 / 8;
/** A mark without its preview. */
const MARK_BYTES = 64;

/**
 * @param bytesMax at least 128
 * @returns the value, or as much of it as fits
 */
export function boundedValue(value: JsonValue, bytesMax: number): JsonValue {
  const text = JSON.stringify(value);
  if (Buffer.byteLength(text) <= bytesMax) return value;
  for (const textBytesMax of TEXT_BYTES_MAX) {
    const shorter = membersCut(value, textBytesMax);
    if (bytesOf(shorter) <= bytesMax) return shorter;
  }
  return markOf(value, text, bytesMax - MARK_BYTES);
}

/** The value with what is too long inside replaced; of the value itself the frame stays. */
function membersCut(value: JsonValue, textBytesMax: number): JsonValue {
  const cut = (inner: JsonValue) => cutTo(inner, textBytesMax);
  if (Array.isArray(value)) return value.map(cut);
  if (!isObject(value)) return cut(value);
  // fromEntries defines properties, so that a key such as __proto__ is only a key.
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cut(inner)]));
}

function cutTo(value: JsonValue, textBytesMax: number): JsonValue {
  const text = JSON.stringify(value);
  const bytes = Buffer.byteLength(text);
  if (bytes <= textBytesMax) return value;
  if (typeof value !== "object" || value === null) return markOf(value, text, textBytesMax);
  const shorter = membersCut(value, textBytesMax);
  return bytesOf(shorter) <= 2 * textBytesMax ? shorter : markOf(value, text, textBytesMax);
}

/** @param bytesMax of the preview as JSON */
function markOf(value: JsonValue, json: string, bytesMax: number): JsonValue {
  const text = typeof value === "string" ? value : json;
  const preview = text.slice(0, Math.max(0, Math.floor(bytesMax * PREVIEW_SHARE))).toWellFormed();
  return { truncated: true, chars: text.length, preview };
}

function bytesOf(value: JsonValue): number {
  return Buffer.byteLength(JSON.stringify(value));
}
