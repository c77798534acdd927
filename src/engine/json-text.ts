// Text that has to fit into a number of bytes as it stands in JSON: there, control characters take up to six bytes.

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
