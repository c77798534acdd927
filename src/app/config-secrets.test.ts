// Tokens and keys of the configuration: several at once, from a variable or a file, never shown.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { describeConfig, loadConfig } from "./config.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-credentials-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function fileOf(content: string): string {
  const path = join(mkdtempSync(join(folder, "f-")), "credential");
  writeFileSync(path, content);
  return path;
}

function load(env: Record<string, string>) {
  const loaded = loadConfig(env, "up");
  assert.equal(loaded.kind, "ok", loaded.kind === "invalid" ? loaded.problems.join("\n") : "");
  return (loaded as Extract<typeof loaded, { kind: "ok" }>).config;
}

function problems(env: Record<string, string>): readonly string[] {
  const loaded = loadConfig(env, "up");
  return loaded.kind === "invalid" ? loaded.problems : [];
}

const key = "0a".repeat(32);
const olderKey = Buffer.alloc(32, 7).toString("base64");

describe("secrets from files", () => {
  test("are read one per line, as a credential of systemd is, and are the configuration's own", () => {
    const token = fileOf("new-token-of-the-service\r\nold-token-of-the-service\n");
    const keys = fileOf(`${key}\n\n${olderKey}\n`);
    const config = load({ SVC_API_TOKEN_FILE: token, SVC_SECRET_KEY_FILE: keys, SVC_ENV: "prod" });
    assert.deepEqual(config.apiTokens, ["new-token-of-the-service", "old-token-of-the-service"]);
    assert.deepEqual(config.secretKeys, [key, olderKey]);
    assert.deepEqual(config.secretTexts, [...config.apiTokens, ...config.secretKeys]);
  });

  test("are shown by their path alone", () => {
    const token = fileOf("token-of-the-service");
    const rows = describeConfig(load({ SVC_API_TOKEN_FILE: token, SVC_SECRET_KEY: `${key},${olderKey}` }));
    const shown = new Map(rows.map(({ variable, value }) => [variable, value]));
    assert.equal(shown.get("SVC_API_TOKEN_FILE"), token);
    assert.equal(shown.get("SVC_API_TOKEN"), "(unset)");
    assert.equal(shown.get("SVC_SECRET_KEY"), "********");
    const text = JSON.stringify(rows);
    for (const secret of ["token-of-the-service", key, olderKey]) assert.ok(!text.includes(secret));
  });

  for (const [what, content] of [
    ["is empty", ""],
    ["holds something else", "hidden value with spaces"],
    ["is huge", "x".repeat(200_000)],
  ] as const) {
    test(`stop the start when the file ${what}, in a line that names the file and not what it holds`, () => {
      for (const variable of ["SVC_API_TOKEN_FILE", "SVC_SECRET_KEY_FILE"]) {
        const path = fileOf(content);
        const [line = "", ...others] = problems({ [variable]: path });
        assert.deepEqual(others, []);
        assert.ok(line.startsWith(`${variable}: `) && line.includes("credential"), line);
        assert.ok(!line.includes("hidden") && !line.includes("xxx"), line);
      }
    });
  }

  test("are not combined with the variable: it would be unclear which one counts", () => {
    const env = { SVC_API_TOKEN: "a-token", SVC_API_TOKEN_FILE: fileOf("a-token") };
    const [line = "", ...others] = problems(env);
    assert.match(line, /^SVC_API_TOKEN: SVC_API_TOKEN_FILE is set too/);
    assert.deepEqual(others, []);
  });
});

test("with SVC_ENV=prod every token has at least 16 characters, wherever it is from", () => {
  const short = "fifteen-letters";
  const long = "sixteen-letters-";
  assert.deepEqual(problems({ SVC_ENV: "prod", SVC_API_TOKEN: long }), []);
  assert.deepEqual(problems({ SVC_API_TOKEN: short }), []);
  for (const env of [
    { SVC_ENV: "prod", SVC_API_TOKEN: short },
    { SVC_ENV: "prod", SVC_API_TOKEN: `${long},${short}` },
    { SVC_ENV: "prod", SVC_API_TOKEN_FILE: fileOf(`${long}\n${short}`) },
  ]) {
    const [line = "", ...others] = problems(env);
    assert.match(line, /^SVC_API_TOKEN(_FILE)?: .*at least 16 characters/);
    assert.ok(!line.includes(short), line);
    assert.deepEqual(others, []);
  }
});
