// The layers of docs/architecture.md: a file imports from its own part and from those below it, never upward. And a call
// that must stay in its one place is found elsewhere here.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";

const src = resolve(import.meta.dirname, "../src");

/** From the lowest to the highest; parts of one layer do not know each other. */
const layers: readonly (readonly string[])[] = [
  ["lib", "engine"],
  ["security"],
  ["bundles", "execution"],
  ["services", "runs"],
  ["operations", "cluster"],
  ["models"],
  ["blueprints", "nodes", "schedules", "deployments", "resources"],
  ["web"],
  ["launch"],
  ["store", "observability", "ask"],
  ["http", "backup"],
  ["grpc"],
  ["app"],
  ["cli"],
  ["main.ts"],
];
const layerOf = new Map(layers.flatMap((parts, height) => parts.map((part) => [part, height] as const)));

/** Calls that belong to one module each (docs/architecture.md "Time and chance"). */
const banned: readonly {
  readonly call: RegExp;
  /** Files and folders that may. */
  readonly elsewhere: readonly string[];
  readonly instead: string;
}[] = [
  {
    call: /\bDate\.now\(/,
    elsewhere: ["app/clock.ts", "cli", "web/console", "web/dashboard", "web/vendor"],
    instead: "the Clock port",
  },
  {
    call: /\bMath\.random\(/,
    elsewhere: ["web/console", "web/dashboard", "web/vendor"],
    instead: "the Randomness port",
  },
  {
    call: /\b(setTimeout|setInterval|setImmediate)\(/,
    elsewhere: [
      "app/clock.ts",
      "http",
      "grpc",
      "cli",
      "execution/examination.ts",
      "execution/process/lease-guard.ts",
      "execution/process/memory-watch.ts",
      "execution/process/usage.ts",
      "execution/sandbox/network/proxy-thread.ts",
      "web/console",
      "web/dashboard",
      "web/vendor",
    ],
    instead: "the Clock port",
  },
  { call: /\brandomUUID\(/, elsewhere: [], instead: "the Randomness port" },
];

const files = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.(ts|js|mjs)$/.test(name) && !name.endsWith(".test.ts"))
  .filter((name) => !name.startsWith("blueprints/templates/"))
  .map((name) => join(src, name));

/** engine, http, …; a file right under src is a part of its own. */
function partOf(file: string): string {
  return relative(src, file).split("/")[0]!;
}

/** One line per import, as the formatter leaves them; and imports at run time. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, "utf8");
  const lines = /^(?:import|export|\})[^"\n]*\bfrom "([^"]+)";$|^import "([^"]+)";$|\bimport\("([^"]+)"\)/gm;
  return [...text.matchAll(lines)].map((match) => (match[1] ?? match[2] ?? match[3])!);
}

test("no import points upward, or to a part of the same layer", () => {
  const wrong = files.flatMap((file) => {
    const part = partOf(file);
    return importsOf(file)
      .filter((name) => name.startsWith("."))
      .map((name) => resolve(dirname(file), name))
      .filter((target) => target.startsWith(`${src}/`) && partOf(target) !== part)
      .filter((target) => layerOf.get(partOf(target))! >= layerOf.get(part)!)
      .map((target) => `${relative(src, file)} imports ${relative(src, target)}`);
  });
  assert.deepEqual(wrong, []);
});

test("no file imports itself by way of others, for types either", () => {
  const known = new Set(files);
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) {
      circles.push([...path.slice(path.indexOf(file)), file].map((name) => relative(src, name)).join(" > "));
      return;
    }
    if (done.has(file)) return;
    const targets = importsOf(file).map((name) => resolve(dirname(file), name));
    for (const target of targets) if (known.has(target)) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  assert.deepEqual(circles, []);
});

test("the SDK imports nothing: it is a package of its own, for browsers too", () => {
  const wrong = readdirSync(join(src, "../sdk/src"), { encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
    .flatMap((name) =>
      importsOf(join(src, "../sdk/src", name))
        .filter((target) => !/^\.\/[a-z-]+\.ts$/.test(target))
        .map((target) => `${name}: ${target}`),
    );
  assert.deepEqual(wrong, []);
});

test("the engine imports no library and nothing of Node", () => {
  const wrong = files
    .filter((file) => partOf(file) === "engine")
    .flatMap((file) =>
      importsOf(file)
        .filter((name) => !name.startsWith("."))
        .map((name) => `${file}: ${name}`),
    );
  assert.deepEqual(wrong, []);
});

test("only src/store knows SQL", () => {
  const wrong = files
    .filter(
      (file) => partOf(file) !== "store" && importsOf(file).some((name) => /kysely|node:sqlite/.test(name)),
    )
    .map((file) => relative(src, file));
  assert.deepEqual(wrong, []);
});

test("src/store/sql knows no kind of database", () => {
  const wrong = files
    .filter((file) => file.startsWith(join(src, "store/sql/")))
    .flatMap((file) =>
      importsOf(file)
        .filter((name) => name.startsWith("../sqlite/") || name === "node:sqlite")
        .map((name) => `${relative(src, file)} imports ${name}`),
    );
  assert.deepEqual(wrong, []);
});

test("time and chance are read where they belong", () => {
  const wrong = files.flatMap((file) =>
    banned
      .filter(({ elsewhere }) => !elsewhere.some((may) => `${relative(src, file)}/`.startsWith(`${may}/`)))
      .filter(({ call }) => call.test(readFileSync(file, "utf8")))
      .map(({ call, instead }) => `${relative(src, file)}: ${call.source} (use ${instead})`),
  );
  assert.deepEqual(wrong, []);
});

test("nothing waits by wall time, which moves when somebody sets the clock; but schedules, whose times people give", () => {
  const waits = /dueAtMs|deadlineAtMs|untilMs|delayMs|waitMs|sinceMs|\.after\(/;
  const others = files.filter((file) => partOf(file) !== "schedules");
  const wrong = others.flatMap((file) =>
    readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => /clock\.nowMs\(\)/i.test(line) && waits.test(line))
      .map((line) => `${relative(src, file)}: ${line.trim()} (use Clock.steadyMs)`),
  );
  assert.deepEqual(wrong, []);
});

test("every file under src belongs to a layer, and every layer has files", () => {
  assert.deepEqual(new Set(files.map(partOf)), new Set(layerOf.keys()));
});

test("a label of an invariant (E1, J2) is defined once, and another file cites it", () => {
  const texts = ["src", "sdk/src", "test", "docs"].flatMap((folder) =>
    readdirSync(join(src, "..", folder), { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(ts|js|mjs|md)$/.test(name) && !name.startsWith("node_modules"))
      .map((name) => ({
        name: join(folder, name),
        text: readFileSync(join(src, "..", folder, name), "utf8"),
      })),
  );
  const defined = new Map<string, string>();
  for (const { name, text } of texts) {
    for (const [, label = ""] of text.matchAll(/^ *(?:\/\/|\*) ([A-Z]\d{1,2})[.:] /gm)) {
      assert.ok(!defined.has(label), `${label} is defined in ${defined.get(label)} and in ${name}.`);
      defined.set(label, name);
    }
  }
  // Those of the simulation (I1, W1) are cited by the failures that it prints.
  const uncited = [...defined].filter(
    ([label, home]) =>
      !home.startsWith("test/simulation/") &&
      !texts.some(({ name, text }) => name !== home && new RegExp(`\\b${label}\\b`).test(text)),
  );
  assert.deepEqual(uncited, []);
});
