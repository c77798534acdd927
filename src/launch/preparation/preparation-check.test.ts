// The checks before a run is accepted: every problem at once, and nothing is changed.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { writeFiles } from "../../../test/support/bundles.ts";
import { folderConfig, type LaunchPlace, makeLaunchPlace, manifest } from "../../../test/support/launch.ts";
import { servicesLacking } from "../../../test/support/services.ts";
import { until } from "../../../test/support/until.ts";
import type { JsonObject } from "../../engine/json.ts";

/** Errors and unmet requirements as "path code". */
async function checkOf(place: LaunchPlace, subject: Parameters<LaunchPlace["preparation"]["check"]>[0]) {
  const { errors, unmet, warnings } = await place.preparation.check(subject);
  assert.deepEqual(await place.leftovers(), [], "a check leaves nothing");
  // Most of these subjects have it in the package's own file; a test of its own tells the files apart.
  const placed = (path: string) => path.replace("/config/default.json#", "");
  return {
    errors: errors.map(({ path, code }) => `${placed(path)} ${code}`),
    unmet: unmet.map(({ code }) => code),
    warnings: warnings.map(({ message }) => message),
    messages: [...errors, ...unmet].map(({ message }) => message),
  };
}

async function ofFolder(place: LaunchPlace, value: unknown, config: JsonObject = folderConfig) {
  const overrides = { documents: { folder: value } } as JsonObject;
  return checkOf(place, await place.subject({ config }, { configOverrides: overrides }));
}

test("a value of the package's own file is reported at that file, and one that the run overrides at the run's", async () => {
  await using place = await makeLaunchPlace();
  const given = {
    manifest: { config_schema: { properties: { limit: { type: "number" }, mode: { enum: ["a"] } } } },
    config: { limit: "many", mode: "b" },
  };
  const placesOf = async (configOverrides: JsonObject) => {
    const { errors } = await place.preparation.check(await place.subject(given, { configOverrides }));
    return errors.map(({ part, path }) => `${part} ${path}`).sort();
  };
  const own = (path: string) => `package /config/default.json#${path}`;
  assert.deepEqual(await placesOf({}), [own("/limit"), own("/mode")]);
  const web_ui = { enabled: true, output: { adapter: "x" } };
  assert.deepEqual(await placesOf({ mode: "c", web_ui }), [
    "configuration /mode",
    "configuration /web_ui/output/adapter",
    own("/limit"),
  ]);
});

test("a folder with allowed files passes, with a warning of how many others are skipped", async () => {
  await using place = await makeLaunchPlace();
  const docs = await writeFiles(join(place.folder, "docs"), { "a.txt": "1", "b.MD": "2", "c.png": "3" });
  const found = await ofFolder(place, docs);
  assert.deepEqual([found.errors, found.unmet], [[], []]);
  assert.match(found.warnings.join(), /2 files are taken, 1 skipped, because only \.txt, \.md will do/);
});

test("a folder that cannot be used is a problem with its place and reason", async () => {
  await using place = await makeLaunchPlace();
  const { folder, home } = place;
  const good = await writeFiles(join(folder, "good"), { "a.txt": "1" });
  const leaking = await writeFiles(join(folder, "leaking"), { "a.txt": "1" });
  await symlink("/etc/passwd", join(leaking, "leak.txt"));
  await mkdir(join(folder, "empty"));
  const pictures = await writeFiles(join(folder, "pictures"), { "a.png": "1" });
  for (const [value, code] of [
    [join(folder, "nowhere"), "not_found"],
    [join(good, "a.txt"), "not_a_folder"],
    [join(good, "a.txt", "deeper"), "not_found"],
    ["relative/folder", "not_absolute"],
    [join(folder, "empty"), "no_files"],
    [pictures, "no_files"],
    [leaking, "symlink_leaves"],
    [home, "not_allowed"],
    [folder, "not_allowed"],
    [join(home, "runs"), "not_allowed"],
    ["/", "not_allowed"],
    [7, "wrong_type"],
    ["a\0b", "wrong_type"],
  ] as const) {
    assert.deepEqual((await ofFolder(place, value)).errors, [`/documents/folder ${code}`], String(value));
  }
  assert.deepEqual((await ofFolder(place, good)).errors, []);
});

