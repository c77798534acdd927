// What a manifest may say of a node's sandbox.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ExecutorConfig } from "../graph.ts";
import type { JsonObject } from "../json.ts";
import { parseManifest } from "../manifest.ts";
import { isClosedPath, parsePolicy } from "./sandbox-policy.ts";

function manifestWith(config: JsonObject, node: JsonObject = {}): JsonObject {
  return {
    manifest_version: "1.0",
    graph_id: "g",
    entrypoints: ["a"],
    nodes: [
      {
        node_id: "a",
        agent_type: "executor",
        runner_module: "Sandbox",
        ...node,
        config: { command: ["true"], ...config },
      },
    ],
  };
}

function configOf(config: JsonObject, node: JsonObject = {}): ExecutorConfig {
  const parsed = parseManifest(manifestWith(config, node));
  assert.equal(parsed.kind, "valid", JSON.stringify(parsed));
  const found = parsed.kind === "valid" ? parsed.graph.nodes[0]?.config : undefined;
  assert.equal(found?.kind, "executor");
  return found as ExecutorConfig;
}

function problemsOf(config: JsonObject, node: JsonObject = {}): readonly string[] {
  const parsed = parseManifest(manifestWith(config, node));
  return parsed.kind === "valid" ? [] : parsed.problems.map(({ path, code }) => `${path} ${code}`);
}

const at = "/nodes/0/config";

