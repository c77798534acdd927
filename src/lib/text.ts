// "Did you mean …": the known name that a mistyped one is closest to.

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
