// The operations of the document as TypeScript: a type for what each takes and answers, and a table of how each is
// sent.

import {
  type Answer,
  type Document,
  type Operation,
  type Parameter,
  resolve,
  type Schema,
} from "./document.ts";
import { comment, property, typeOf } from "./schema-types.ts";

const methods = ["get", "post", "put", "patch", "delete"] as const;

/** Set by the client itself, never by its callers. */
const ownHeaders: ReadonlySet<string> = new Set(["idempotency-key", "last-event-id"]);

interface Route {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
  readonly parameters: readonly Parameter[];
}

/** @returns the text of `interface Operations` and of the table `operations` */
export function operationsText(document: Document): string {
  const routes = routesOf(document);
  const types = routes.map((route) => operationType(document, route));
  const rows = routes.map((route) => `${route.id}: ${tableRow(document, route)},`);
  return (
    `/** What each operation takes and answers. */\nexport interface Operations {\n${types.join("\n\n")}\n}\n\n` +
    `/** How each operation is sent. */\nexport const operations = {\n${rows.join("\n")}\n} as const satisfies ` +
    "Readonly<Record<keyof Operations, OperationShape>>;\n"
  );
}

function routesOf(document: Document): readonly Route[] {
  const routes: Route[] = [];
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of methods) {
      const operation = item[method];
      if (operation === undefined) continue;
      const id = operation.operationId;
      if (id === undefined) throw new Error(`${method} ${path} has no operationId.`);
      const parameters = (operation.parameters ?? []).map((one) => resolve<Parameter>(document, one));
      routes.push({ id, method: method.toUpperCase(), path, operation, parameters });
    }
  }
  return routes.sort((a, b) => (a.id < b.id ? -1 : 1));
}

function operationType(document: Document, route: Route): string {
  const { operation, parameters } = route;
  const about = comment(
    `${operation.summary ?? route.id} (${route.method} ${route.path})`,
    operation.description,
  );
  const body = jsonBody(operation);
  const request = [
    place("path", parameters, "path"),
    place("query", parameters, "query"),
    place("headers", parameters, "header"),
    body === null ? "" : `readonly body: ${typeOf(body)};`,
  ];
  const answer = successOf(document, operation);
  const answered =
    answer.kind === "json" ? typeOf(answer.schema) : answer.kind === "none" ? "undefined" : "Response";
  const members = request.filter((part) => part !== "");
  const taken = members.length === 0 ? "Nothing" : `{ ${members.join("\n")} }`;
  return `${about}readonly ${route.id}: { readonly request: ${taken}; readonly answer: ${answered} };`;
}

/** The parameters in one place of the request; the whole may be left out when each of them may. */
function place(name: string, parameters: readonly Parameter[], where: Parameter["in"]): string {
  const here = parameters.filter((one) => one.in === where && !ownHeaders.has(one.name.toLowerCase()));
  if (here.length === 0) return "";
  const members = here.map((one) => property(keyOf(one), described(one), one.required === true));
  const mark = here.some((one) => one.required === true) ? "" : "?";
  return `readonly ${name}${mark}: { ${members.join("\n")} }${mark === "?" ? " | undefined" : ""};`;
}

/** Names of headers have no case. */
function keyOf({ in: where, name }: Parameter): string {
  return where === "header" ? name.toLowerCase() : name;
}

function described({ schema = {}, description }: Parameter): Schema {
  return description === undefined ? schema : { ...schema, description };
}

function tableRow(document: Document, { method, path, operation, parameters }: Route): string {
  const types = Object.keys(operation.requestBody?.content ?? {});
  const body = jsonBody(operation) !== null ? "json" : types.length > 0 ? "multipart" : "none";
  const takesKey = parameters.some((one) => one.name.toLowerCase() === "idempotency-key");
  const answer = successOf(document, operation).kind;
  const alsoAnswers = failuresAnswered(document, operation);
  return JSON.stringify({
    method,
    path,
    body,
    answer,
    takesKey,
    ...(alsoAnswers.length > 0 && { alsoAnswers }),
  });
}

function jsonBody(operation: Operation): Schema | null {
  return operation.requestBody?.content["application/json"]?.schema ?? null;
}

type Success =
  | { readonly kind: "json"; readonly schema: Schema }
  | { readonly kind: "events" | "bytes" | "none" };

/** What successful answers with a body are; JSON is preferred where there is a choice, whatever its schemas are. */
function successOf(document: Document, operation: Operation): Success {
  const successes = Object.entries(operation.responses).filter(([status]) => /^20[0-36-9]$/.test(status));
  const contents = successes.map(([, response]) => resolve<Answer>(document, response).content ?? {});
  const schemas = contents.flatMap(({ "application/json": json }) =>
    json === undefined ? [] : [json.schema ?? {}],
  );
  if (schemas.length > 0) return { kind: "json", schema: { anyOf: schemas } };
  if (contents.some((content) => "text/event-stream" in content)) return { kind: "events" };
  return { kind: contents.some((content) => Object.keys(content).length > 0) ? "bytes" : "none" };
}

/** Statuses of failures that are answered with the record itself instead of a problem. */
function failuresAnswered(document: Document, operation: Operation): readonly number[] {
  return Object.entries(operation.responses)
    .filter(([status, response]) => {
      return (
        Number(status) >= 400 && "application/json" in (resolve<Answer>(document, response).content ?? {})
      );
    })
    .map(([status]) => Number(status));
}