describe("the sandbox of a node", () => {
  test("is what runner_module names by its last part", () => {
    for (const runner of ["Sandbox", "OpenShell", "my.runners.StrictSandbox"]) {
      assert.notEqual(configOf({}, { runner_module: runner }).sandbox, null, runner);
    }
    assert.equal(configOf({}, { runner_module: "my.HostLocal" }).sandbox, null);
    assert.deepEqual(problemsOf({}, { runner_module: "Sandbox.Podman" }), [
      "/nodes/0/runner_module unknown_value",
    ]);
  });

  test("has limits and nothing of the machine unless it says so", () => {
    const { sandbox, nodeLabels, sandboxUploadPath } = configOf({});
    const MiB = 1024 ** 2;
    assert.deepEqual(sandbox, {
      network: { allow: [], check: false },
      readOnly: [],
      devices: [],
      environment: [],
      limits: {
        memoryBytes: null,
        processes: 512,
        fileBytes: 16_384 * MiB,
        cpuSeconds: null,
        tmpBytes: 256 * MiB,
      },
    });
    assert.deepEqual(nodeLabels, { "troupe/sandbox": "yes" });
    assert.equal(sandboxUploadPath, "/sandbox/job");
  });

  test("is read whole, and what is named twice counts once", () => {
    const policy = {
      network: {
        allow: ["API.example.com:443", "*.example.org:80", "[::1]:8080", "10.0.0.1:1"],
        check: true,
      },
      read_only: ["/srv/data/", "/srv/data"],
      devices: ["/dev/dri/card0"],
      environment: ["API_KEY"],
      limits: { memory_mb: 64, processes: 16, file_mb: 2, cpu_seconds: 3, tmp_mb: 4 },
    };
    const { sandbox, passEnv } = configOf({ sandbox: policy });
    assert.deepEqual(sandbox?.network.allow, [
      "api.example.com:443",
      "*.example.org:80",
      "[::1]:8080",
      "10.0.0.1:1",
    ]);
    assert.deepEqual(sandbox?.readOnly, ["/srv/data"]);
    assert.equal(sandbox?.limits.cpuSeconds, 3);
    assert.deepEqual(passEnv, ["API_KEY"]);
  });

  test("names the place of each mistake", () => {
    const policy = {
      network: {
        allow: [
          "example.com",
          "*.com:443",
          "a.*.com:443",
          "127.1:80",
          "1.2.3.256:80",
          "a.com:0",
          "a.com:65536",
        ],
      },
      read_only: ["relative", "/a/../b", "/etc", "/proc/1", "/run/docker.sock", "/"],
      devices: ["/etc/passwd"],
      environment: ["A=B", "SVC_SECRET_KEY"],
      limits: { processes: 0, tmp_mb: 1.5, memory: 1 },
      extra: true,
    };
    assert.deepEqual(problemsOf({ sandbox: policy }).toSorted(), [
      `${at}/sandbox/devices/0 invalid_device`,
      `${at}/sandbox/environment/0 invalid_name`,
      `${at}/sandbox/environment/1 variable_withheld`,
      `${at}/sandbox/extra unknown_field`,
      `${at}/sandbox/limits/memory unknown_field`,
      `${at}/sandbox/limits/processes out_of_range`,
      `${at}/sandbox/limits/tmp_mb out_of_range`,
      `${at}/sandbox/network/allow/0 invalid_host`,
      `${at}/sandbox/network/allow/1 invalid_host`,
      `${at}/sandbox/network/allow/2 invalid_host`,
      `${at}/sandbox/network/allow/3 invalid_host`,
      `${at}/sandbox/network/allow/4 invalid_host`,
      `${at}/sandbox/network/allow/5 invalid_host`,
      `${at}/sandbox/network/allow/6 invalid_host`,
      `${at}/sandbox/read_only/0 invalid_path`,
      `${at}/sandbox/read_only/1 invalid_path`,
      `${at}/sandbox/read_only/2 path_not_allowed`,
      `${at}/sandbox/read_only/3 path_not_allowed`,
      `${at}/sandbox/read_only/4 path_not_allowed`,
      `${at}/sandbox/read_only/5 path_not_allowed`,
    ]);
  });

  test("is bounded", () => {
    const allow = Array.from({ length: 257 }, (_, i) => `h${i}.example.com:443`);
    assert.deepEqual(problemsOf({ sandbox: { network: { allow } } }), [
      `${at}/sandbox/network/allow too_many`,
    ]);
  });

  test("is not for a command that runs without one", () => {
    const node = { runner_module: "HostLocal" };
    assert.deepEqual(problemsOf({ sandbox: {} }, node), [`${at}/sandbox no_sandbox`]);
    assert.deepEqual(problemsOf({ policy: "policy.json" }, node), [`${at}/policy no_sandbox`]);
  });

  test("has its policy in one place, and passes variables by it alone", () => {
    assert.equal(configOf({ policy: "policies/strict.json" }).policyFile, "policies/strict.json");
    assert.deepEqual(problemsOf({ policy: "p.json", sandbox: {} }), [`${at}/policy duplicate`]);
    assert.deepEqual(problemsOf({ policy: "../p.json" }), [`${at}/policy path_outside`]);
    assert.deepEqual(problemsOf({ pass_env: ["API_KEY"] }), [`${at}/pass_env not_allowed`]);
  });

  test("has the workspace at a path of its own", () => {
    assert.equal(configOf({ sandbox_upload_path: "/work/job/" }).sandboxUploadPath, "/work/job");
    for (const path of ["job", "/", "/usr/job", "/sandbox", "/sandbox/run", "/tmp/job", "/a/../b"]) {
      const problems = problemsOf({ sandbox_upload_path: path });
      assert.deepEqual(problems, [`${at}/sandbox_upload_path path_not_allowed`], path);
    }
  });
});

test("a policy by itself is read the same way, and its mistakes point into it", () => {
  assert.deepEqual(
    parsePolicy({ read_only: ["x"] }).problems.map(({ path, code }) => `${path} ${code}`),
    ["/read_only/0 invalid_path"],
  );
  assert.deepEqual(
    parsePolicy([]).problems.map(({ path, code }) => `${path} ${code}`),
    [" wrong_type"],
  );
});

test("parts of what is closed as a whole may be shown", () => {
  assert.equal(isClosedPath("/etc/my-program"), false);
  assert.equal(isClosedPath("/var/lib/data"), false);
  assert.equal(isClosedPath("/var/run/docker.sock"), true);
  assert.equal(isClosedPath("/devices"), false);
});
