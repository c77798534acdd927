// Problems in the words of the OpenAI protocol, for the routes that speak it: its clients show nothing of any other error.

import { openAiError, typeOfStatus } from "../../models/serving/llm-error.ts";
import { pathOf } from "./path-of.ts";
import type { Problem } from "./problem.ts";

/** Where the protocol is spoken: a client's base URL. */
export const LLM_BASE = "/api/v1/llm/v1";

export const speaksOpenAi = (url: string): boolean => `${pathOf(url)}/`.startsWith(`${LLM_BASE}/`);

export function openAiText({ status, code, message }: Problem): string {
  return openAiError({ message, type: typeOfStatus(status), code });
}