test("a folder setting at the place of a secret does not reveal the secret", async () => {
  await using place = await makeLaunchPlace();
  const { folder, secrets } = place;
  const leaking = await writeFiles(join(folder, "leaking"), { "a.txt": "1" });
  await symlink("/etc/passwd", join(leaking, "leak.txt"));
  await mkdir(join(folder, "empty"));
  for (const [configPath, jobConfiguration] of [
    ["reader.api_key", (value: string) => ({ reader: { api_key: value } })],
    ["token.parts.0", (value: string) => ({ token: { parts: [value] } })],
  ] as const) {
    const folders = [{ config_path: configPath, payload_path: "worker/x", runtime_path: "x" }];
    const asked = { config: {} };
    for (const value of [
      "s3cret",
      "/no/s3cret",
      leaking,
      join(folder, "empty"),
      join(leaking, "a.txt"),
      place.home,
    ]) {
      const subject = await place.subject(asked, {
        jobConfiguration: secrets.encrypt(jobConfiguration(value)),
        configOverrides: { local_inputs: { folders } },
      });
      const { errors, messages } = await checkOf(place, subject);
      assert.equal(errors.length, 1, value);
      assert.ok(!messages.join().includes(value), messages.join());
    }
  }
});

test("a linked setting that cannot be set, and a value of any length, are problems", async () => {
  await using place = await makeLaunchPlace();
  const docs = await writeFiles(join(place.folder, "docs"), { "a.txt": "1" });
  const documents = { folder: docs };
  for (const reader of [7, true, ["x"], "text"]) {
    const { errors } = await checkOf(
      place,
      await place.subject({ config: { ...folderConfig, documents, reader } }),
    );
    assert.deepEqual(errors, ["/reader/input not_settable"], JSON.stringify(reader));
  }
  for (const reader of [null, "", {}, { input: 7 }]) {
    const { errors } = await checkOf(
      place,
      await place.subject({ config: { ...folderConfig, documents, reader } }),
    );
    assert.deepEqual(errors, [], JSON.stringify(reader));
  }
  const subject = await place.subject({
    config: { ...folderConfig, documents: { folder: "x".repeat(99_999) } },
  });
  const { errors } = await place.preparation.check(subject);
  assert.ok(errors[0]!.message.length < 500);
});

test("a blank value does not override a folder that a lower layer names, and everywhere blank is no folder", async () => {
  await using place = await makeLaunchPlace();
  for (const blank of ["", "  ", null]) assert.deepEqual((await ofFolder(place, blank)).errors, []);
  const subject = await place.subject(
    { config: folderConfig },
    {
      jobConfiguration: { documents: { folder: join(place.folder, "nowhere") } },
      configOverrides: { documents: { folder: " " } },
    },
  );
  assert.deepEqual((await checkOf(place, subject)).errors, ["/documents/folder not_found"]);
});

test("the staged form is accepted when the package ships the folder, and only then", async () => {
  await using place = await makeLaunchPlace();
  const config = { ...folderConfig, documents: { folder: "mn_local_inputs/documents" } };
  const shipped = { "worker/mn_local_inputs/documents/sample.txt": "sample" };
  assert.deepEqual((await checkOf(place, await place.subject({ config, payload: shipped }))).errors, []);
  const missing = await checkOf(place, await place.subject({ config }));
  assert.deepEqual(missing.errors, ["/documents/folder not_found"]);
});

