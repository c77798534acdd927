// The generator: what it makes of schemas, and whether the committed files are what it makes now.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { generatedFiles } from "../generate.ts";
import type { Document, Schema } from "./document.ts";
import { stableText } from "./document.ts";
import { generatedText } from "./generated-text.ts";
import { comment, typeOf } from "./schema-types.ts";

test("the committed document and types are what the program makes now (else: npm run sdk)", async () => {
  for (const [path, text] of Object.entries(await generatedFiles())) {
    const committed = readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
    assert.ok(
      committed === text,
      `${path} is not what \`npm run sdk\` makes: run it, and look at the difference`,
    );
  }
});

describe("a schema's type", () => {
  const cases: readonly (readonly [Schema, string])[] = [
    [{}, "unknown"],
    [{ type: "integer" }, "number"],
    [{ type: ["string", "null"] }, "string | null"],
    [{ const: "api" }, '"api"'],
    [{ enum: ["a", 1, null] }, '"a" | 1 | null'],
    [{ anyOf: [{ $ref: "#/components/schemas/run_status" }, { type: "null" }] }, "RunStatus | null"],
    [{ allOf: [{ type: "string" }, { const: "x" }] }, '(string) & ("x")'],
    [{ type: "array", items: { type: ["string", "null"] } }, "readonly (string | null)[]"],
    [{ anyOf: [{ type: "array" }, { type: "null" }] }, "(readonly (unknown)[]) | null"],
    [{ type: "object", additionalProperties: true }, "JsonObject"],
    [{ type: "object", additionalProperties: { type: "string" } }, "Readonly<Record<string, string>>"],
    [
      { type: "object", patternProperties: { "^.*$": { type: "string" } } },
      "Readonly<Record<string, string>>",
    ],
    [{ type: "object", properties: {}, additionalProperties: false }, "Readonly<Record<string, never>>"],
    [
      { properties: { a: { type: "string" }, "b-c": { type: "null" } }, required: ["a"] },
      '{ \nreadonly a: string;\n\nreadonly "b-c"?: null | undefined; }',
    ],
  ];
  for (const [schema, type] of cases) {
    test(`${JSON.stringify(schema)} is ${JSON.stringify(type)}`, () => assert.equal(typeOf(schema), type));
  }
  test("of a kind that nobody knows is an error", () => {
    assert.throws(() => typeOf({ type: "file" }), /does not know the type "file"/);
  });
});

test("a description cannot end its comment", () => {
  assert.equal(comment("a */ b"), "/** a *\\/ b */\n");
});

describe("an operation", () => {
  const made = (document: Partial<Document>) => generatedText({ paths: {}, ...document }, {});
  const responses = { "204": { content: { "application/json": {} } } };

  test("is found through references, and its own headers are the client's business", () => {
    const text = made({
      paths: {
        "/a/{id}": {
          post: {
            operationId: "doIt",
            parameters: [
              { $ref: "#/components/schemas/not-really" },
              { in: "header", name: "Idempotency-Key" },
              { in: "header", name: "If-Match", required: true, schema: { type: "string" } },
            ],
            responses,
          },
        },
      },
      components: {
        schemas: { "not-really": { in: "path", name: "id", required: true } as unknown as Schema },
      },
    });
    assert.match(text, /readonly path: \{ \nreadonly id: unknown; \};/);
    assert.match(text, /readonly "if-match": string;/);
    assert.doesNotMatch(text, /readonly "idempotency-key"/i);
    assert.match(text, /"body":"none","answer":"none","takesKey":true\}/);
  });

  test("tells failures that are answered with the record itself", () => {
    const answered = { content: { "application/json": { schema: { type: "string" } } } };
    const text = made({
      paths: { "/h": { get: { operationId: "h", responses: { "200": answered, "503": answered } } } },
    });
    assert.match(text, /"answer":"json","takesKey":false,"alsoAnswers":\[503\]/);
  });

  test("without an id, or with a reference to nothing, stops the generator", () => {
    assert.throws(() => made({ paths: { "/a": { get: { responses } } } }), /get \/a has no operationId/);
    const parameters = [{ $ref: "#/components/parameters/none" }];
    const get = { operationId: "a", parameters, responses };
    assert.throws(() => made({ paths: { "/a": { get } } }), /refers to #\/components\/parameters\/none/);
  });
});

test("the document's text does not depend on the order of its parts, and examples keep theirs", () => {
  const one = { paths: {}, components: { schemas: { B: { examples: [{ z: 1, a: 2 }] }, A: {} } } };
  const two = { components: { schemas: { A: {}, B: { examples: [{ z: 1, a: 2 }] } } }, paths: {} };
  const text = stableText(one as Document);
  assert.equal(text, stableText(two as Document));
  assert.ok(text.indexOf('"z"') < text.indexOf('"a"'));
});
