// Which methods a path takes: asked only when no route took a request, to tell 405 from 404.

import type { FastifyInstance } from "fastify";

/** Remembers every route that is registered on `app`, or inside it, after this call. */
export class RouteMethods {
  readonly #byPattern = new Map<string, { readonly matches: RegExp; readonly methods: Set<string> }>();

  constructor(app: FastifyInstance) {
    app.addHook("onRoute", ({ method, url }) => {
      const route = this.#byPattern.get(url) ?? { matches: expressionOf(url), methods: new Set<string>() };
      this.#byPattern.set(url, route);
      for (const name of Array.isArray(method) ? method : [method]) route.methods.add(name);
    });
  }

  /** @returns methods in alphabetical order; none when no route has this path */
  of(path: string): readonly string[] {
    const found = new Set<string>();
    for (const { matches, methods } of this.#byPattern.values()) {
      if (!matches.test(path)) continue;
      for (const method of methods) found.add(method);
    }
    return [...found].sort();
  }
}

/** `/jobs/:id`, `/docs/*` and `/nodes::add` (a plain colon) as expressions that need no backtracking. */
function expressionOf(pattern: string): RegExp {
  const source = pattern.replace(/::|:\w+|\*|[^\w/]/g, (part) => {
    if (part === "::") return ":";
    if (part === "*") return ".*";
    return part.startsWith(":") ? "[^/]*" : `\\${part}`;
  });
  return new RegExp(`^${source}$`);
}
