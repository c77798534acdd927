// A package's validators as real programs: asked at both stages, bounded in time, and heard without showing secrets.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { writeFiles } from "../../../test/support/bundles.ts";
import {
  aRun,
  folderConfig,
  type LaunchPlace,
  makeLaunchPlace,
  progress,
} from "../../../test/support/launch.ts";
import { PreparationFailed } from "./findings.ts";
import { Validators } from "./validators.ts";

/** Each says at which stage it was asked, where it stands, and whether it finds the folder of the configuration. */
const speaking = {
  "validators/1.py": `import json, os
folder = json.loads(os.environ["SVC_BLUEPRINT_CONFIG_JSON"])["documents"]["folder"]
there = os.path.isdir(folder) and os.listdir(folder) == ["a.txt"]
warning = f"py {os.environ['SVC_VALIDATION_STAGE']} {os.path.basename(os.getcwd())} {there} {os.path.isabs(folder)}"
print("some noise")
print(json.dumps({"warnings": [{"path": "documents.folder", "message": warning}]}))
`,
  "validators/2.mjs": `import { existsSync, appendFileSync } from "node:fs";
import { basename, isAbsolute } from "node:path";
const { folder } = JSON.parse(process.env.SVC_BLUEPRINT_CONFIG_JSON).documents;
const message = ["mjs", process.env.SVC_VALIDATION_STAGE, basename(process.cwd()), existsSync(folder), isAbsolute(folder)].join(" ");
console.log(JSON.stringify({ warnings: [{ path: "/documents/folder", message }], errors: [] }));
appendFileSync("../worker/run.py", "changed by a validator");
`,
  "validators/3.sh": `printf '{"warnings":["sh %s %s"]}' "$SVC_VALIDATION_STAGE" "$(basename "$PWD")"\n`,
};

async function errorsOf(place: LaunchPlace, name: string, script: string, config = {}) {
  const subject = await place.subject({ config, payload: { [`validators/${name}`]: script } });
  const { errors } = await place.preparation.check(subject);
  assert.deepEqual(await place.leftovers(), []);
  return errors.map(({ path, code, message }) => [path, code, message]);
}

test("Python, JavaScript and shell are asked at both stages, where the folder's runtime path begins", async () => {
  await using place = await makeLaunchPlace();
  const docs = await writeFiles(join(place.folder, "docs"), { "a.txt": "1" });
  const config = { ...folderConfig, documents: { folder: docs } };
  const subject = await place.subject({ config, payload: speaking });
  const { errors, warnings } = await place.preparation.check(subject);
  assert.deepEqual(errors, []);
  assert.deepEqual(
    warnings.map(({ path, message }) => `${path} ${message}`),
    [
      "/documents/folder py native worker True True",
      "/documents/folder mjs native worker true true",
      " sh native worker",
    ],
  );
  const snapshot = join(place.home, "bundles", subject.fingerprint!, "payloads/worker/run.py");
  assert.equal(await readFile(snapshot, "utf8"), "print(1)\n", "no validator changes the package");

  const staged = { ...speaking, "validators/4.sh": 'test "$SVC_VALIDATION_STAGE" = native\n' };
  const refusing = await place.subject({ config, payload: staged });
  const work = place.preparation.prepare(aRun, refusing, progress());
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof PreparationFailed);
    assert.deepEqual(
      [error.code, error.message],
      ["preparation.input_invalid", "validators/4.sh ended with exit code 1"],
    );
    return true;
  });
  assert.deepEqual(await place.leftovers(), []);
});

test("the staged stage finds the copied folder by its runtime path", async () => {
  await using place = await makeLaunchPlace();
  const docs = await writeFiles(join(place.folder, "docs"), { "a.txt": "1" });
  const script = `import json, os, sys
stage = os.environ["SVC_VALIDATION_STAGE"]
folder = json.loads(os.environ["SVC_BLUEPRINT_CONFIG_JSON"])["documents"]["folder"]
sys.exit(0 if os.listdir(folder) == ["a.txt"] and os.path.isabs(folder) == (stage == "native") else stage)
`;
  const config = { ...folderConfig, documents: { folder: docs } };
  const subject = await place.subject({ config, payload: { "validators/v.py": script } });
  assert.deepEqual((await place.preparation.check(subject)).errors, []);
  const launch = await place.preparation.prepare(aRun, subject, progress());
  assert.equal(launch.hasOwnPayload, true);
  const worker = join(place.home, "runs/run_1/prepared/payload");
  assert.equal(existsSync(join(worker, "validators/__pycache__")), false);
});

test("errors have the place that the validator names, as a dotted path or as a pointer, or none", async () => {
  await using place = await makeLaunchPlace();
  const report = { errors: [{ path: "a.b", message: "one" }, { path: "/c/d", message: "two" }, "three"] };
  const errors = await errorsOf(place, "v.sh", `echo noise; echo '${JSON.stringify(report)}'; exit 1\n`);
  assert.deepEqual(errors, [
    ["/a/b", "validator_refused", "one"],
    ["/c/d", "validator_refused", "two"],
    ["", "validator_refused", "three"],
  ]);
  const named = await errorsOf(place, "v.sh", `echo '{"errors":["no"]}'; exit 0\n`);
  assert.deepEqual(named, [["", "validator_refused", "no"]], "who names errors does not agree");
});

