// Values: some that fit a schema, many that do not.

import type { Random } from "../simulation/random.ts";
import type { Schema, Surface } from "./surface.ts";

const deep = (levels: number, open: string, close: string) =>
  open.repeat(levels) + (open === "[" ? "" : "1") + close.repeat(levels);

/** JSON, valid and unwelcome. */
export const strangeJson: readonly string[] = [
  ..."null true false 0 -0 -1 1 0.5 1e999 -1e999 1e-999 9007199254740993 -9223372036854775809".split(" "),
  "1".repeat(400),
  '""',
  '" "',
  '"\\u0000"',
  '"\\ud800"',
  '"\\udfff\\ud800"',
  '"\\u202e\\ufeff"',
  '"é€😀"',
  '"../../etc/passwd"',
  '"********"',
  `"${"x".repeat(10_000)}"`,
  "[]",
  "[[],[]]",
  "{}",
  '{"":""}',
  '{"__proto__":{"x":1}}',
  '{"constructor":{"prototype":1}}',
  '{"toString":null,"hasOwnProperty":1}',
  '{"$ref":"#"}',
  '{"$env":"PATH"}',
  '{"$env":7}',
  '{"$entrypoints":{}}',
  '{"$entrypoints":{"in":[1],"nobody":2}}',
  '{"token":"hunter2hunter2","password":["a"]}',
  '{"a":1,"a":2}',
  deep(40, "[", "]"),
  deep(101, "[", "]"),
  deep(20_000, "[", "]"),
  deep(99, '{"a":', "}"),
  deep(5_000, '{"a":', "}"),
  `[${"1,".repeat(5_000)}1]`,
  `{${Array.from({ length: 2_000 }, (_, i) => `"k${i}":${i}`).join(",")}}`,
];

/** What only looks like JSON, or does not even do that. */
export const brokenJson: readonly (string | Buffer)[] = [
  "",
  " ",
  "{",
  "}",
  '{"',
  '{"a"',
  '{"a":',
  '{"a":1',
  '{"a":1,}',
  "{a:1}",
  "{'a':1}",
  "[1,]",
  "[,1]",
  "01",
  "+1",
  ".5",
  "1.",
  "0x10",
  "NaN",
  "-Infinity",
  "undefined",
  "nul",
  "{}{}",
  "{}\n{}",
  "// no\n{}",
  '"\n"',
  '"\\x41"',
  '"\\ud8"',
  "\ufeff{}",
  "\0",
  "{}\0",
  "<a/>",
  "a=1&b=2",
  "[".repeat(60_000),
  '{"a":'.repeat(10_000),
  Buffer.from([0x22, 0xff, 0xfe, 0x22]),
  Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
  Buffer.from([0x22, 0xc0, 0xaf, 0x22]),
  Buffer.from([0x22, 0xf0, 0x9f, 0x98, 0x22]),
  Buffer.from('{"a":1}', "utf16le"),
];

/** Pieces of a URL, encoded or not. */
export const strangeText: readonly string[] = [
  ..."0 -1 1.5 1e3 201 999999999999999999999 NaN null undefined true false yes [] {} * . .. ; , ' ~".split(
    " ",
  ),
  "",
  "%00",
  "%0d%0aX-Injected:1",
  "%",
  "%zz",
  "%ff",
  "%c0%af",
  "%ed%a0%80",
  "%25%32%35",
  "%F0%9F%98%80",
  "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
  "..%5c..%5cwindows",
  "\\",
  "+",
  "a+b",
  "%20",
  "a;b=c",
  "'%20OR%201=1--",
  "%D9%A1",
  "__proto__",
  "constructor",
  "toString",
  "x".repeat(200),
  "%41".repeat(700),
  "9".repeat(300),
  "x".repeat(7_000),
  "x".repeat(20_000),
];

/** Values of headers. */
export const strangeHeaders: readonly string[] = [
  ..."0 -1 1.5 1e9 9007199254740993 99999999999999999999 NaN * ** W/* null".split(" "),
  "",
  " ",
  "\t",
  '"',
  '""',
  '"1"',
  'W/"1"',
  '"1", "2"',
  '"1',
  "1,1,1",
  "bytes=0-",
  "bytes=-1",
  "bytes=-0",
  "bytes=5-2",
  "bytes=0-0,2-3",
  "bytes=-",
  "bytes=a-b",
  "bytes=99999999999999999999-",
  "bytes=0-99999999999999999999",
  `bytes=${"0-0,".repeat(1_000)}0-0`,
  "pages=1-2",
  "Bearer",
  "Bearer  x",
  "Basic",
  "Basic !!!!",
  "Basic Og==",
  "Digest x",
  "gzip",
  "br, gzip;q=2",
  "identity;q=0",
  "text/event-stream",
  "application/json; charset=utf-7",
  "a/b;c=d;c=e",
  "Mon, 99 Foo 2026 25:61:61 GMT",
  "é\xff\x80",
  "{}",
  "x".repeat(255),
  "x".repeat(256),
  "x".repeat(4_000),
  "x".repeat(17_000),
];

/** A value that fits, as far as a schema tells; `null` as text for what it does not. */
export function fittingJson(surface: Surface, schema: Schema, random: Random): string {
  const found = surface.resolve(schema);
  const choices = found.anyOf ?? found.oneOf;
  if (choices !== undefined) return fittingJson(surface, random.pick(choices), random);
  if (found.const !== undefined) return JSON.stringify(found.const);
  if (found.enum !== undefined) return JSON.stringify(random.pick(found.enum));
  const type = typeof found.type === "object" ? random.pick(found.type) : found.type;
  switch (type) {
    case "string":
      return JSON.stringify(`text ${random.below(1_000)}`);
    case "integer":
    case "number":
      return String(random.between(found.minimum ?? 0, found.maximum ?? 1_000));
    case "boolean":
      return String(random.chance(0.5));
    case "array":
      return `[${found.items === undefined ? "" : fittingJson(surface, found.items, random)}]`;
    case "object":
      return jsonObject(fittingFields(surface, found, random));
    default:
      return "null";
  }
}

/** Names and JSON texts of an object's fields; the optional ones by chance. */
export function fittingFields(
  surface: Surface,
  schema: Schema,
  random: Random,
): readonly (readonly [string, string])[] {
  const { properties = {}, required = [], additionalProperties } = surface.resolve(schema);
  const fields = Object.entries(properties)
    .filter(([name]) => required.includes(name) || random.chance(0.5))
    .map(([name, one]) => [name, fittingJson(surface, one, random)] as const);
  const isFree = additionalProperties === true && Object.keys(properties).length === 0;
  return isFree ? [["n", String(random.below(100))]] : fields;
}

export function jsonObject(fields: readonly (readonly [string, string])[]): string {
  return `{${fields.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`;
}

/** Text of a query value that fits. */
export function fittingText(surface: Surface, schema: Schema, random: Random): string {
  const json = fittingJson(surface, schema, random);
  return encodeURIComponent(json.startsWith('"') ? (JSON.parse(json) as string) : json);
}

/** Random bytes, or bytes with some of them changed. */
export function shaken(bytes: Buffer, random: Random): Buffer {
  const copy = Buffer.from(bytes);
  if (copy.length === 0) return copy;
  for (let times = random.between(1, 8); times > 0; times--)
    copy[random.below(copy.length)] = random.below(256);
  return copy;
}
