// `troupe blueprint new`, `validate` and `pack` as a person uses them: no server is needed to write, check and pack, and
// what they make runs.

import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { writeFolder } from "../support/bundle-files.ts";
import { closedPort, type Ended, startHere } from "../support/command-line.ts";
import { ask, call, ended } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { ggufFile, tinyLlama, tinyTensors } from "../support/model-files.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "cli authoring "));
});
after(() => rm(root, { recursive: true }));

const troupe = (...args: readonly string[]): Promise<Ended> => startHere(args, join(root, "home")).ended;
const at = (name: string) => join(root, name);
const json = (ended: Ended) => JSON.parse(ended.out) as JsonObject;

/** Problems or warnings, as place and code. */
const told = (findings: unknown) =>
  (findings as readonly JsonObject[]).map(({ path, code }) => `${path} ${code}`);

describe("new", () => {
  test("writes a blueprint that is valid, with its name and the address of the schemas", async () => {
    for (const template of ["hello", "folder", "service"]) {
      const folder = at(`My ${template}!`);
      const made = await troupe(
        "blueprint",
        "new",
        folder,
        "--template",
        template,
        "--name",
        'A "quoted" name',
      );
      assert.equal(made.code, 0, made.err);
      assert.match(made.out, new RegExp(`^my-${template}: \\d files in `));
      const next = `Next: troupe blueprint validate '${folder}', then troupe run '${folder}'.`;
      assert.ok(made.out.includes(next), made.out);
      const checked = await troupe("blueprint", "validate", folder, "--json");
      assert.deepEqual(
        json(checked),
        { valid: true, blueprint_id: `my-${template}`, problems: [], warnings: [] },
        checked.out,
      );
      const manifest = JSON.parse(await readFile(join(folder, "manifest.json"), "utf8")) as JsonObject;
      assert.equal(manifest.$schema, "http://127.0.0.1:54001/schemas/manifest.json");
      assert.equal(manifest.job_name, 'A "quoted" name');
      for (const file of await readdir(folder, { recursive: true, withFileTypes: true })) {
        if (!file.isFile()) continue;
        const text = await readFile(join(file.parentPath, file.name), "utf8");
        assert.ok(!text.includes("{{"), `${file.name} has a placeholder that was not filled`);
      }
    }
  });

  test("takes an empty folder, and never overwrites anything", async () => {
    const folder = at("taken");
    await mkdir(folder);
    assert.equal((await troupe("blueprint", "new", folder)).code, 0);
    const manifest = await readFile(join(folder, "manifest.json"), "utf8");
    await rm(join(folder, "README.md"));
    const again = await troupe("blueprint", "new", folder, "--template", "folder");
    assert.equal(again.code, 2);
    assert.match(again.err, /exists already/);
    assert.equal(await readFile(join(folder, "manifest.json"), "utf8"), manifest);
    assert.ok(!(await readdir(folder)).includes("README.md"));
    const file = join(folder, "manifest.json");
    assert.equal((await troupe("blueprint", "new", file)).code, 2);
    assert.equal((await troupe("blueprint", "new", join(file, "below"))).code, 2);
  });

  test("names the nearest template, and tells what is wrong with a name", async () => {
    const template = await troupe("blueprint", "new", at("x"), "--template", "helo");
    assert.deepEqual([template.code, /Did you mean hello\?/.test(template.err)], [2, true]);
    const name = await troupe("blueprint", "new", at("x"), "--name", "two\nlines");
    assert.deepEqual([name.code, /--name/.test(name.err)], [2, true]);
    assert.ok(!(await readdir(root)).includes("x"));
  });
});

