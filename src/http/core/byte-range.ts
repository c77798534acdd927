// The Range header (RFC 9110 §14): one range of bytes. Several ranges, other units and malformed
// headers are ignored, as the RFC allows: the whole file is sent.

export type RangeRequest =
  | { readonly kind: "whole" }
  /** Both ends are included. */
  | { readonly kind: "part"; readonly first: number; readonly last: number }
  | { readonly kind: "unsatisfiable" };

const SINGLE_RANGE = /^bytes=(\d{0,15})-(\d{0,15})$/i;

/** @param sizeBytes what there is to choose from */
export function readRange(header: string | undefined, sizeBytes: number): RangeRequest {
  const match = header === undefined ? null : SINGLE_RANGE.exec(header.replaceAll(/[ \t]/g, ""));
  if (match === null) return { kind: "whole" };
  const [, from = "", to = ""] = match;
  if (from === "") return to === "" ? { kind: "whole" } : suffix(Number(to), sizeBytes);
  const first = Number(from);
  const last = to === "" ? sizeBytes - 1 : Math.min(Number(to), sizeBytes - 1);
  if (to !== "" && Number(to) < first) return { kind: "whole" };
  return first < sizeBytes ? { kind: "part", first, last } : { kind: "unsatisfiable" };
}

/** The last `count` bytes. */
function suffix(count: number, sizeBytes: number): RangeRequest {
  if (count === 0 || sizeBytes === 0) return { kind: "unsatisfiable" };
  return { kind: "part", first: Math.max(0, sizeBytes - count), last: sizeBytes - 1 };
}
