// Workers that ask models: their keys, their budgets, and what their runs' histories say of it.
//
// - A key is derived from the run and the agent, so nothing of it is stored; it is good while an attempt of that agent is
//   under way in this program, for the one model that its node declares.
// - A request of a budget is on disk before it is sent, so that no crash gives it back. Its tokens are added when it has
//   ended: those of requests that a crash has cut off are not known to anybody.
// - Requests that run side by side may take a budget of tokens beyond its end by what they take; the next one is refused.

import { createHmac, hash, timingSafeEqual } from "node:crypto";
import type { LlmNeed } from "../../engine/graph.ts";
import type { EngineLog } from "../../engine/ports.ts";
import type { AskingAttempt } from "../../execution/runner/host-local.ts";
import { LlmError } from "./llm-error.ts";
import { defaultSettings, EndpointBackend, type ModelBackend } from "./model-backend.ts";
import type { LlmUsage, LlmUsageWrites } from "./records.ts";
import type { LlmCall, LlmCaller } from "./serving.ts";

const PREFIX = "trl_";
const KEY = /^trl_([A-Za-z0-9_-]{1,4000})\.([A-Za-z0-9_-]{43})$/;
/** Of one attempt in the history; the tokens of the others are told together. */
const CALLS_TOLD_MAX = 1_000;

export interface LlmAccess {
  readonly baseUrl: string;
  readonly key: string;
  /** To be called when the attempt has ended. */
  close(): void;
}

export interface RunLlmsParts {
  /** Derived from the installation's key for this purpose alone. */
  readonly key: Buffer;
  readonly write: <T>(work: (usage: LlmUsageWrites) => Promise<T>) => Promise<T>;
  readonly log: EngineLog;
}

interface Open extends AskingAttempt {
  /** Of a need with an endpoint. */
  readonly backend: ModelBackend | null;
  told: number;
  readonly untold: { calls: number; input: number; output: number };
}

export class RunLlms {
  readonly #parts: RunLlmsParts;
  readonly #open = new Map<string, Open>();
  /** Tokens that are being added, by scope: the next request waits for them. */
  readonly #adding = new Map<string, Promise<unknown>>();
  #door: () => Promise<string> = () => Promise.reject(new Error("Nothing is served yet."));

  constructor(parts: RunLlmsParts) {
    this.#parts = parts;
  }

  /** @param door opens where workers ask, once. @returns its base URL */
  servedBy(door: () => Promise<string>): void {
    this.#door = door;
  }

  /** Lets an attempt ask from now on. */
  async open(attempt: AskingAttempt): Promise<LlmAccess> {
    const { runId, agentId, need } = attempt;
    const baseUrl = await this.#door();
    const { model, endpoint } = need;
    const servable = {
      kind: "endpoint",
      modelId: model,
      baseUrl: endpoint ?? "",
      model,
      apiKey: null,
    } as const;
    const backend = endpoint === null ? null : new EndpointBackend(servable, defaultSettings);
    const open: Open = { ...attempt, backend, told: 0, untold: { calls: 0, input: 0, output: 0 } };
    const id = idOf(runId, agentId);
    this.#open.set(id, open);
    return {
      baseUrl,
      key: this.#keyOf(id),
      close: () => {
        // Another attempt of the agent may have begun.
        if (this.#open.get(id) === open) this.#open.delete(id);
        tellRest(open);
      },
    };
  }

  /** @param secret what a request has shown. @returns null when it is no key of a run. @throws LlmError for one that is not good */
  callerOf(secret: string | null): LlmCaller | null {
    if (secret === null || !secret.startsWith(PREFIX)) return null;
    const [, encoded = "", mac = ""] = KEY.exec(secret) ?? [];
    const id = Buffer.from(encoded, "base64url").toString("utf8");
    const isOurs = timingSafeEqual(digest(mac), digest(this.#macOf(id)));
    const open = isOurs ? this.#open.get(id) : undefined;
    if (open !== undefined) return this.#caller(open);
    throw new LlmError(
      401,
      "run_key_invalid",
      isOurs
        ? "This key was of a worker that has ended. A worker asks with the SVC_LLM_API_KEY that it finds itself."
        : "This is no key of a run. Workers find theirs as SVC_LLM_API_KEY.",
    );
  }

  #caller(open: Open): LlmCaller {
    const { need, runId, agentId } = open;
    const { tokens, requests } = need.budget;
    const scope = need.isOfRun ? "" : agentId;
    const hasBudget = tokens !== null || requests !== null;
    return {
      backend: open.backend,
      admit: async (modelId) => {
        if (modelId !== need.model) throw notDeclared(need, modelId);
        if (!hasBudget) return;
        await this.#adding.get(idOf(runId, scope));
        const before = await this.#parts.write(async (usage) => {
          const found = await usage.used(runId, scope);
          if (!isSpent(need, found)) await usage.add(runId, scope, { requests: 1, tokens: 0 });
          return found;
        });
        if (isSpent(need, before)) throw spent(need, before);
      },
      ended: (call) => {
        tellCall(open, call);
        const { input, output } = call.usage;
        if (hasBudget && input + output > 0) this.#addTokens(runId, scope, input + output);
      },
    };
  }

