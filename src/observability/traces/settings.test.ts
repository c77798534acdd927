// The OTEL_* variables: what turns export on, what a wrong value does, and that no secret is shown.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { describeTelemetry, type Env, readTelemetry, telemetryLine } from "./settings.ts";

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };

function on(env: Env) {
  const settings = readTelemetry({ ...ENDPOINT, ...env });
  assert.ok(settings.kind === "on", JSON.stringify(settings));
  return settings;
}

describe("export", () => {
  test("is off without an endpoint, when it is turned off, and when another exporter is chosen", () => {
    const reasons: [Env, string][] = [
      [{}, "OTEL_EXPORTER_OTLP_ENDPOINT is not set"],
      [{ OTEL_EXPORTER_OTLP_ENDPOINT: " " }, "OTEL_EXPORTER_OTLP_ENDPOINT is not set"],
      [{ ...ENDPOINT, OTEL_SDK_DISABLED: "TRUE" }, "OTEL_SDK_DISABLED is true"],
      [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: "none" }, "OTEL_TRACES_EXPORTER is none"],
    ];
    for (const [env, reason] of reasons) {
      assert.deepEqual(readTelemetry(env), { kind: "off", reason, warnings: [] });
      assert.equal(telemetryLine(env), `Traces are not exported: ${reason}.`);
    }
    on({ OTEL_SDK_DISABLED: "false", OTEL_TRACES_EXPORTER: "console, otlp" });
  });

  test("goes below /v1/traces of the general endpoint, and to the very address of that for traces", () => {
    assert.equal(on({}).shownUrl, "http://127.0.0.1:4318/v1/traces");
    assert.equal(
      on({ OTEL_EXPORTER_OTLP_ENDPOINT: "https://c.example/otlp/" }).shownUrl,
      "https://c.example/otlp/v1/traces",
    );
    const both = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://other:1/in" };
    assert.equal(on(both).shownUrl, "http://other:1/in");
    assert.equal(telemetryLine({ ...ENDPOINT, ...both }), "Traces are sent to http://other:1/in.");
  });

  test("is off, with a warning, when the endpoint is not an address", () => {
    for (const endpoint of ["127.0.0.1:4318", "collector", "ftp://collector"]) {
      const settings = readTelemetry({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
      assert.equal(settings.kind, "off");
      assert.match(settings.warnings.join(), /^OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https address/);
    }
  });
});

describe("a value that makes no sense", () => {
  test("is warned of, and the default stays", () => {
    const plain = on({});
    assert.deepEqual(plain.warnings, []);
    const env = {
      OTEL_TRACES_SAMPLER: "sometimes",
      OTEL_BSP_MAX_QUEUE_SIZE: "-1",
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "many",
      OTEL_BSP_SCHEDULE_DELAY: "0.5",
    };
    const { warnings, ...settings } = on(env);
    assert.deepEqual({ ...settings, warnings: [] }, plain);
    for (const name of Object.keys(env)) {
      assert.equal(warnings.filter((warning) => warning.startsWith(name)).length, 1, name);
    }
    const ratio = on({ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" });
    assert.deepEqual(ratio.sampler, { name: "traceidratio", ratio: 1 });
    assert.equal(ratio.warnings.length, 1);
  });

  test("and a protocol that is not spoken is warned of", () => {
    assert.equal(on({ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }).warnings.length, 1);
    assert.equal(on({ OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }).warnings.length, 0);
  });
});

test("the sampler and the queue are what the variables say", () => {
  const settings = on({
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.25",
    OTEL_BSP_MAX_QUEUE_SIZE: "1000",
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "50",
    OTEL_BSP_SCHEDULE_DELAY: "20",
  });
  assert.deepEqual(settings.sampler, { name: "parentbased_traceidratio", ratio: 0.25 });
  assert.deepEqual([settings.queueMax, settings.batchMax, settings.delayMs], [1_000, 50, 20]);
});

test("what is shown of the variables has no header's value and no password in it", () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "https://user:hunter22hunter@c.example:4318/?key=hunter22query",
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "no address with hunter22text",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer hunter22bearer, x-tenant=hunter22tenant",
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: "hunter22=hunter22value",
    OTEL_SERVICE_NAME: "digest",
  };
  const rows = describeTelemetry(env);
  const value = (variable: string) => rows.find((row) => row.variable === variable)?.value;
  assert.equal(value("OTEL_EXPORTER_OTLP_ENDPOINT"), "https://********:********@c.example:4318/");
  assert.equal(value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), "********");
  assert.equal(value("OTEL_EXPORTER_OTLP_HEADERS"), "authorization=********,x-tenant=********");
  assert.equal(value("OTEL_SERVICE_NAME"), "digest");
  assert.doesNotMatch(JSON.stringify(rows), /hunter22[a-z]/);
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: _, ...usable } = env;
  assert.doesNotMatch(telemetryLine(usable) + JSON.stringify(readTelemetry(usable)), /hunter22/);
  assert.doesNotMatch(JSON.stringify(readTelemetry(env)), /hunter22/);
  assert.deepEqual(
    describeTelemetry({}).map((row) => row.from),
    rows.map(() => "default"),
  );
});
