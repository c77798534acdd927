import assert from "node:assert/strict";
import { test } from "node:test";
import { type TroupeClient, TroupeUnreachable } from "../../sdk/src/index.ts";
import { testCall } from "./test-call.ts";
import { awaitRun } from "./watching.ts";

function waitingFor(error: Error) {
  const client = { runs: { wait: () => Promise.reject(error) } } as unknown as TroupeClient;
  return awaitRun({ call: testCall(), client, interrupt: new AbortController().signal }, "run_1");
}

test("a gateway that stays away while a run is waited for: the run goes on, and here is how to follow it", async () => {
  await assert.rejects(waitingFor(new TroupeUnreachable("Nobody answers.")), {
    name: "CommandFailed",
    message: /^Nobody answers\.\nThe run goes on when the gateway does.*: troupe runs events run_1 --follow$/,
  });
});

test("an answer of another kind of server says itself what to check", async () => {
  const stranger = new TroupeUnreachable("Check the URL.", { status: 502 });
  await assert.rejects(waitingFor(stranger), stranger);
});