describe("validate", () => {
  test("reports every problem together: manifest, configuration, declarations, and missing files", async () => {
    const folder = await writeFolder(at("all-wrong"), {
      "manifest.json": {
        ...graph("wrong", [executor("work", ["true"], { upload_path: "worker" })]),
        resources: [{ name: "data", from: "data" }],
        models: [
          { model_id: "m", path: "models/m.gguf" },
          { model_id: "elsewhere", path: "/models/x" },
        ],
        requirements: { comands: [] },
      },
      "config/default.json": {
        local_inputs: { folders: [] },
        web_ui: { enabled: true, output: { adapter: "static_html", page: "ui/index.html" } },
      },
      "payloads/validators/check.py": "",
      "payloads/validators/check.rb": "",
      "payloads/validators/helpers/anything.txt": "",
    });
    const checked = await troupe("blueprint", "validate", folder, "--json");
    assert.equal(checked.code, 1);
    const { valid, problems, warnings } = json(checked);
    assert.equal(valid, false);
    assert.deepEqual(told(problems), [
      "/nodes/0/config missing_payload",
      "/resources/0/from missing_payload",
      "/models/0/path missing_payload",
      "/config/default.json#/web_ui/output/page missing_payload",
      "/payloads/validators/check.rb unknown_validator",
    ]);
    assert.deepEqual(told(warnings), ["/requirements/comands unknown_field"]);
    const forPeople = await troupe("blueprint", "validate", folder);
    assert.equal(forPeople.code, 1);
    assert.match(forPeople.out, /WHERE +CODE +PROBLEM\n/);
    assert.match(forPeople.out, /did you mean "commands"/);
    assert.match(forPeople.err, /5 problems, 1 warning\./);
  });

  test("reports missing files beside mistakes of the declarations that name them", async () => {
    const folder = await writeFolder(at("half-wrong"), {
      "manifest.json": {
        ...graph("half", [executor("work", ["true"])]),
        resources: [{ from: "seed" }, { name: "data", from: "data" }],
        models: ["m", { model_id: "m", path: "models/m.gguf" }],
      },
    });
    const checked = await troupe("blueprint", "validate", folder, "--json");
    assert.deepEqual(told(json(checked).problems), [
      "/resources/0/name missing",
      "/models/0 wrong_type",
      "/resources/1/from missing_payload",
      "/models/1/path missing_payload",
    ]);
  });

  test("reports the mistakes of declarations beside those of the graph", async () => {
    const folder = await writeFolder(at("broken"), {
      "manifest.json": { ...graph("broken", [router("in")]), nodes: [], requirements: { cpu_cores: "many" } },
      "config/default.json": { identity: { blueprint_id: "No Id" } },
    });
    const checked = await troupe("blueprint", "validate", folder, "--json");
    assert.deepEqual(told(json(checked).problems), [
      "/nodes empty",
      "/requirements/cpu_cores wrong_type",
      "/config/default.json#/identity/blueprint_id invalid_value",
    ]);
  });

  test("warnings alone are valid, and shown", async () => {
    const folder = await writeFolder(at("warned"), {
      "manifest.json": { ...graph("warned", [router("in")]), input_validation: { rule: [] } },
    });
    const checked = await troupe("blueprint", "validate", folder);
    assert.equal(checked.code, 0);
    assert.match(checked.out, /WARNING\n.*did you mean "rules"/s);
    assert.match(checked.out, /warned is valid: 1 node/);
  });

  test("a file that cannot be read is a problem that names it", async () => {
    const folder = at("unread");
    await mkdir(folder);
    await symlink("manifest.json", join(folder, "manifest.json"));
    for (const command of [["blueprint", "validate"], ["validate"]]) {
      const { code, out, err } = await troupe(...command, folder);
      assert.equal(code, 1, err);
      assert.match(out, /unreadable +cannot be read: ELOOP.*manifest\.json/);
      assert.match(err, /\d problems/);
    }
  });

  test("needs a folder", async () => {
    await writeFile(at("file.json"), "{}");
    for (const word of [at("file.json"), at("nowhere")]) {
      const { code, err } = await troupe("blueprint", "validate", word);
      assert.deepEqual([code, /give the folder of a blueprint/.test(err)], [2, true]);
    }
  });
});

describe("pack", () => {
  test("equal folders make equal zips, and nothing is overwritten", async () => {
    const [one, other] = [at("packed/report"), at("again/report")];
    for (const folder of [one, other]) await troupe("blueprint", "new", folder, "--name", "Report");
    await chmod(join(other, "README.md"), 0o600);
    const first = await troupe("blueprint", "pack", one, "--output", at("one.zip"), "--json");
    assert.equal(first.code, 0, first.err);
    const { blueprint_id: id, file, size } = json(first);
    const bytes = await readFile(at("one.zip"));
    assert.deepEqual([id, file, size], ["report", at("one.zip"), bytes.length]);
    assert.equal((await troupe("blueprint", "pack", other, "--output", at("other.zip"))).code, 0);
    assert.ok(bytes.equals(await readFile(at("other.zip"))));
    const again = await troupe("blueprint", "pack", one, "--output", at("one.zip"));
    assert.deepEqual([again.code, /exists already/.test(again.err)], [2, true]);
    assert.ok(bytes.equals(await readFile(at("one.zip"))));
  });

  test("what is not valid is not packed", async () => {
    const folder = await writeFolder(at("unpackable"), { "manifest.json": { graph_id: "x" } });
    const { code, err } = await troupe("blueprint", "pack", folder, "--output", at("never.zip"));
    assert.equal(code, 1);
    assert.match(err, /not valid, and was not packed/);
    assert.match(err, /\/nodes: /);
    assert.ok(!(await readdir(root)).includes("never.zip"));
    const nowhere = await troupe("blueprint", "pack", at("packed/report"), "--output", at("no/folder/x.zip"));
    assert.equal(nowhere.code, 1);
    assert.match(nowhere.err, /could not be written: its folder does not exist\. Make it/);
  });

  test("a zip is not put into the folder that it is made of, also not through a link", async () => {
    const folder = at("self");
    await troupe("blueprint", "new", folder);
    await symlink(folder, at("link"));
    const before = await readdir(folder);
    for (const place of [join(folder, "payloads", "x.zip"), at("link/x.zip")]) {
      const { code, err } = await troupe("blueprint", "pack", folder, "--output", place);
      assert.deepEqual([code, /is in the folder that is packed/.test(err)], [2, true], err);
    }
    assert.deepEqual(await readdir(folder), before);
  });
});