  #addTokens(runId: string, scope: string, tokens: number): void {
    const id = idOf(runId, scope);
    const adding = Promise.all([
      this.#adding.get(id),
      this.#parts.write((usage) => usage.add(runId, scope, { requests: 0, tokens })),
    ]).catch((error: unknown) => {
      this.#parts.log.error(
        { run_id: runId, error: String(error) },
        "tokens of a budget could not be counted",
      );
    });
    this.#adding.set(id, adding);
    void adding.then(() => {
      if (this.#adding.get(id) === adding) this.#adding.delete(id);
    });
  }

  #keyOf(id: string): string {
    return `${PREFIX}${Buffer.from(id).toString("base64url")}.${this.#macOf(id)}`;
  }

  #macOf(id: string): string {
    return createHmac("sha256", this.#parts.key).update(id).digest("base64url");
  }
}

const idOf = (runId: string, agentId: string) => `${runId}\n${agentId}`;
const digest = (text: string) => hash("sha256", text, "buffer");

function isSpent({ budget: { tokens, requests } }: LlmNeed, used: LlmUsage): boolean {
  return (requests !== null && used.requests >= requests) || (tokens !== null && used.tokens >= tokens);
}

function spent({ budget, model, isOfRun }: LlmNeed, used: LlmUsage): LlmError {
  const isOfRequests = budget.requests !== null && used.requests >= budget.requests;
  const what = isOfRequests
    ? `${used.requests} of ${budget.requests} requests`
    : `${used.tokens} of ${budget.tokens} tokens`;
  const whose = isOfRun ? "the run's" : "this agent's";
  const where = `llm.budget.${isOfRequests ? "requests" : "tokens"}`;
  return new LlmError(
    429,
    "budget_exceeded",
    `${whose} budget for model "${model}" is used up: ${what}. Raise ${where} in the manifest, then start a new run.`,
    { type: "insufficient_quota" },
  );
}

const notDeclared = ({ model }: LlmNeed, modelId: string) =>
  new LlmError(
    403,
    "model_not_declared",
    `This worker may ask model "${model}", which its node declares, and not "${modelId}". Ask for SVC_LLM_MODEL, or declare the other one as llm.model.`,
    { param: "model" },
  );

function tellCall(
  open: Open,
  { modelId, path, status, code, usage, durationMs, firstTokenMs }: LlmCall,
): void {
  const { input, output, isEstimated } = usage;
  if (open.told >= CALLS_TOLD_MAX) {
    open.untold.calls++;
    open.untold.input += input;
    open.untold.output += output;
    return;
  }
  open.told++;
  const payload = {
    attempt: open.attempt,
    model: modelId,
    path,
    status,
    ...(code !== null && { code }),
    tokens: { input, output },
    estimated: isEstimated,
    duration_ms: durationMs,
    first_token_ms: firstTokenMs,
  };
  open.tell([{ type: "llm_call", payload }]);
}

function tellRest({ attempt, need, untold: { calls, input, output }, tell }: Open): void {
  if (calls === 0) return;
  const payload = { attempt, name: "llm_calls", value: calls, model: need.model, tokens: { input, output } };
  tell([{ type: "metric", payload }]);
}
