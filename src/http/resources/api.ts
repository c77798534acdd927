// What the two APIs do differently with a resource that both have, so that each of its routes is written once. The
// gateway checks requests strictly, sends lists a page at a time and keeps the answers to POSTs by their
// Idempotency-Key; the runtime API ignores unknown parameters and sends lists whole.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { GatewayRecords } from "../../launch/records.ts";
import { withoutNullAgent } from "../../runs/history/line.ts";
import type { Answer, Effect, GivenAnswer } from "../core/idempotency.ts";
import type { JsonBody } from "../core/json-body.ts";
import { invalidParameters, oneMistake, Problem } from "../core/problem.ts";
import { addRoutes, type Route } from "../core/route.ts";
import { ApiError, problemsText } from "../core/runtime-errors.ts";
import { type Query, readBody, readQuery } from "../core/runtime-query.ts";
import { checkBody } from "../core/strict-validation.ts";
import { type ObjectSchema, type Schema, type Static, Type } from "../core/type.ts";
import { type FindRun, gatewayRuns, type RunParts, type RuntimeRunParts, runtimeRuns } from "./find-run.ts";
import {
  answerIdempotent,
  type IdempotencyParts,
  type Start,
  sendGiven,
  sendIdempotent,
  sendStarted,
} from "./idempotent.ts";
import {
  type HistoryView,
  historyText,
  type List,
  type PageParts,
  sendHistoryPage,
  sendJson,
  sendList,
  sendPage,
  sendText,
} from "./lists.ts";

/** Makes the answer to a query value or a header that is wrong. @param message such as `must be …` */
export type ParameterError = (name: string, code: string, message: string) => Error;

export interface Api {
  readonly name: "gateway" | "runtime";
  /** Registers routes, under a tag of the OpenAPI document. */
  add(tag: string, routes: readonly Route[]): void;
  /** Finds the run of a request's path. */
  readonly findRun: FindRun;
  sendList<Row>(request: FastifyRequest, reply: FastifyReply, list: List<Row>): Promise<FastifyReply>;
  /** Sends the history of the run in the path, in a view. */
  sendHistory(
    request: FastifyRequest<{ Params: { run_id: string } }>,
    reply: FastifyReply,
    view: HistoryView,
  ): Promise<FastifyReply>;
  /** The body of a request. @throws what tells of every mistake in it */
  readBody<Body extends Schema>(request: FastifyRequest, schema: Body): Static<Body>;
  /** Does what a POST asks for in a transaction. @param prepare checks the request and returns its effect */
  effect(request: FastifyRequest, prepare: () => Promise<Effect>): Promise<GivenAnswer>;
  /** Answers a POST that starts something. */
  sendStarted<Started>(
    request: FastifyRequest,
    reply: FastifyReply,
    start: Start<Started>,
  ): Promise<FastifyReply>;
  /** Answers a POST. @param work is done once for each Idempotency-Key, where the API takes one */
  sendOnce(request: FastifyRequest, reply: FastifyReply, work: () => Promise<Answer>): Promise<FastifyReply>;
  readonly parameterError: ParameterError;
  /** An event's line as the API shows it. */
  shownLine(line: string): string;
}

export function gatewayApi(app: FastifyInstance, parts: RunParts & PageParts & IdempotencyParts): Api {
  const findRun = gatewayRuns(parts);
  return {
    name: "gateway",
    add: (tag, routes) => addRoutes(app, tag, routes),
    findRun,
    sendList: (request, reply, list) => sendPage(parts, request, reply, list),
    sendHistory: (request, reply, view) =>
      sendHistoryPage(parts, request, reply, {
        chosen: () => findRun(request.params.run_id),
        find: findRun,
        view,
      }),
    sendOnce: (request, reply, work) =>
      sendIdempotent(parts, request, reply, async () => {
        const answer = await work();
        return async () => answer;
      }),
    readBody: (request) => request.body as never,
    effect: (request, prepare) => answerIdempotent(parts, request, prepare),
    sendStarted: (request, reply, start) => sendStarted(parts, request, reply, start),
    parameterError: gatewayParameterError,
    shownLine: (line) => line,
  };
}

export const gatewayParameterError: ParameterError = (name, code, message) =>
  invalidParameters(oneMistake(name.toLowerCase(), code, message));

export interface RuntimeApiParts extends RuntimeRunParts {
  readonly records: Pick<GatewayRecords, "write">;
}

export function runtimeApi(app: FastifyInstance, parts: RuntimeApiParts): Api {
  const effect: Api["effect"] = async (_request, prepare) => ({
    answer: await parts.records.write(await prepare()),
    isReplay: false,
  });
  const findRun = runtimeRuns(parts);
  return {
    name: "runtime",
    add(_tag, routes) {
      for (const route of routes) addRuntimeRoute(app, route);
    },
    findRun,
    async sendList(request, reply, list) {
      const { limit = list.defaultLimit ?? null } = readQuery(LimitQuery, request.query as Query);
      return sendList(reply, list, limit);
    },
    async sendHistory(request, reply, view) {
      const run = await findRun(request.params.run_id);
      return sendText(
        reply,
        historyText(run, (seq, line) => view(run, seq, line)),
      );
    },
    readBody(request, schema) {
      const body = readBody(request.body as JsonBody | undefined);
      try {
        checkBody(schema, body);
      } catch (error) {
        throw error instanceof Problem ? new ApiError(400, problemsText(error.errors)) : error;
      }
      return body as never;
    },
    effect,
    async sendStarted(request, reply, start) {
      type Started = typeof start extends Start<infer One> ? One : never;
      const done: { started?: Started } = {};
      const given = await effect(request, async () => {
        const insert = await start.prepare();
        return async (writes) => {
          done.started = await insert(writes);
          const { location, body } = start.answer(done.started);
          return { status: 202, headers: { location }, body };
        };
      });
      if (done.started !== undefined) start.started(done.started);
      return sendGiven(reply, given);
    },
    async sendOnce(_request, reply, work) {
      const { status, headers, body } = await work();
      return sendJson(reply.code(status).headers(headers), body);
    },
    parameterError: runtimeParameterError,
    shownLine: withoutNullAgent,
  };
}

export const runtimeParameterError: ParameterError = (name, _code, message) =>
  new ApiError(400, `${name} ${message}`);

const LimitQuery = Type.Input({ limit: Type.Integer() });

/** Registers a route with its query read as this API reads queries; of its schemas nothing else is used. */
function addRuntimeRoute(app: FastifyInstance, route: Route): void {
  const { method, path, query, preValidation, answersHead = false, handle } = route;
  const { page_size, page_token, ...filters } = (query as ObjectSchema | undefined)?.properties ?? {};
  const schema = Type.Input(filters);
  app.route({
    method: answersHead ? [method, "HEAD"] : method,
    url: path,
    ...(preValidation !== undefined && { preValidation }),
    handler(request, reply) {
      const given = request.query as Query;
      request.query = { ...given, ...readQuery(schema, given) };
      return handle(request, reply);
    },
  });
}

/** What the routes of several resources take, all together. */
export type PartsOf<Routes> = [Routes] extends [(api: never, parts: infer Parts) => void] ? Parts : never;
