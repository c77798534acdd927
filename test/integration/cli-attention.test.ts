// `troupe human`, `answer` and `dead-letters`, and how a watched run shows that it waits for a person: against
// the real program, at both APIs.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { askingGraph, type Question } from "../support/asking.ts";
import { startHere } from "../support/command-line.ts";
import { call, createJob, happens, runtimeApiOf, startRun } from "../support/gateway-api.ts";
import { makeGivingUp } from "../support/giving-up.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { follow } from "../support/runtime-api.ts";

const ship: Question = { request_id: "ship", prompt: "Ship\u001b[31m it?", allowed_decisions: ["yes", "no"] };

let gateway: Program;
let runtime: Program;
let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe cli attention "));
  gateway = await startGatewayHere();
  runtime = await runtimeApiOf(gateway);
});
after(async () => {
  await gateway.stop();
  await rm(folder, { recursive: true, force: true });
});

const at = (program: Program, ...args: string[]) => startHere([...args, "--url", program.api], program.home);

async function done(program: Program, ...args: string[]): Promise<{ out: string; err: string }> {
  const { code, out, err } = await at(program, ...args).ended;
  assert.equal(code, 0, `troupe ${args.join(" ")}:\n${out}${err}`);
  return { out, err };
}

const json = async (program: Program, ...args: string[]) =>
  JSON.parse((await done(program, ...args, "--json")).out);

/** Starts a run at either API whose worker asks, and waits until it does. @returns the id that commands take */
async function asking(program: Program, manifest: JsonObject): Promise<string> {
  if (program === gateway) {
    const runId = await startRun(gateway, await createJob(gateway, manifest));
    await happens(gateway, runId, "human_input_requested");
    return runId;
  }
  const jobId = String((await call(runtime, "POST", "/jobs", manifest)).id);
  for await (const event of follow(runtime, jobId)) if (event.type === "human_input_requested") break;
  return jobId;
}

for (const [name, which] of [
  ["the gateway", () => gateway],
  ["the runtime API", () => runtime],
] as const) {
  describe(`at ${name}`, () => {
    test("what a run asks is listed, answered, and then not listed any more", async () => {
      const program = which();
      const id = await asking(program, askingGraph("asks", [ship]));
      const { out, err } = await done(program, "human", id);
      assert.match(out, /^RUN +REQUEST +AGENT +ASKED +UNTIL +DECISIONS +DATA +QUESTION\n/);
      assert.match(out, new RegExp(`\n${id} +ship +asker +\\S.* ago +- +yes, no +- +Ship it\\?\n$`));
      assert.match(err, /troupe answer RUN REQUEST DECISION/);
      assert.equal((await json(program, "human", id))[0].request_id, "ship");

      const wrong = await at(program, "answer", id, "ship", "maybe").ended;
      assert.notEqual(wrong.code, 0);
      assert.match(wrong.err, /must be one of "yes", "no"/);
      assert.equal((await at(program, "answer", id, "ship", "yes", "--data", "{").ended).code, 2);
      assert.equal((await at(program, "answer", id, "ship").ended).code, 2);

      const more = ["--comment", "at last", "--data", '{"n": [1]}'];
      assert.equal((await done(program, "answer", id, "ship", "yes", ...more)).out, 'ship answered "yes"\n');
      const again = await json(program, "answer", id, "ship", "yes", ...more);
      assert.deepEqual([again.response.comment, again.response.data], ["at last", { n: [1] }]);
      const late = await at(program, "answer", id, "ship", "no").ended;
      assert.equal(late.code, 1);
      assert.match(late.err, /was answered "yes" by anonymous/);
      const none = await done(program, "human", id);
      assert.deepEqual([none.out, none.err], ["", "No open questions.\n"]);
    });

    test("dead-lettered messages are listed, and retried", async (t) => {
      const program = which();
      const givingUp = await makeGivingUp();
      t.after(() => givingUp.remove());
      const bodies = { in: [{ n: 0 }, { n: 1 }, { n: 2 }] };
      const manifest = { ...givingUp.manifest, initial_inputs: bodies };
      let id: string;
      let lettersThere = 0;
      if (program === gateway) {
        id = await startRun(gateway, await createJob(gateway, manifest));
        await happens(gateway, id, ({ type }) => type === "message_dead_lettered" && ++lettersThere === 3);
      } else {
        id = String((await call(runtime, "POST", "/jobs", manifest)).id);
        for await (const { type } of follow(runtime, id)) {
          if (type === "message_dead_lettered" && ++lettersThere === 3) break;
        }
      }
      const letters = await json(program, "dead-letters", id);
      assert.equal(letters.length, 3);
      assert.equal((await json(program, "dead-letters", id, "--limit", "2")).length, 2);
      await givingUp.fix();
      const one = letters[1].dead_letter_id;
      assert.equal((await done(program, "dead-letters", id, "--retry", one)).out, "1 message sent again\n");
      const again = await at(program, "dead-letters", id, "--retry", one).ended;
      assert.equal(again.code, 1);
      assert.match(again.err, /was sent again at/);
      assert.match((await done(program, "dead-letters", id)).out, / retried +worker +processing_failed +1 /);
      assert.equal((await at(program, "dead-letters", id, "--retry", one, "--retry-all").ended).code, 2);
      assert.equal((await json(program, "dead-letters", id, "--retry-all")).retried, 2);
      assert.equal((await done(program, "dead-letters", id, "--retry-all")).out, "0 messages sent again\n");
      await done(program, "cancel", id);
      const late = await at(program, "dead-letters", id, "--retry-all").ended;
      assert.equal(late.code, 1);
      assert.match(late.err, /cancelled, which is final/);
    });
  });
}

