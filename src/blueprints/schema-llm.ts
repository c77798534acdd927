// The JSON Schema of `llm`: the model that workers may ask.

import { flag, integer, name, open, orNull, type Schema, text } from "./schema-parts.ts";

const amount = (description: string) => integer(description, 1, Number.MAX_SAFE_INTEGER);

export const llmSchema = (description: string): Schema =>
  orNull(
    open(
      description,
      {
        model: name("The model_id of a model that is served; with an endpoint, its name there.", {
          examples: ["qwen3-4b"],
        }),
        endpoint: text("Base URL of a server of the OpenAI protocol that has it, and asks for no key.", {
          examples: ["http://127.0.0.1:11434/v1"],
        }),
        required: flag("Whether no run is accepted while the model is not served.", true),
        budget: open("How much may be asked; requests beyond it are answered with 429.", {
          tokens: amount("Tokens of all requests and answers."),
          requests: amount("Requests."),
        }),
        openai_env: flag("Whether OPENAI_BASE_URL and OPENAI_API_KEY are set, too.", false),
      },
      ["model"],
    ),
  );
