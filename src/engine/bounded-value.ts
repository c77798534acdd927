// Values and texts cut down to a number of bytes as JSON (CONTRACTS §5 "Failure"). What is too long inside a value is
// replaced by {truncated, chars, preview}, and what stands beside it stays; a text keeps its beginning or its end.
//
// - What comes out has at most as many bytes as JSON as were asked for.
// - A value that fits comes out as it went in; so cutting twice is cutting once.
// - Of what is replaced, the largest goes first: small members beside it stay.

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

// ---------------------------------------------------------------------------------------------------- texts

const ELLIPSIS = "…";
const ELLIPSIS_BYTES = 3;
/** Of one code unit, as JSON in UTF-8. */
const BYTES_PER_UNIT_MAX = 6;

/** The text, or as much of its beginning as fits into `bytesMax` bytes of JSON with an ellipsis behind it. */
export function textStart(text: string, bytesMax: number): string {
  if (text.length * BYTES_PER_UNIT_MAX <= bytesMax) return text;
  let bytes = 0;
  let kept = 0;
  for (let i = 0; i < text.length; ) {
    const codePoint = text.codePointAt(i) ?? 0;
    bytes += jsonBytesOf(codePoint);
    if (bytes > bytesMax) return text.slice(0, kept) + ELLIPSIS;
    i += codePoint > 0xffff ? 2 : 1;
    if (bytes <= bytesMax - ELLIPSIS_BYTES) kept = i;
  }
  return text;
}

/** The text, or as much of its end as fits into `bytesMax` bytes of JSON with an ellipsis before it. */
export function textEnd(text: string, bytesMax: number): string {
  if (text.length * BYTES_PER_UNIT_MAX <= bytesMax) return text;
  let bytes = 0;
  let kept = text.length;
  for (let i = text.length; i > 0; ) {
    const isPair = i > 1 && isLow(text.charCodeAt(i - 1)) && isHigh(text.charCodeAt(i - 2));
    i -= isPair ? 2 : 1;
    bytes += jsonBytesOf(text.codePointAt(i) ?? 0);
    if (bytes > bytesMax) return ELLIPSIS + text.slice(kept);
    if (bytes <= bytesMax - ELLIPSIS_BYTES) kept = i;
  }
  return text;
}

/** What a code point takes inside a JSON string in UTF-8; half a surrogate pair is escaped. */
function jsonBytesOf(codePoint: number): number {
  if (codePoint < 0x20) return "\b\t\n\f\r".includes(String.fromCharCode(codePoint)) ? 2 : 6;
  if (codePoint === 0x22 || codePoint === 0x5c) return 2;
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  if (codePoint > 0xffff) return 4;
  return isHigh(codePoint) || isLow(codePoint) ? 6 : 3;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
