// The arrows of docs/architecture.md: api -> features -> engine, the store implements ports, app.ts wires. An import
// that points back fails here, and so does a call that must stay in its one place.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";

const src = resolve(import.meta.dirname, "../src");

/** What the files of a part may import beside their own part. Parts that are missing here may import anything. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  engine: [],
  refusal: [],
  several: [],
  cgroups: [],
  "make-folder": [],
  "open-folder": [],
  "supplementary-groups": [],
  "within-time": [],
  "sync-tree": ["several", "sync-folder"],
  secrets: ["engine", "sync-folder"],
  execution: [
    "engine",
    "secrets",
    "cgroups",
    "make-folder",
    "open-folder",
    "several",
    "supplementary-groups",
  ],
  bundles: ["engine", "secrets", "few-at-once", "folder-bytes", "keyed-turns", "several", "sync-folder"],
  runs: ["engine", "keyed-turns", "few-at-once"],
  operations: ["engine", "runs", "refusal", "keyed-turns"],
  services: ["engine", "execution", "refusal"],
  blueprints: [
    "engine",
    "execution",
    "bundles",
    "operations",
    "secrets",
    "refusal",
    "folder-bytes",
    "keyed-turns",
    "several",
    "sync-folder",
    "sync-tree",
    "nearest-name",
    "open-folder",
    "within-time",
  ],
  webui: ["engine", "bundles", "blueprints", "refusal"],
  preparation: [
    "engine",
    "execution",
    "bundles",
    "blueprints",
    "webui",
    "secrets",
    "few-at-once",
    "open-folder",
    "several",
    "sync-folder",
    "sync-tree",
    "within-time",
  ],
  jobs: [
    "engine",
    "bundles",
    "runs",
    "operations",
    "blueprints",
    "preparation",
    "webui",
    "secrets",
    "refusal",
    "keyed-turns",
  ],
  store: [
    "engine",
    "bundles",
    "runs",
    "operations",
    "blueprints",
    "webui",
    "jobs",
    "execution",
    "folder-bytes",
    "keyed-turns",
    "make-folder",
    "sync-folder",
  ],
  backup: ["execution", "store", "sync-folder", "sync-tree"],
  doctor: ["cgroups", "supplementary-groups"],
  metrics: ["engine"],
  telemetry: ["engine", "runs"],
  api: [
    "engine",
    "execution",
    "bundles",
    "runs",
    "operations",
    "services",
    "blueprints",
    "preparation",
    "webui",
    "jobs",
    "secrets",
    "refusal",
    "doctor",
    "metrics",
    "config",
    "keyed-turns",
    "within-time",
  ],
  // Some commands open the store, and the secrets in it, themselves: they are there for when no server runs.
  cli: [
    "backup",
    "engine",
    "bundles",
    "blueprints",
    "store",
    "secrets",
    "doctor",
    "config",
    "make-folder",
    "nearest-name",
    "listen",
    "runtime-socket",
    "telemetry",
    "version",
    "app",
    "sdk",
  ],
  config: ["nearest-name", "runtime-socket", "secrets"],
};

const features = [
  "bundles",
  "runs",
  "operations",
  "services",
  "blueprints",
  "webui",
  "preparation",
  "jobs",
] as const;

/** Calls that belong to one module each (docs/architecture.md "Time and chance"). */
const banned: readonly {
  readonly call: RegExp;
  readonly parts: readonly string[];
  readonly instead: string;
}[] = [
  {
    call: /\bDate\.now\(/,
    parts: Object.keys(allowed).filter((part) => part !== "cli"),
    instead: "the Clock port",
  },
  { call: /\bMath\.random\(/, parts: Object.keys(allowed), instead: "the Randomness port" },
  {
    call: /\b(setTimeout|setInterval|setImmediate)\(/,
    parts: [...features, "engine", "store", "telemetry"],
    instead: "the Clock port",
  },
  { call: /\brandomUUID\(/, parts: Object.keys(allowed), instead: "the Randomness port" },
];

const files = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !/(\.test|test-[a-z]+)\.ts$/.test(name))
  .map((name) => join(src, name));

/** engine, api, …; a file right under src is a part of its own, config-table.ts belonging to config. */
function partOf(file: string): string {
  const [first = "", second = ""] = relative(src, file).split("/");
  // Beside src there is only the SDK.
  if (first === "..") return second;
  return first.endsWith(".ts") ? first.slice(0, -3).replace(/^config-.*/, "config") : first;
}

/** One line per import, as the formatter leaves them; and imports at run time. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, "utf8");
  const lines = /^(?:import|export|\})[^"\n]*\bfrom "([^"]+)";$|^import "([^"]+)";$|\bimport\("([^"]+)"\)/gm;
  return [...text.matchAll(lines)].map((match) => (match[1] ?? match[2] ?? match[3])!);
}

test("no import points back along the architecture's arrows", () => {
  const wrong = files.flatMap((file) => {
    const part = partOf(file);
    const may = allowed[part];
    if (may === undefined) return [];
    return importsOf(file)
      .filter((name) => name.startsWith(".") && name.endsWith(".ts"))
      .map((name) => partOf(resolve(dirname(file), name)))
      .filter((target) => target !== part && !may.includes(target))
      .map((target) => `${relative(src, file)} imports ${target}`);
  });
  assert.deepEqual(wrong, []);
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

test("time and chance are read where they belong", () => {
  const wrong = files.flatMap((file) =>
    banned
      .filter(({ call, parts }) => parts.includes(partOf(file)) && call.test(readFileSync(file, "utf8")))
      .map(({ call, instead }) => `${relative(src, file)}: ${call.source} (use ${instead})`),
  );
  assert.deepEqual(wrong, []);
});

test("nothing waits by wall time: it moves when somebody sets the clock", () => {
  const waits = /dueAtMs|deadlineAtMs|untilMs|delayMs|waitMs|sinceMs|\.after\(/;
  const wrong = files.flatMap((file) =>
    readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => /clock\.nowMs\(\)/i.test(line) && waits.test(line))
      .map((line) => `${relative(src, file)}: ${line.trim()} (use Clock.steadyMs)`),
  );
  assert.deepEqual(wrong, []);
});

test("every import names an existing part, so that this test sees all of them", () => {
  const parts = new Set(files.map(partOf));
  for (const name of Object.keys(allowed)) assert.ok(parts.has(name), `there is no part ${name}`);
  assert.ok(files.length > 50);
});
