// The command as people use it: its words, output, signals and exit codes, against the real program and without one.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { closedPort, oneCommand, start, startHere } from "../support/command-line.ts";
import { type Program, startProgram, temporaryHome } from "../support/program.ts";

const ESCAPE = "\x1b";

const helpers = (() => {
  let folder = "";
  return {
    make: async () => {
      folder = await mkdtemp(join(tmpdir(), "troupe-cli-"));
    },
    remove: () => rm(folder, { recursive: true, force: true }),
    path: (name: string) => join(folder, name),
    file: async (name: string, content: string) => {
      await writeFile(join(folder, name), content);
      return join(folder, name);
    },
    bundle: async (name: string, manifest: string) => {
      await mkdir(join(folder, name, "payloads"), { recursive: true });
      await writeFile(join(folder, name, "manifest.json"), manifest);
      await writeFile(join(folder, name, "payloads", "hello.txt"), "hello\n");
      return join(folder, name);
    },
  };
})();
before(helpers.make);
after(helpers.remove);

describe("with a runtime and no gateway", () => {
  let program: Program;
  const troupe = (...args: string[]) => startHere([...args, "--url", program.api], program.home);
  before(async () => {
    program = await startProgram();
  });
  after(() => program.stop());

  const jobIdOf = (text: string) =>
    /[a-z-]+-[0-9a-z]{8,}/.exec(text)?.[0] ?? assert.fail(`no job id in: ${text}`);
  const submit = async (name: string, manifest: string) => {
    const { code, out } = await troupe(
      "run",
      "--runtime",
      await helpers.file(`${name}.json`, manifest),
      "--no-watch",
    ).ended;
    assert.equal(code, 0);
    return out.trim();
  };

  test("run --no-watch submits, prints the job's id alone, and tells how to follow it", async () => {
    const manifest = await helpers.file("plain.json", oneCommand("plain", "true"));
    const { code, out, err } = await troupe("run", "--runtime", manifest, "--no-watch").ended;
    assert.equal(code, 0);
    assert.match(out, /^plain-\S+\n$/);
    assert.match(err, /troupe events plain-\S+ --follow/);
  });

  test("run prints plain lines as things happen, then the result", async () => {
    const command = `printf 'reading \\033[31mred\\n'; echo '{"complete_run":{"words":3}}'`;
    const manifest = await helpers.file("watched.json", oneCommand("watched", command));
    const { code, out } = await troupe("run", "--runtime", manifest, "--watch").ended;
    assert.equal(code, 0, out);
    assert.match(out, /work +reading red\n/);
    assert.match(out, /watched-\S+ completed\nResult\n {2}\{\n {4}"words": 3\n/);
    assert.ok(!out.includes(ESCAPE));
  });

  test("run takes inputs, also for a bundle, and --json gives one document", async () => {
    const command = `printf '{"complete_run":%s}' "$(cat "$SVC_INPUT_FILE")"`;
    const bundle = await helpers.bundle("echo", oneCommand("echo", command));
    const input = await helpers.file("input.json", '{"city":"Ghent"}');
    for (const target of [bundle, join(bundle, "manifest.json")]) {
      const { code, out } = await troupe("run", "--runtime", target, "--input", input, "--json", "--watch")
        .ended;
      assert.equal(code, 0, out);
      const document = JSON.parse(out);
      assert.equal(document.status, "completed");
      assert.deepEqual(document.result, { city: "Ghent" });
    }
  });

  test("a failed run exits with 1 and tells what went wrong and what to do", async () => {
    const manifest = await helpers.file("bad.json", oneCommand("bad", "echo broken >&2; exit 7"));
    const { code, out } = await troupe("run", "--runtime", manifest, "--watch").ended;
    assert.equal(code, 1);
    assert.match(out, /bad-\S+ failed\nexecutor\.exit_nonzero: /);
    assert.match(out, /exit code 7/);
    assert.match(out, / \| broken\n/);
    assert.match(out, /What to do: /);
  });

  test("a cancelled run exits with 13", async () => {
    const manifest = await helpers.file("long.json", oneCommand("long", "echo started; sleep 600"));
    const watching = troupe("run", "--runtime", manifest, "--watch");
    await watching.shows("started");
    const found = JSON.parse((await troupe("jobs", "--runtime", "--open", "--json").ended).out);
    const jobId = found.find((job: { graph_id: string }) => job.graph_id === "long").job_id;
    const cancelled = await troupe("cancel", jobId).ended;
    assert.deepEqual([cancelled.code, cancelled.out], [0, `${jobId} cancelled\n`]);
    const { code, out } = await watching.ended;
    assert.equal(code, 13);
    assert.match(out, /long-\S+ cancelled/);
  });

  test("Ctrl-C while watching leaves the job running and tells how to follow it", async () => {
    const manifest = await helpers.file("left.json", oneCommand("left", "echo started; sleep 600"));
    const watching = start(["run", "--runtime", manifest, "--watch", "--url", program.api], program.home);
    await watching.shows("started");
    watching.child.kill("SIGINT");
    const { code, err } = await watching.ended;
    assert.equal(code, 130);
    const jobId = jobIdOf(/--follow.*/.exec(err)?.[0].replace(/.*cancel /, "") ?? "");
    assert.match((await troupe("job", jobId).ended).out, /left-\S+ running\n +took +\S/);
    await troupe("cancel", jobId).ended;
  });

  test("events prints the history; --follow waits for its end; --json is one object per line", async () => {
    const jobId = await submit("history", oneCommand("history", "echo one; echo two"));
    const followed = await troupe("events", jobId, "--follow", "--json").ended;
    assert.equal(followed.code, 0);
    const events = followed.out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      events.map((event) => event.sequence),
      events.map((_, i) => i + 1),
    );
    assert.equal(events.at(-1).type, "job_completed");
    const printed = await troupe("events", jobId, "--json").ended;
    assert.equal(printed.out, followed.out);
    assert.match((await troupe("events", jobId).ended).out, /work +one\n.*work +two\n/s);
  });

  test("jobs --runtime lists, newest first, as many as asked for", async () => {
    const older = await submit("listed", oneCommand("listed", "true"));
    const newer = await submit("listed", oneCommand("listed", "true"));
    const { out } = await troupe("jobs", "--runtime", "--limit", "2").ended;
    const lines = out.trim().split("\n");
    assert.equal(lines.length, 3);
    assert.ok(lines[1]?.startsWith(newer) && lines[2]?.startsWith(older), out);
  });

  test("pause, resume and send steer a job", async () => {
    const manifest = JSON.stringify({
      manifest_version: "1.0",
      graph_id: "steered",
      entrypoints: ["door"],
      nodes: [{ node_id: "door", agent_type: "sensor" }],
    });
    const jobId = await submit("steered", manifest);
    assert.equal((await troupe("pause", jobId).ended).out, `${jobId} paused\n`);
    assert.equal((await troupe("resume", jobId).ended).out, `${jobId} running\n`);
    const wrong = await troupe("send", jobId, "window").ended;
    assert.equal(wrong.code, 1);
    assert.match(wrong.err, /HTTP 404/);
    const sent = await troupe("send", jobId, "door", "--type", "knock", "--body", '{"times":3}').ended;
    assert.match(sent.out, /^sent msg_\S+\n$/);
    const { out, code } = await troupe("events", jobId, "--follow").ended;
    assert.equal(code, 0);
    assert.match(out, /sensor observed/);
    const again = await troupe("cancel", jobId).ended;
    assert.equal(again.code, 1, "a job that has ended cannot be cancelled");
    assert.match(again.err, /HTTP 400/);
  });

  test("bundles --runtime lists what was registered, and reload reads it again", async () => {
    const folder = await helpers.bundle("kept", oneCommand("kept", "true"));
    await troupe("run", "--runtime", folder, "--no-watch").ended;
    assert.match((await troupe("bundles", "--runtime").ended).out, /^kept +kept +[0-9a-f]{12}$/m);
    await writeFile(join(folder, "payloads", "new.txt"), "new");
    const reloaded = JSON.parse((await troupe("reload", "kept", "--json").ended).out);
    assert.equal(reloaded.changed, true);
    const missing = await troupe("reload", "nothing").ended;
    assert.equal(missing.code, 1);
    assert.match(missing.err, /Bundle nothing not found \(HTTP 404\)/);
  });

  test("errors of the API are shown as they are", async () => {
    const { code, out, err } = await troupe("job", "nothing-1").ended;
    assert.deepEqual([code, out, err], [1, "", "troupe: Job nothing-1 was not found (HTTP 404)\n"]);
  });

  test("doctor knows that the port is held by a running runtime", async () => {
    const port = new URL(program.url).port;
    const { code, out } = await startHere(["doctor"], program.home, { SVC_RUNTIME_API_PORT: port }).ended;
    assert.match(out, /^ok +port +\d+ is held by a running Troupe \d/m);
    assert.equal(code, 0, out);
  });

  test("cleanup removes what has ended", async () => {
    const jobId = await submit("gone", oneCommand("gone", "true"));
    await troupe("events", jobId, "--follow").ended;
    assert.match((await troupe("cleanup").ended).out, /^\d+ jobs? removed\n$/);
    assert.equal((await troupe("job", jobId).ended).code, 1);
  });
});

