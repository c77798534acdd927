// Models that blueprints bring along: registered with the first that does, and forgotten with the last that has it, unless
// somebody has installed the model besides.

import type { Content } from "./copy-content.ts";
import type { ModelWrites, StoredSource } from "./records.ts";

export async function registerBrought(
  models: ModelWrites,
  {
    modelId,
    source,
    content,
  }: { readonly modelId: string; readonly source: StoredSource; readonly content: Content },
  nowMs: number,
): Promise<void> {
  if ((await models.model(modelId)) !== null) return;
  const unknown = { family: null, license: null, parameters: null, quantisation: null, context: null };
  const said = { format: null, architecture: null, tokenizer: null, vocabulary: null, hasChatTemplate: null };
  await models.save({
    ...unknown,
    modelId,
    name: modelId,
    source,
    sha256: null,
    requirements: null,
    content: { ...unknown, ...said, ...content },
    revision: 1,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  });
}

/** To be called when a blueprint does not have the model any more. */
export async function forgetBrought(models: ModelWrites, modelId: string): Promise<void> {
  const model = await models.model(modelId);
  if (model === null || !Object.hasOwn(model.source, "blueprint_id")) return;
  if (model.installations.length === 0 && model.blueprints.length === 0) await models.remove(modelId);
}
