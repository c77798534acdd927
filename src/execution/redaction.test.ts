import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { makeRedactor, secretsOf } from "./redaction.ts";
import { executorConfig } from "./test-support.ts";

describe("redaction", () => {
  it("takes secrets from pass_env, secret-looking environment, the configuration and the runtime's own", () => {
    const config = executorConfig({
      passEnv: ["GIVEN", "ABSENT"],
      environment: { API_KEY: "key-value-1", MODEL: "not-a-secret" },
    });
    const env = {
      GIVEN: "given-value",
      SVC_API_TOKEN: "api-token-value",
      SVC_SECRET_KEY: "secret-key-value",
      OTHER: "other-value",
    };
    assert.deepEqual(secretsOf(config, ["configured-secret"], env), [
      "given-value",
      "key-value-1",
      "configured-secret",
      "api-token-value",
      "secret-key-value",
    ]);
    assert.deepEqual(secretsOf(config, [], {}), ["key-value-1"]);
  });

  it("replaces every occurrence, the longest secret first, pattern characters taken literally", () => {
    const redactor = makeRedactor(["secret-1", "secret-1-long", "a.b*c(d)e+"]);
    assert.equal(
      redactor.text("x secret-1-long y secret-1 z a.b*c(d)e+ aXb*c(d)e+"),
      "x [redacted] y [redacted] z [redacted] aXb*c(d)e+",
    );
    assert.equal(redactor.longestChars, 13);
  });

  it("leaves values of fewer than 8 characters alone", () => {
    assert.equal(makeRedactor(["1234567"]).text("1234567"), "1234567");
    assert.equal(makeRedactor(["12345678"]).text("12345678"), "[redacted]");
  });

  it("redacts the single lines of a secret that has several", () => {
    const redactor = makeRedactor(["-----BEGIN KEY-----\nMIIEvgIBADAN\nshort"]);
    assert.equal(redactor.text("MIIEvgIBADAN short"), "[redacted] short");
  });

  it("redacts strings and keys deep inside JSON", () => {
    const redactor = makeRedactor(["secret-1"]);
    assert.deepEqual(redactor.json({ "secret-1": [1, null, { a: "xsecret-1" }] }), {
      "[redacted]": [1, null, { a: "x[redacted]" }],
    });
  });
});