test("problems of schemas, rules, folders and validators are reported together, each with its path", async () => {
  await using place = await makeLaunchPlace();
  const subject = await place.subject(
    {
      config: { ...folderConfig, limit: "many", api_key: "" },
      manifest: {
        config_schema: { properties: { limit: { type: "integer" } }, required: ["title"] },
        input_schema: { properties: { question: { type: "string" } }, required: ["question"] },
        input_validation: { rules: [{ path: "api_key", required: true }] },
      },
      payload: { "validators/v.sh": 'echo \'{"errors":[{"path":"a.b","message":"no"}]}\'; exit 1\n' },
    },
    { configOverrides: { documents: { folder: "/no/such/folder" } }, inputs: { question: 1 } },
  );
  assert.deepEqual((await checkOf(place, subject)).errors, [
    "/title required",
    "/limit wrong_type",
    "/question wrong_type",
    "/documents/folder not_found",
    "/api_key required",
    "/a/b validator_refused",
  ]);
});

test("inputs that are addressed are checked one by one, and the manifest's own stand for absent ones", async () => {
  await using place = await makeLaunchPlace();
  const input_schema = { type: "object", required: ["q"] };
  const bare = { manifest: { input_schema } };
  assert.deepEqual((await checkOf(place, await place.subject(bare))).errors, ["/q required"]);
  const own = { manifest: { input_schema, initial_inputs: { read: [{ q: 1 }] } } };
  assert.deepEqual((await checkOf(place, await place.subject(own))).errors, []);
  const inputs = { $entrypoints: { read: [{ q: 1 }, {}] } };
  const found = await checkOf(place, await place.subject(own, { inputs }));
  assert.deepEqual(found.errors, ["/$entrypoints/read/1/q required"]);
});

test("a schema's pattern that would take years is aborted", async () => {
  await using place = await makeLaunchPlace();
  const config_schema = {
    properties: { good: { pattern: "^b$" }, bad: { pattern: "^c$" }, text: { pattern: "^(a+)+$" } },
  };
  const subject = await place.subject({
    config: { good: "b", bad: "b", text: `${"a".repeat(60)}b` },
    manifest: { config_schema },
  });
  assert.deepEqual((await checkOf(place, subject)).errors.toSorted(), ["/bad pattern", "/text pattern"]);
});

test("every unmet requirement has a message with the next step", async () => {
  await using place = await makeLaunchPlace({
    services: servicesLacking((required) =>
      required.map(({ name }) => ({ service: name, reason: `${name} does not pass.` })),
    ),
  });
  const requirements = {
    commands: ["sh", "no-such-program-at-all"],
    environment: ["PATH", "TROUPE_NO_SUCH_VARIABLE"],
    platforms: ["aix"],
    cpu_cores: 100_000,
    memory_bytes: 2 ** 50,
    disk_bytes: 2 ** 52,
    pools: { default: 1, gpu: 2 },
    models: ["tiny"],
    services: ["embedder"],
  };
  const resources = [{ name: "index" }];
  const required_services = ["embedder"];
  const subject = await place.subject({ manifest: { requirements, resources, required_services } });
  const { unmet, messages } = await checkOf(place, { ...subject, blueprintId: "reader" });
  assert.deepEqual(unmet, [
    "command_missing",
    "variable_missing",
    "wrong_platform",
    "too_few_cores",
    "too_little_memory",
    "too_little_disk",
    "pool_too_small",
    "model_missing",
    "resource_missing",
    "service_unavailable",
  ]);
  for (const message of messages) {
    assert.match(message, /^The .*\.$/);
    assert.ok(!message.includes(place.home), message);
  }
});

test("a blueprint that is not added is not asked for what its addition makes", async () => {
  await using place = await makeLaunchPlace();
  const parts = { resources: [{ name: "index" }], models: [{ model_id: "tiny", path: "worker/run.py" }] };
  const subject = await place.subject({ manifest: { ...parts, requirements: { models: ["tiny"] } } });
  assert.deepEqual((await checkOf(place, { ...subject, fingerprint: null })).unmet, []);
  assert.deepEqual((await checkOf(place, subject)).unmet, ["model_missing", "resource_missing"]);
});

