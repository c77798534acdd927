// Tokens of a request: as the upstream tells them, or as they are estimated where it tells none.

import type { JsonValue } from "../../engine/json.ts";

export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly isEstimated: boolean;
}

/** English text has about so many characters for each token. */
const CHARS_PER_TOKEN = 4;

/** @returns null when an answer tells none */
export function usageIn(answer: Record<string, unknown>): Usage | null {
  const usage = answer.usage as Record<string, unknown> | null | undefined;
  if (typeof usage !== "object" || usage === null) return null;
  const { prompt_tokens: input, completion_tokens: output = 0, total_tokens: total } = usage;
  if (!isCount(input) || !isCount(output)) return null;
  // Embeddings have no completion; some servers count what they think in the total alone.
  return { input, output: isCount(total) ? Math.max(output, total - input) : output, isEstimated: false };
}

const isCount = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && Number.isFinite(value);

/** Of what a request asks: of all texts in it. */
export const estimateInput = (request: Readonly<Record<string, JsonValue>>): number =>
  tokensOf(request.messages ?? request.prompt ?? request.input ?? null);

/** Of all texts in a value. */
export function tokensOf(value: unknown): number {
  return Math.ceil(charsIn(value) / CHARS_PER_TOKEN);
}

function charsIn(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((sum: number, one) => sum + charsIn(one), 0);
}
