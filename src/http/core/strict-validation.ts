// Requests against their schemas. The schemas of answers are documentation: answers are not checked or reshaped.
//
// - Bodies are taken as they are: no value is converted, no field is dropped, unknown ones are mistakes.
// - Query values, path parameters and headers are text; those that the schema calls integer, number or boolean are
//   converted when they look exactly so.
// - All mistakes are reported at once, and a bounded number of them, however many a large body holds.
// - A schema is compiled by the first request that needs it, in a turn of the event loop of its own, and the compiler is
//   made in another: each may take 5 ms. Starting is not slowed by routes that nobody calls.
// - A described route without a query schema takes no parameters: `?dry_run=true` where the body has that field is
//   refused instead of ignored.

import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import type { FastifyInstance } from "fastify";
import { formats } from "./formats.ts";
import { invalidBody, invalidParameters, type Mistakes, type Problem, type ProblemEntry } from "./problem.ts";
import { bodyEntries, parameterEntries } from "./validation-entries.ts";

/** Of the query of a route that describes none. */
const NO_PARAMETERS = { type: "object", additionalProperties: false, properties: {} };

/** Mistakes after which the rest of a body is not checked. */
const MISTAKES_MAX = 1_000;

/** Sets the compilers of `app`; to be called before its routes are registered. */
export function validateStrictly(app: FastifyInstance): void {
  const uncompiled = new Map<string, Compiled[]>();
  app.setValidatorCompiler<object>(({ schema, httpPart, method, url }) => {
    // There are always other headers; and whether one must be there is its convention's business, which has an answer of
    // its own for it (428).
    const isOfHeaders = httpPart === "headers";
    const checked = isOfHeaders ? { ...schema, required: [], additionalProperties: true } : schema;
    const compiled = new Compiled(checked);
    const route = `${method} ${url}`;
    uncompiled.set(route, [...(uncompiled.get(route) ?? []), compiled]);
    return httpPart === "body" ? bodyCheck(compiled) : parameterCheck(compiled, checked);
  });
  app.addHook("preValidation", (request, _reply, done) => {
    const { method, url } = request.routeOptions.config as { readonly method: string; readonly url: string };
    const route = `${method} ${url}`;
    const fresh = uncompiled.get(route);
    if (fresh === undefined) return done();
    uncompiled.delete(route);
    const compileNext = () => {
      const compiled = fresh.pop();
      if (compiled === undefined) return done();
      compiled.compile();
      setImmediate(compileNext);
    };
    setImmediate(() => {
      deciding();
      setImmediate(compileNext);
    });
  });
  app.addHook("onRoute", (route) => {
    const { schema } = route;
    if (schema === undefined || "hide" in schema || schema.querystring !== undefined) return;
    route.schema = { ...schema, querystring: NO_PARAMETERS };
  });
  app.setSerializerCompiler(() => (data) => (typeof data === "string" ? data : JSON.stringify(data)));
}

/** The result that the framework expects: valid, valid with another value, or invalid. */
type Verdict = true | { readonly value: unknown } | { readonly error: Problem };

function bodyCheck(compiled: Compiled): (data: unknown) => Verdict {
  return (data) => {
    // An absent body arrives as null and counts as one without fields.
    const body = data ?? {};
    if (!compiled.isValid(body)) return { error: invalidBody(compiled.mistakes(body, bodyEntries)) };
    return body === data ? true : { value: body };
  };
}

function parameterCheck(compiled: Compiled, schema: object): (data: unknown) => Verdict {
  const convert = conversion(schema);
  return (data) => {
    const values = data as Record<string, unknown>;
    convert(values);
    if (compiled.isValid(values)) return true;
    const mistakes = compiled.mistakes(values, (errors) => parameterEntries(errors, values));
    return { error: invalidParameters(mistakes) };
  };
}

const checks = new WeakMap<object, (data: unknown) => Verdict>();

/** Checks a body that comes in by a route without schemas. @throws Problem with every mistake */
export function checkBody(schema: object, body: unknown): void {
  const check = checks.get(schema) ?? bodyCheck(new Compiled(schema));
  checks.set(schema, check);
  const verdict = check(body);
  if (verdict !== true && "error" in verdict) throw verdict.error;
}

const common: Options = {
  useDefaults: true,
  removeAdditional: false,
  coerceTypes: false,
  strict: true,
  strictTypes: false,
  strictTuples: false,
  allowUnionTypes: true,
  // Our own schemas; a test compiles each.
  validateSchema: false,
  meta: false,
  formats,
};

/** Two functions of one schema: one that decides, fast, and one that lists what is wrong. */
class Compiled {
  readonly #schema: object;
  #decide: ValidateFunction | null = null;

  constructor(schema: object) {
    this.#schema = schema;
  }

  compile(): ValidateFunction {
    this.#decide ??= deciding().compile(this.#schema);
    return this.#decide;
  }

  /** Fills in defaults. */
  isValid(data: unknown): boolean {
    return this.compile()(data);
  }

  /** For data that has just been found invalid. */
  mistakes(data: unknown, entriesOf: (errors: readonly ErrorObject[]) => readonly ProblemEntry[]): Mistakes {
    const list = explaining().compile(this.#schema);
    try {
      list(data);
    } catch (error) {
      if (!isTooMany(error)) throw error;
      return { entries: entriesOf(error.tooMany), isCut: true };
    }
    return { entries: entriesOf(list.errors ?? []), isCut: false };
  }
}

let decider: Ajv | null = null;
let explainer: Ajv | null = null;

function deciding(): Ajv {
  decider ??= new Ajv({ ...common, allErrors: false });
  return decider;
}

/** With allErrors alone, a body of 5 MiB could be answered by a million error objects: the generated code is stopped. */
function explaining(): Ajv {
  explainer ??= new Ajv({ ...common, allErrors: true, code: { process: stopAtTooMany } });
  return explainer;
}

function stopAtTooMany(code: string): string {
  return code.replace(
    /\bvErrors\.push\(\w+\);/g,
    (push) => `${push}if (vErrors.length > ${MISTAKES_MAX}) throw { tooMany: vErrors };`,
  );
}

function isTooMany(error: unknown): error is { readonly tooMany: readonly ErrorObject[] } {
  return typeof error === "object" && error !== null && "tooMany" in error;
}

const converters: Readonly<Record<string, (text: string) => unknown>> = {
  integer: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : text),
  number: (text) => (/^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text),
  boolean: (text) => (text === "true" ? true : text === "false" ? false : text),
};

/** What does not look like its type stays text, which the schema then refuses. */
function conversion(schema: object): (data: Record<string, unknown>) => void {
  const { properties = {} } = schema as { properties?: Record<string, { type?: unknown }> };
  const typed = Object.entries(properties).flatMap(([name, { type }]) => {
    const convert = typeof type === "string" ? converters[type] : undefined;
    return convert === undefined ? [] : [{ name, convert }];
  });
  return (data) => {
    for (const { name, convert } of typed) {
      const value = data[name];
      if (typeof value === "string") data[name] = convert(value);
    }
  };
}