test("a variable or a key that the configuration needs and the machine lacks is unmet", async () => {
  await using place = await makeLaunchPlace();
  const subject = await place.subject({ config: { key: { $env: "TROUPE_NO_SUCH_VARIABLE" } } });
  assert.deepEqual((await checkOf(place, subject)).unmet, ["configuration.variable_missing"]);
  const encrypted = { api_key: { $sealed: "v1:nonsense" } };
  const unreadable = await place.subject({}, { jobConfiguration: encrypted });
  assert.deepEqual((await checkOf(place, unreadable)).unmet, ["configuration.unreadable"]);
});

test("a check that takes too long is reported, beside what it has found by then", async () => {
  const timers: (() => void)[] = [];
  await using place = await makeLaunchPlace({
    clock: {
      nowMs: () => 0,
      steadyMs: () => 0,
      soon: (run) => setImmediate(run),
      after: (_delayMs, run) => {
        timers.push(run);
        return () => {};
      },
    },
    // A validator that never ends: the clock strikes while it runs.
    sideCommand: (_command, signal) =>
      new Promise((resolve) => {
        signal?.addEventListener("abort", () => resolve({ kind: "aborted" }));
        timers[0]?.();
      }),
  });
  const subject = await place.subject({
    payload: { "validators/slow.sh": "sleep 60\n" },
    manifest: { input_validation: { rules: [{ path: "name", required: true }] } },
  });
  const { errors } = await place.preparation.check(subject);
  assert.deepEqual(
    errors.map(({ code }) => code),
    ["required", "check_timeout"],
  );
});

test("a validator that ignores SIGTERM is killed and named before the check itself times out", {
  timeout: 60_000,
}, async () => {
  const timers = new Set<{ readonly atMs: number; readonly run: () => void }>();
  let nowMs = 0;
  await using place = await makeLaunchPlace({
    clock: {
      nowMs: () => nowMs,
      steadyMs: () => nowMs,
      soon: (run) => setImmediate(run),
      after: (delayMs, run) => {
        const timer = { atMs: nowMs + delayMs, run };
        timers.add(timer);
        return () => timers.delete(timer);
      },
    },
  });
  const begun = join(place.folder, "begun");
  const subject = await place.subject({
    payload: { "validators/stubborn.sh": `trap "" TERM; echo > '${begun}'; while :; do sleep 0.1; done` },
  });
  const check = place.preparation.check(subject);
  await until("the validator", () => existsSync(begun));
  const next = () => [...timers].sort((a, b) => a.atMs - b.atMs).find(({ atMs }) => atMs <= 9_500);
  for (let timer = next(); timer !== undefined; timer = next()) {
    timers.delete(timer);
    nowMs = timer.atMs;
    timer.run();
  }
  const { errors } = await check;
  assert.deepEqual(
    errors.map(({ code, message }) => [code, message.split(":")[0]]),
    [["validator_failed", "validators/stubborn.sh took too long"]],
  );
});

test("a launch needs preparation when its package, its configuration or its overrides ask for something", async () => {
  await using place = await makeLaunchPlace();
  const needs = async (...given: Parameters<LaunchPlace["subject"]>) =>
    place.preparation.isNeeded(await place.subject(...given));
  assert.equal(await needs(), false);
  assert.equal(await needs({ config: { a: 1 }, manifest }), false);
  assert.equal(await needs({ config: folderConfig }), true);
  assert.equal(await needs({}, { configOverrides: { web_ui: { enabled: true } } }), true);
  assert.equal(await needs({}, { jobConfiguration: { local_inputs: { folders: [] } } }), true);
  assert.equal(await needs({ payload: { "validators/v.py": "" } }), true);
  assert.equal(await needs({ payload: { "validators/notes.txt": "" } }), false);
  assert.equal(await needs({ manifest: { requirements: { commands: ["sh"] } } }), true);
  assert.equal(await needs({ manifest: { requirements: { memory_bytes: 1 } } }), true);
  assert.equal(await needs({ manifest: { required_services: ["x"] } }), true);
  assert.equal(await needs({ manifest: { config_schema: {} } }), true);
});
