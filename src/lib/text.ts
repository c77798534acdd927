// Texts: the known name that a mistyped one is closest to ("Did you mean …"), dotted paths into JSON, and sizes for people.

/**
 * Finds the known name nearest to a mistyped one.
 *
 * @param name what was typed
 * @param known the names that would have been right
 * @param distanceMax how many single-character slips (insert, drop, change, swap of neighbours) may lie between;
 *   by default a third of the name, at least one, at most three
 * @returns the nearest one, the first of equals; null when none is near, or the name itself is known
 */
export function nearestName(
  name: string,
  known: readonly string[],
  distanceMax = Math.min(3, Math.max(1, Math.floor(name.length / 3))),
): string | null {
  let best: string | null = null;
  let bestDistance = distanceMax + 1;
  for (const candidate of known) {
    if (candidate === name) return null;
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue;
    const distance = slips(name, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Damerau's distance in its restricted form: a swap of two neighbours counts once. */
function slips(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let best = Math.min(change, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

const PATH_PARTS_MAX = 64;

/**
 * The parts of a dotted path such as "documents.folder": keys of objects, or indexes of items of a list. A dot that
 * belongs to a key is written "\.", a backslash "\\"; "__proto__" is no part of a path.
 *
 * @returns null when it is no such path
 */
export function partsOf(path: string): readonly string[] | null {
  const parts = [""];
  for (let i = 0; i < path.length; i++) {
    const char = path[i]!;
    if (char === ".") parts.push("");
    else if (char === "\\" && (path[i + 1] === "." || path[i + 1] === "\\"))
      parts.push(parts.pop() + path[++i]!);
    else parts.push(parts.pop() + char);
  }
  const isWrong = parts.length > PATH_PARTS_MAX || parts.some((part) => part === "" || part === "__proto__");
  return isWrong ? null : parts;
}

/** A JSON Pointer (RFC 6901). @param path names and indexes from the root to the value */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** A size for people: "1.2 GB". */
export function bytesText(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let size = bytes;
  let unit = 0;
  for (; size >= 1_000 && unit < units.length - 1; unit++) size /= 1_000;
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}
