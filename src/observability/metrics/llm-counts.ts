// What served models have answered since this process started, per model.

import type { LlmCall, LlmMeter } from "../../models/serving/serving.ts";
import { Histogram } from "./histogram.ts";

const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** Names of models that are not served would be anybody's words. */
const MODELS_MAX = 1_000;

const outcomes = ["answered", "failed", "refused", "left"] as const;
export type LlmOutcome = (typeof outcomes)[number];

export interface ModelCounts {
  readonly requests: Record<LlmOutcome, number>;
  readonly tokens: { input: number; output: number };
  /** Tokens that no upstream has told. */
  readonly estimated: { input: number; output: number };
  readonly seconds: Histogram;
  readonly firstTokenSeconds: Histogram;
}

export class LlmCounts implements LlmMeter {
  readonly models = new Map<string, ModelCounts>();

  ended({ modelId, status, code, usage, durationMs, firstTokenMs }: LlmCall): void {
    // That is no model's.
    if (code === "model_not_found" && !this.models.has(modelId)) return;
    const counts = this.#of(modelId);
    if (counts === null) return;
    counts.requests[outcomeOf(status)]++;
    for (const tokens of usage.isEstimated ? [counts.tokens, counts.estimated] : [counts.tokens]) {
      tokens.input += usage.input;
      tokens.output += usage.output;
    }
    if (status !== 200) return;
    counts.seconds.observe(durationMs / 1_000);
    if (firstTokenMs !== null) counts.firstTokenSeconds.observe(firstTokenMs / 1_000);
  }

  #of(modelId: string): ModelCounts | null {
    const known = this.models.get(modelId);
    if (known !== undefined) return known;
    if (this.models.size >= MODELS_MAX) return null;
    const made: ModelCounts = {
      requests: { answered: 0, failed: 0, refused: 0, left: 0 },
      tokens: { input: 0, output: 0 },
      estimated: { input: 0, output: 0 },
      seconds: new Histogram(SECONDS),
      firstTokenSeconds: new Histogram(SECONDS),
    };
    this.models.set(modelId, made);
    return made;
  }
}

function outcomeOf(status: number): LlmOutcome {
  if (status === 200) return "answered";
  if (status === 499) return "left";
  return status < 500 ? "refused" : "failed";
}
