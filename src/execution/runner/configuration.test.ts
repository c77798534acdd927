// The job's configuration on its way to a worker: stored encrypted, given decrypted, shown nowhere.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { executorConfig, RunnerFixture } from "../../../test/support/execution.ts";
import type { JsonObject } from "../../engine/json.ts";

/** Runs a script whose first argument is the home, with the configuration as it is stored. */
function run(fixture: RunnerFixture, script: string, configuration: JsonObject) {
  return fixture.run({
    config: executorConfig({ command: ["sh", "-c", script, "sh", fixture.home] }),
    configurationJson: JSON.stringify(fixture.secrets.encrypt(configuration)),
  });
}

describe("a job's configuration", () => {
  it("is decrypted for the worker, and no file of the home has its secrets", async () => {
    await using fixture = new RunnerFixture();
    fixture.runtimeEnv.REGION = "region-value";
    const outcome = await run(
      fixture,
      `test "$SVC_BLUEPRINT_CONFIG_JSON" = '{"api_key":"hidden-value","region":"region-value"}' || exit 3
       ! grep -r -e 'hidden-valu[e]' -e 'region-valu[e]' "$1"`,
      { api_key: "hidden-value", region: { $env: "REGION" } },
    );
    assert.equal(outcome.kind, "succeeded", JSON.stringify(outcome));
  });

  it("has its secrets redacted in what the worker prints, also those from variables and as JSON spells them", async () => {
    await using fixture = new RunnerFixture();
    fixture.runtimeEnv.REGION = "region-value";
    const script = `echo "$SVC_BLUEPRINT_CONFIG_JSON"; printf '%s\\n' 'say "hidden" now'; echo region-value >&2; exit 1`;
    const configuration = { api_key: 'say "hidden" now', region: { $env: "REGION" }, model: "model-1" };
    const outcome = await run(fixture, script, configuration);
    assert.deepEqual(fixture.listener.logs("stdout"), [
      '{"api_key":"[redacted]","region":"[redacted]","model":"model-1"}',
      "[redacted]",
    ]);
    assert.ok(!/hidden|region-value/.test(JSON.stringify([fixture.listener.events, outcome])));
  });

  for (const [what, configuration, code, message] of [
    [
      "names a variable that is not set",
      { llm: { key: { $env: "ABSENT_1" } } },
      "configuration.variable_missing",
      /ABSENT_1 at \/llm\/key/,
    ],
    ["was encrypted with another key", null, "configuration.unreadable", /another key.*: \/token/],
  ] as const) {
    it(`fails the attempt of a command and of a module when it ${what}, and nothing else`, async () => {
      await using fixture = new RunnerFixture();
      await using stranger = new RunnerFixture();
      const stored = configuration ?? stranger.secrets.encrypt({ token: "hidden-value" });
      const configurationJson = JSON.stringify(stored);
      fixture.write("agent.mjs", "export async function handle() { return {}; }");
      const module = { kind: "module", module: "agent.mjs", timeoutSeconds: 10, config: {} } as const;
      for (const config of [executorConfig(), { ...module, maxAttempts: 1, retryBackoffMs: 1 }]) {
        const outcome = await fixture.run({ config, configurationJson, bundleFingerprint: "f" });
        assert.ok(outcome.kind === "failed", JSON.stringify(outcome));
        assert.equal(outcome.code, code);
        assert.match(outcome.message, message);
      }
      assert.equal((await fixture.run({})).kind, "succeeded");
      assert.deepEqual(fixture.warnings, []);
    });
  }
});
