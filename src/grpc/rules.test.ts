// The protocol against the gateway's OpenAPI document: every method has its route, and messages have the fields of its JSON.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createFileRegistry, type DescMessage, type DescMethod, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { protocol, type Rule } from "./rules.ts";

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

const document = JSON.parse(readFileSync(join(import.meta.dirname, "../../sdk/openapi.json"), "utf8")) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
};

const resolved = (schema: Schema): Schema =>
  schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split("/").at(-1)!]!;

const schemaOf = (content: Content | undefined): Schema | null => {
  const schema = content?.content?.["application/json"]?.schema;
  return schema === undefined ? null : resolved(schema);
};

const namesOf = ({ fields }: DescMessage) => fields.map(({ name }) => name).sort();

/** Fields of a message, and of messages in it, that the schema does not have, and the other way round. */
function differences(message: DescMessage, given: Schema, path = message.name): readonly string[] {
  const { properties = {} } = resolved(given);
  const missing = Object.keys(properties).filter((name) =>
    message.fields.every((field) => field.name !== name),
  );
  return [
    ...missing.map((name) => `${path} lacks ${name}`),
    ...message.fields.flatMap((field) => {
      const there = properties[field.name];
      const at = `${path}.${field.name}`;
      if (there === undefined) return [`${at} is not in the JSON`];
      const schema = resolved(there);
      const inner = field.message;
      if (inner === undefined || inner.file.proto.package !== "svc.runtime.v1") return [];
      const inside =
        field.fieldKind === "list"
          ? schema.items
          : field.fieldKind === "map"
            ? (schema.additionalProperties as Schema)
            : schema;
      return differences(inner, inside ?? {}, at);
    }),
  ];
}

const methods: readonly (readonly [DescMethod, Rule])[] = protocol.flatMap(({ service, rules }) =>
  service.methods.map((method) => [method, rules[method.localName]!] as const),
);

describe("the gateway's part of the runtime protocol", () => {
  for (const [method, rule] of methods.filter(([, { api }]) => api === "gateway")) {
    test(`${method.parent.name}.${method.name} has the fields of ${rule.method} ${rule.path}`, () => {
      const operation = document.paths[`/api/v1${rule.path}`]?.[rule.method.toLowerCase()];
      assert.ok(operation !== undefined, "there is such a route");
      const { parameters = [] } = operation;
      const taken = parameters.filter((one) => one.in !== "header").map(({ name }) => name);
      const takesEtag = parameters.some(({ name }) => name === "If-Match") ? ["etag"] : [];
      const body = schemaOf(operation.requestBody);
      const members = rule.body ?? Object.keys(body?.properties ?? {});
      // Other words for what is in the body already.
      const others = ["kind", "job_id", "blueprint_id"].filter(
        (name) => rule.method === "POST" && members.includes(name),
      );
      assert.deepEqual(
        namesOf(method.input),
        [...taken, ...takesEtag, ...members.filter((name) => !others.includes(name))].sort(),
      );
      const [answer] = Object.entries(operation.responses)
        .filter(([code]) => code.startsWith("2"))
        .map(([, content]) => schemaOf(content));
      const field = method.output.fields.find(({ name }) => name === rule.answer);
      const message = rule.answer === undefined ? method.output : field?.message;
      assert.ok(message !== undefined);
      assert.deepEqual(differences(message, answer ?? {}), []);
    });
  }
});

test("what clients may use already is in the baseline, so that the check finds what would break them", () => {
  const bytes = readFileSync(join(import.meta.dirname, "../../proto/baseline.binpb"));
  const baseline = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
  const contentOf = (message: DescMessage | undefined) => message && namesOf(message);
  for (const [{ parent, name, input, output }] of methods) {
    const known = baseline.getService(parent.typeName)?.methods.some((one) => one.name === name);
    assert.ok(known, `${parent.typeName}.${name} is in no baseline: buf build proto (docs/architecture.md)`);
    for (const message of [input, output, ...output.fields.flatMap((field) => field.message ?? [])])
      assert.deepEqual(contentOf(baseline.getMessage(message.typeName)), contentOf(message));
  }
});
