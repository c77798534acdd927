// @ts-check
// A run's time as a line: where moments are on it, which times are folded, and which agents the end has waited for. Pure.

/**
 * The way to the end on which each agent waited for the one before: from the last that worked back along the edges, each
 * time to the one that ended last before this one began. What lies on it is what to make faster.
 *
 * @param {ReadonlyMap<string, readonly import("./spans.js").Span[]>} byAgent @param {Iterable<{ from: string, to: string }>} edges @param {number} nowMs
 * @returns {Set<string>} agents
 */
export function criticalPath(byAgent, edges, nowMs) {
  const work = new Map(
    [...byAgent]
      .filter(([, spans]) => spans.length > 0)
      .map(([agent, spans]) => [
        agent,
        {
          fromMs: /** @type {import("./spans.js").Span} */ (spans[0]).fromMs,
          toMs: spans.reduce((last, { toMs }) => Math.max(last, toMs ?? nowMs), 0),
        },
      ]),
  );
  /** @type {Map<string, string[]>} */
  const before = new Map();
  for (const { from, to } of edges) {
    const known = before.get(to);
    if (known === undefined) before.set(to, [from]);
    else known.push(from);
  }
  const last = (/** @type {Iterable<string>} */ agents, /** @type {number} */ byMs) => {
    /** @type {string | null} */
    let found = null;
    let foundMs = Number.NEGATIVE_INFINITY;
    for (const agent of agents) {
      const { toMs = Number.POSITIVE_INFINITY } = work.get(agent) ?? {};
      if (toMs <= byMs && toMs > foundMs) [found, foundMs] = [agent, toMs];
    }
    return found;
  };
  /** @type {Set<string>} */
  const path = new Set();
  for (let agent = last(work.keys(), nowMs); agent !== null && !path.has(agent); ) {
    path.add(agent);
    agent = last(workersBefore(agent, before, work), work.get(agent)?.fromMs ?? 0);
  }
  return path;
}

/** Past agents that only pass messages on. @param {string} agent @param {ReadonlyMap<string, string[]>} before @param {ReadonlyMap<string, unknown>} work */
function workersBefore(agent, before, work) {
  const seen = new Set([agent]);
  const found = [];
  for (const one of seen) {
    if (one !== agent && work.has(one)) found.push(one);
    else for (const earlier of before.get(one) ?? []) seen.add(earlier);
  }
  return found;
}

/**
 * Where on a line of time a moment is: long times in which no span begins or ends and none but waiting goes on are folded.
 *
 * @param {readonly import("./spans.js").Span[]} spans @param {number} firstMs @param {number} lastMs
 * @returns {{ at: (ms: number) => number, msAt: (share: number) => number, folds: { fromMs: number, toMs: number }[], lengthMs: number }} at: from 0 to 1; msAt: the other way
 */
export function scaleOf(spans, firstMs, lastMs) {
  const FOLD_SHARE = 0.1;
  const FOLDED_SHARE = 0.02;
  const wholeMs = Math.max(1, lastMs - firstMs);
  const busy = spans
    .filter(({ kind }) => kind === "running" || kind === "failed")
    .map(({ fromMs, toMs }) => ({ fromMs, toMs: toMs ?? lastMs }))
    .filter(({ fromMs, toMs }) => toMs >= firstMs && fromMs <= lastMs)
    .sort((a, b) => a.fromMs - b.fromMs);
  /** @type {{ fromMs: number, toMs: number }[]} */
  const folds = [];
  let quietFromMs = firstMs;
  for (const { fromMs, toMs } of [...busy, { fromMs: lastMs, toMs: lastMs }]) {
    if (fromMs - quietFromMs > wholeMs * FOLD_SHARE) folds.push({ fromMs: quietFromMs, toMs: fromMs });
    quietFromMs = Math.max(quietFromMs, toMs);
  }
  const foldedMs = wholeMs * FOLDED_SHARE;
  const lengthMs = wholeMs - folds.reduce((sum, fold) => sum + (fold.toMs - fold.fromMs) - foldedMs, 0);
  const at = (/** @type {number} */ ms) => {
    let place = Math.min(Math.max(ms, firstMs), lastMs) - firstMs;
    for (const fold of folds) {
      const inside = Math.min(Math.max(ms - fold.fromMs, 0), fold.toMs - fold.fromMs);
      place -= inside * (1 - foldedMs / (fold.toMs - fold.fromMs));
    }
    return place / lengthMs;
  };
  // It never falls, so a moment is found by halving.
  const msAt = (/** @type {number} */ share) => {
    let [least, most] = [firstMs, lastMs];
    while (most - least > 1) {
      const middle = (least + most) / 2;
      if (at(middle) < share) least = middle;
      else most = middle;
    }
    return most;
  };
  return { at, msAt, folds, lengthMs };
}

/** What people count time in, in ms. */
const STEPS_MS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1_000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 6, 12, 24].map((hours) => hours * 3_600_000),
];
const DAY_MS = 86_400_000;

/**
 * Moments to write on a line of time: round ones since the origin, none within what is folded.
 *
 * @param {ReturnType<typeof scaleOf>} scale @param {{ fromMs: number, toMs: number, originMs: number, countMax: number }} line
 * @returns {number[]} moments, countMax of them at most, and one more for the line and for each fold
 */
export function ticksOf({ folds, lengthMs }, { fromMs, toMs, originMs, countMax }) {
  const leastMs = lengthMs / Math.max(1, countMax);
  const stepMs = STEPS_MS.find((step) => step >= leastMs) ?? Math.ceil(leastMs / DAY_MS) * DAY_MS;
  const ticks = [];
  let beginMs = Math.max(fromMs, originMs);
  for (const fold of [...folds, { fromMs: toMs, toMs }]) {
    const first = Math.ceil((beginMs - originMs) / stepMs);
    for (let ms = originMs + first * stepMs; ms <= fold.fromMs; ms += stepMs) ticks.push(ms);
    beginMs = fold.toMs;
  }
  return ticks;
}