describe("without a runtime", () => {
  let home = "";
  before(async () => {
    home = await temporaryHome();
  });
  after(() => rm(home, { recursive: true, force: true }));

  test("run starts one until the run ends, with a notice, and saves the outputs", async () => {
    const command = `cp hello.txt "$SVC_OUTPUT_DIR/final_artifact.txt"`;
    const bundle = await helpers.bundle("own", oneCommand("own", command, { upload_path: "hello.txt" }));
    const { code, out, err } = await start(["run", bundle, "--save", helpers.path("saved")], home).ended;
    assert.equal(code, 0, out + err);
    assert.match(err, /This process runs one/);
    const place = join(helpers.path("saved"), "final_artifact.txt");
    assert.ok(out.includes(place), out);
    assert.equal(await readFile(place, "utf8"), "hello\n");
  });

  test("other commands fail immediately, and tell what to start", async () => {
    const port = await closedPort();
    const { code, err } = await startHere(["jobs", "--runtime"], home, { SVC_RUNTIME_API_PORT: String(port) })
      .ended;
    assert.equal(code, 1);
    assert.match(err, /^troupe: No Troupe runtime answers at \S+\.\nStart one with `troupe up`/);
  });

  test("a wrong configuration stops every command with exit code 2 and one line per problem", async () => {
    const env = { SVC_LOG_LEVEL: "loud", SVC_GRPC_PORT: "x" };
    for (const command of ["up", "jobs", "config"]) {
      const { code, err } = await startHere([command], home, env).ended;
      assert.equal(code, 2, command);
      assert.match(err, /SVC_GRPC_PORT: .*Example: .*\nSVC_LOG_LEVEL: .*Example: .*\n$/);
    }
  });

  test("a misspelt variable is warned about, and does not stop anything", async () => {
    const { code, err } = await startHere(["config"], home, { SVC_LOG_LEVLE: "debug" }).ended;
    assert.equal(code, 0);
    assert.match(err, /warning: SVC_LOG_LEVLE .* did you mean SVC_LOG_LEVEL\?/);
  });

  test("config masks the token", async () => {
    const { out } = await startHere(["config"], home, { SVC_API_TOKEN: "correct-horse" }).ended;
    assert.match(out, /SVC_API_TOKEN +\*{8} +environment/);
    assert.ok(!out.includes("correct-horse"));
  });

  test("up names a port that is taken, and exits with 1", async (context) => {
    const holder = createServer((socket) => socket.destroy());
    context.after(() => void holder.close());
    await new Promise<void>((resolve) => holder.listen(0, "127.0.0.1", resolve));
    const port = String((holder.address() as { port: number }).port);
    const env = { SVC_RUNTIME_API_PORT: port };
    const { code, err } = await startHere(["up"], home, env).ended;
    assert.equal(code, 1);
    assert.ok(err.includes(port), err);
    const doctor = await startHere(["doctor"], home, env).ended;
    assert.equal(doctor.code, 1);
    assert.match(doctor.out, /^fail +port +\d+ is held by another program\n.*→ .*SVC_RUNTIME_API_PORT/m);
  });

  test("doctor fails for a home that cannot be made, and tells how to fix it", async () => {
    const blocked = join(await helpers.file("a-file", ""), "home");
    const { code, out } = await startHere(["doctor"], blocked).ended;
    assert.equal(code, 1);
    assert.match(out, /^fail +home +.*cannot be written/m);
    assert.match(out, /→ .*SVC_HOME/);
  });

  test("doctor finds a damaged store", async () => {
    const damaged = await temporaryHome();
    await writeFile(
      join(damaged, "troupe.db"),
      "this is no database, and long enough to look like one".repeat(100),
    );
    const { code, out } = await startHere(["doctor"], damaged).ended;
    await rm(damaged, { recursive: true });
    assert.equal(code, 1);
    assert.match(out, /^fail +store +.*is damaged or is no database.*troupe restore FILE/m);
  });

  test("doctor leaves nothing behind, and needs no home", async () => {
    const { code, out } = await startHere(["doctor"], helpers.path("not-yet")).ended;
    assert.equal(code, 0, out);
    assert.match(out, /^ok +home +.*will be made at the first start/m);
    assert.deepEqual(
      (await readdir(helpers.path(""))).filter((name) => /doctor|not-yet/.test(name)),
      [],
    );
  });

  test("validate reports every problem of a folder, without a server", async () => {
    const good = await helpers.bundle("good", oneCommand("good", "true", { upload_path: "hello.txt" }));
    const passed = await startHere(["validate", good], home).ended;
    assert.deepEqual([passed.code, passed.err], [0, ""]);
    const uploads = ["none", "hello.txt", "."];
    const manifest = JSON.parse(oneCommand("bad", "true", { upload_paths: uploads }));
    const module = { node_id: "m", agent_type: "module", config: { module: "m.mjs" } };
    const bad = await helpers.bundle(
      "bad",
      JSON.stringify({ ...manifest, nodes: [...manifest.nodes, module] }),
    );
    await mkdir(join(bad, "config"), { recursive: true });
    await writeFile(join(bad, "config", "default.json"), "[]");
    await symlink("/etc/passwd", join(bad, "payloads", "stolen"));
    const codes = async () => {
      const { code, out } = await startHere(["validate", bad, "--json"], home).ended;
      assert.equal(code, 1);
      return JSON.parse(out).problems.map((problem: { code: string }) => problem.code);
    };
    assert.deepEqual(await codes(), ["link_outside", "wrong_type"]);
    await rm(join(bad, "payloads", "stolen"));
    await writeFile(join(bad, "config", "default.json"), "{}");
    assert.deepEqual(await codes(), ["missing_payload", "missing_payload"]);
    const none = await startHere(["validate", helpers.path("")], home).ended;
    assert.match(none.out, /missing_manifest/);
  });

  test("--json shows C1 controls and characters that reorder text as escapes, and is the same JSON", async () => {
    const hidden = "a\u009b31m\u202etxt.exe\u{e0001}";
    const file = await helpers.file("hidden.json", oneCommand("hidden", "true", { [hidden]: 1 }));
    const { code, out } = await startHere(["validate", file, "--json"], home).ended;
    assert.equal(code, 0);
    assert.match(out, /a\\u009b31m\\u202etxt\.exe\\udb40\\udc01/);
    assert.doesNotMatch(out, /[\x7f-\x9f]|\p{Cf}/u);
    const { warnings } = JSON.parse(out) as { warnings: { path: string }[] };
    assert.deepEqual(
      warnings.map(({ path }) => path),
      [`/nodes/0/config/${hidden}`],
    );
  });

  test("validate warns of what would not run as meant, and refuses a runner that does not exist; run warns too", async () => {
    const odd = JSON.parse(oneCommand("odd", "true", { max_atempts: 3 }));
    const edges = [{ from_node: "work", to_node: "work", condition: "false", message_type: "never" }];
    const folder = await helpers.bundle("odd", JSON.stringify({ ...odd, edges, schedule: "0 * * * *" }));
    const expected = ["/nodes/0/config/max_atempts", "/edges/0/condition", "/schedule"];
    for (const target of [folder, join(folder, "manifest.json")]) {
      const { code, out } = await startHere(["validate", target, "--json"], home).ended;
      const { valid, warnings } = JSON.parse(out) as { valid: boolean; warnings: { path: string }[] };
      assert.deepEqual([code, valid, warnings.map(({ path }) => path)], [0, true, expected]);
      const shown = await startHere(["validate", target], home).ended;
      assert.match(shown.out, /max_atempts.*did you mean "max_attempts".*odd is valid/s);
      const ran = await startHere(["run", target], home).ended;
      assert.equal(ran.code, 0, ran.err);
      assert.match(ran.err, /warning: manifest\.json: .*did you mean "max_attempts"/);
    }
    const strange = oneCommand("strange", "true", { runner_module: "Some.Podman" });
    const refused = await helpers.bundle("strange", strange);
    const { code, out } = await startHere(["validate", refused, "--json"], home).ended;
    assert.equal(code, 1);
    assert.deepEqual(
      JSON.parse(out).problems.map((one: { path: string; code: string }) => `${one.path} ${one.code}`),
      ["/nodes/0/config/runner_module unknown_value"],
    );
    const declared = { ...JSON.parse(oneCommand("declared", "true")), requirements: { commands: "sh" } };
    const wrong = await helpers.bundle("declared", JSON.stringify(declared));
    assert.match(
      (await startHere(["validate", wrong], home).ended).out,
      /\/requirements\/commands +wrong_type/,
    );
  });
});

