// The model that a worker may ask: `llm` of a node, of its config, or of the manifest for all commands that have none.

import type { LlmNeed } from "../graph.ts";
import type { Fields } from "./fields.ts";

const BUDGET_MAX = Number.MAX_SAFE_INTEGER;
const amount = { min: 1, max: BUDGET_MAX };

/** Of the manifest as a whole. */
export function readRunLlm(manifest: Fields): LlmNeed | null {
  return manifest.raw("llm") === undefined ? null : readLlm(manifest, true);
}

/** @param ofRun what a node has that says nothing; null in the node: none all the same */
export function llmOf(node: Fields, config: Fields, ofRun: LlmNeed | null): LlmNeed | null {
  if (config.raw("llm") !== undefined) return readLlm(config, false);
  if (node.raw("llm") !== undefined) return readLlm(node, false);
  return config.isNull("llm") || node.isNull("llm") ? null : ofRun;
}

function readLlm(holder: Fields, isOfRun: boolean): LlmNeed {
  const llm = holder.object("llm");
  const budget = llm.object("budget");
  return {
    model: llm.requiredName("model") ?? "",
    endpoint: endpoint(llm),
    required: llm.boolean("required", true),
    budget: {
      tokens: budget.integer("tokens", amount, null),
      requests: budget.integer("requests", amount, null),
    },
    openaiEnv: llm.boolean("openai_env", false),
    isOfRun,
  };
}

function endpoint(llm: Fields): string | null {
  const isFit = (text: string) => /^https?:\/\/[^/@\s?#]+(\/[^@\s?#]*)?$/.test(text);
  const text =
    "it must be an http or https address without user, query and fragment, such as http://127.0.0.1:11434/v1";
  return llm.checked("endpoint", llm.text("endpoint"), isFit, "invalid_address", text);
}