test("without an id, what every run of the gateway asks is listed", async () => {
  const first = await asking(gateway, askingGraph("first", [ship]));
  const second = await asking(gateway, askingGraph("second", [{ prompt: "Which?" }]));
  const { out } = await done(gateway, "human");
  assert.match(out, new RegExp(`\n${first} +ship +asker `));
  assert.match(out, new RegExp(`\n${second} +req_\\d+ +asker .* any +- +Which\\?\n`));
  for (const id of [first, second]) await done(gateway, "cancel", id);
  assert.equal((await done(gateway, "human")).out, "");
});

test("without an id, the open dead letters of every run of the gateway are listed, and none is sent again", async (t) => {
  const givingUp = await makeGivingUp();
  t.after(() => givingUp.remove());
  const id = await startRun(gateway, await createJob(gateway, givingUp.manifest));
  await happens(gateway, id, "message_dead_lettered");
  const { out } = await done(gateway, "dead-letters");
  assert.match(out, /^RUN +DEAD LETTER +STATUS /);
  assert.match(out, new RegExp(`\n${id} +dl_\\w+ +open +worker `));
  const refused = await at(gateway, "dead-letters", "--retry-all").ended;
  assert.equal(refused.code, 2);
  assert.match(refused.err, /Name the run/);
  await done(gateway, "cancel", id);
});

test("a watched run shows that it waits for a person, and how to answer", async () => {
  const manifest = join(folder, "manifest.json");
  await writeFile(manifest, JSON.stringify(askingGraph("watched", [ship])));
  const runtimeRun = at(runtime, "run", manifest, "--runtime");
  const gatewayRun = at(gateway, "launch", folder);
  for (const [watched, program] of [
    [runtimeRun, runtime],
    [gatewayRun, gateway],
  ] as const) {
    await watched.shows("asks: Ship it? (yes / no)");
    await watched.shows("DECISION\n");
    const hint = /\n {2}Answer it: troupe (answer \S+ ship) DECISION\n/.exec(watched.printed());
    assert.ok(hint?.[1] !== undefined, watched.printed());
    await done(program, ...hint[1].split(" "), "yes");
    const { code, out } = await watched.ended;
    assert.equal(code, 0, out);
    assert.match(out, /ship was answered yes by anonymous/);
  }
});