test("a refusal after megabytes of output is recognised, in every form of a report", async () => {
  await using place = await makeLaunchPlace();
  const noise =
    'i=0; while [ $i -lt 5000 ]; do echo "a line of a log that nobody reads, one of very many lines"; i=$((i+1)); done\n';
  const behind = await errorsOf(place, "v.sh", `${noise}${noise}echo '{"errors":["no"]}'\n`);
  assert.deepEqual(behind, [["", "validator_refused", "no"]]);
  const long = "import json\nprint(json.dumps({'errors': ['x' * 1000] * 2000}))\n";
  const tooLong = [["", "validator_failed", "validators/v.py printed a report of more than 256 KiB"]];
  assert.deepEqual(await errorsOf(place, "v.py", long), tooLong, "an answer that is not known is no yes");
  const lines = JSON.stringify({ errors: [{ path: "a", message: "no" }] }, null, 2);
  assert.deepEqual(await errorsOf(place, "v.sh", `cat <<'END'\n${lines}\nEND\n`), [
    ["/a", "validator_refused", "no"],
  ]);
  const single = `echo '{"errors":{"path":"a","message":"no"},"warnings":""}'\n`;
  assert.deepEqual(await errorsOf(place, "v.sh", single), [["/a", "validator_refused", "no"]]);
  assert.deepEqual(await errorsOf(place, "v.sh", `echo '{"errors":{}}'\n`), []);
});

test("without a report the reason is the end of its output, without paths of this machine", async () => {
  await using place = await makeLaunchPlace();
  const crash = await errorsOf(place, "v.py", "raise ValueError('the folder is upside down')\n");
  const [[path, code, message] = []] = crash;
  assert.deepEqual([path, code], ["", "validator_failed"]);
  assert.match(message!, /^validators\/v\.py ended with exit code 1: Traceback[\s\S]*upside down$/);
  assert.match(message!, /File "validators\/v\.py", line 1/);
  assert.ok(!message!.includes(place.home));
  const quiet = await errorsOf(place, "v.sh", "exit 3\n");
  assert.deepEqual(quiet, [["", "validator_failed", "validators/v.sh ended with exit code 3"]]);
  const killed = await errorsOf(place, "v.sh", "kill -9 $$\n");
  assert.deepEqual(killed, [["", "validator_failed", "validators/v.sh was ended by a signal"]]);
});

test("secrets of the configuration are given in plaintext, and are redacted in what is shown", async () => {
  await using place = await makeLaunchPlace({
    runtimeEnv: { PATH: process.env.PATH, KEY: "from-the-environment" },
  });
  const script = 'echo "$SVC_BLUEPRINT_CONFIG_JSON" >&2; exit 1\n';
  const config = { api_key: "sk-0123456789", other: { $env: "KEY" }, name: "shown" };
  const [[, , message] = []] = await errorsOf(place, "v.sh", script, config);
  assert.match(message!, /"api_key":"\[redacted\]","other":"\[redacted\]","name":"shown"/);
  const named = `echo '{"errors":[{"path":"keys.sk-0123456789","message":"no"}]}'\n`;
  const inPath = await errorsOf(place, "v.sh", named, config);
  assert.deepEqual(inPath, [["/keys/[redacted]", "validator_refused", "no"]]);
});

test("a validator that takes too long is killed and reported, and none runs after it: they share one timeout", async () => {
  await using place = await makeLaunchPlace();
  const given: number[] = [];
  const validators = new Validators(
    async ({ timeoutMs }) => {
      given.push(timeoutMs);
      const printed = { stdout: "", stderr: "" };
      return given.length === 1 ? { kind: "exited", code: 0, ...printed } : { kind: "timed_out", ...printed };
    },
    ["SVC_"],
  );
  const found = await validators.ask(["a.py", "b.py", "c.py"], {
    stage: "native",
    payload: place.folder,
    folder: place.folder,
    configurationJson: "{}",
    secrets: [],
    timeoutMs: 8_000,
    signal: new AbortController().signal,
  });
  assert.deepEqual(
    found.errors.map(({ message }) => message),
    ["validators/b.py took too long: validators have 8 s together"],
  );
  assert.ok(given.length === 2 && given[0]! <= 8_000 && given[1]! <= given[0]!);
});

test("a configuration that is too large for an environment variable is a problem, not an exception", async () => {
  await using place = await makeLaunchPlace();
  const errors = await errorsOf(place, "v.sh", "exit 0\n", { text: "x".repeat(200_000) });
  const message =
    "could not be started (E2BIG): make the configuration smaller, or put large data into a file";
  assert.deepEqual(errors, [["", "validator_failed", `validators/v.sh ${message}`]]);
});

test("a missing interpreter is a problem with what to do", async () => {
  await using place = await makeLaunchPlace({ runtimeEnv: { PATH: "/nowhere" } });
  const errors = await errorsOf(place, "v.py", "pass\n");
  const message = "could not be started (ENOENT): install python3 where the runtime's PATH finds it";
  assert.deepEqual(errors, [["", "validator_failed", `validators/v.py ${message}`]]);
});

test("variables have every prefix that workers know", async () => {
  await using place = await makeLaunchPlace({ workerEnvPrefixes: ["SVC_", "ACME_"] });
  const script =
    'test "$ACME_VALIDATION_STAGE$ACME_BLUEPRINT_CONFIG_JSON" = "native{}" && test -d "$ACME_PAYLOAD_DIR"\n';
  assert.deepEqual(await errorsOf(place, "v.sh", script), []);
});