describe("what the templates make runs", () => {
  let program: Program;
  before(async () => {
    program = await startGatewayHere({ env: { SVC_BLUEPRINT_CATALOG: at("made") } });
  });
  after(() => program.stop());

  const launch = (folder: string, ...more: readonly string[]) =>
    troupe("launch", folder, "--url", program.api, "--json", "--no-watch", ...more);

  async function resultOf(launched: Ended): Promise<unknown> {
    assert.equal(launched.code, 0, launched.err);
    const { run } = await ended(program, String(json(launched).run_id));
    assert.equal(run.status, "completed", JSON.stringify(run.failure));
    return run.result;
  }

  test("hello greets the world, or the name in the inputs", async () => {
    await troupe("blueprint", "new", at("hello-runs"));
    assert.deepEqual(await resultOf(await launch(at("hello-runs"))), { greeting: "Hello, world!" });
    await writeFile(at("inputs.json"), '{"name":"Ada"}');
    const forAda = await launch(at("hello-runs"), "--input", at("inputs.json"));
    assert.deepEqual(await resultOf(forAda), { greeting: "Hello, Ada!" });
  });

  test("folder counts the words of the sample that it ships, and its zip is a bundle", async () => {
    await troupe("blueprint", "new", at("folder-runs"), "--template", "folder");
    await troupe("blueprint", "pack", at("folder-runs"), "--output", at("folder-runs.zip"));
    assert.deepEqual(await resultOf(await launch(at("folder-runs.zip"))), { documents: 1, words: 17 });
  });

  test("folder counts the words of a user's folder, and its validator refuses one without documents", async () => {
    await troupe("blueprint", "new", at("made/words"), "--template", "folder");
    await writeFolder(at("mine"), {
      "a.MD": "two words",
      "b.txt": "three more words",
      "c.png": "not counted",
    });
    await writeFolder(at("empty"), { "c.png": "no document" });
    const overrides = (folder: string) => ({ documents: { folder: at(folder) } });
    const found = await until("the catalog has it", async () => {
      const answer = await ask(program, "GET", "/blueprints/words");
      return answer.status === 200 ? answer.body : null;
    });
    assert.deepEqual([found.state, found.errors], ["available", []]);
    const body = { config_overrides: overrides("mine") };
    const { run_id: runId } = await call(program, "POST", "/blueprints/words/runs", body);
    const { run } = await ended(program, String(runId));
    assert.deepEqual(run.result, { documents: 2, words: 5 }, JSON.stringify(run.failure));
    const judged = await call(program, "POST", "/blueprints/words/validate", { config: overrides("empty") });
    assert.equal(judged.valid, false);
    assert.match(JSON.stringify(judged.errors), /\/config\/documents\/folder/);
  });

  test("service serves its page until it is cancelled, and is found once it is well", async () => {
    const port = await closedPort();
    await troupe("blueprint", "new", at("service-runs"), "--template", "service", "--name", "<Board>");
    const manifest = join(at("service-runs"), "manifest.json");
    await writeFile(manifest, (await readFile(manifest, "utf8")).replaceAll("8750", String(port)));
    const launched = await launch(at("service-runs"));
    assert.equal(launched.code, 0, launched.err);
    const found = await until("the service is passing", async () => {
      const answer = await ask(program, "GET", "/services/service-runs/resolve");
      return answer.status === 200 ? answer.body : null;
    });
    assert.deepEqual([found.port, found.public_url], [port, `http://127.0.0.1:${port}/`]);
    const page = await (await fetch(String(found.public_url))).text();
    assert.match(page, /<h1>&lt;Board&gt;<\/h1>/);
    const runId = String(json(launched).run_id);
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    assert.equal((await ended(program, runId)).run.status, "cancelled");
  });
});

test("models validate says what a model's file is, and what is wrong with one", async () => {
  const content = ggufFile(tinyLlama, tinyTensors);
  await writeFile(at("tiny.gguf"), content);
  await writeFile(at("cut.gguf"), content.subarray(0, -1));
  const shown = await troupe("models", "validate", at("tiny.gguf"));
  assert.equal(shown.code, 0, shown.err);
  assert.match(shown.out, /^.*tiny\.gguf: "tiny", llama, 24\.8 thousand parameters, F32, gguf 3, /);
  assert.match(shown.out, /context of 256 tokens; tokenizer llama, 259 tokens; with a chat template/);
  assert.match(shown.out, /It needs about 6\d(\.\d)? MB with a context of 256 tokens: .*\nIt runs here/);
  const large = json(await troupe("models", "validate", at("tiny.gguf"), "--context", "999999999", "--json"));
  assert.deepEqual([large.fit, large.parameters, large.warnings], ["too_large", 24_768, []]);
  const refused = async (...args: readonly string[]) => {
    const { code, err } = await troupe("models", "validate", ...args);
    return `${code} ${err}`;
  };
  assert.match(await refused(at("cut.gguf")), /^1 .*cut\.gguf cannot be used.*not copied whole/);
  assert.match(await refused(at("none.gguf")), /^1 .*There is no such file/);
  assert.match(await refused(at("tiny.gguf"), "--context", "much"), /^2 .*--context 8192/);
});