describe("stopping and starting again", () => {
  test("Ctrl-C hands open jobs to the next start, which carries them on", async () => {
    const home = await temporaryHome();
    const gate = helpers.path("gate");
    try {
      // For the second start too: a port of the system's choice could be anybody's by then.
      const SVC_RUNTIME_API_PORT = String(await closedPort());
      const first = start(["up"], home, { SVC_RUNTIME_API_PORT });
      await first.shows("Ready.");
      const url = /runtime API +(http:\S+)/.exec(first.printed())?.[1] ?? assert.fail("no address");
      const command = `echo started; while [ ! -e '${gate}' ]; do sleep 0.05; done`;
      const manifest = await helpers.file("carried.json", oneCommand("carried", command));
      const watching = start(["run", manifest, "--runtime", "--url", url], home);
      await watching.shows("started");
      first.child.kill("SIGINT");
      const stopped = await first.ended;
      assert.equal(stopped.code, 0, stopped.err);
      assert.match(stopped.err, /1 open job will resume at the next start/);
      await writeFile(gate, "");
      const catalog = helpers.path("no-catalog");
      const second = start(["up"], home, {
        SVC_RUNTIME_API_PORT,
        SVC_BLUEPRINT_CATALOG: catalog,
      });
      await second.shows("Ready.");
      await second.shows('warning: the folder "no-catalog" of SVC_BLUEPRINT_CATALOG is not there: make it');
      const { code, out } = await watching.ended;
      assert.equal(code, 0, out);
      assert.match(out, /job recovered/);
      assert.match(out, /carried-\S+ completed/);
      second.child.kill("SIGTERM");
      assert.match((await second.ended).err, /no job is open/);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});
