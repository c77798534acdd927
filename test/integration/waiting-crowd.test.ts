// A thousand requests that wait at the same time cost their sockets and nothing else.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ask, runtimeApiOf, startGateway } from "../support/gateway-api.ts";
import { graph, sensor } from "../support/graphs.ts";
import { seesProcesses, wakeUpsOf } from "../support/processes.ts";
import { until } from "../support/until.ts";
import { LONG, untilWaiting, waitingRequests } from "../support/waiting.ts";

const CROWD = 1_000;
const WAKE_UPS_MAX = 5;
const held = graph("held", [sensor("wait")]);

test("a thousand requests that wait wake nobody, are forgotten when their clients go, and are answered at a stop", {
  skip: !seesProcesses && "no /proc here",
}, async () => {
  const program = await startGateway({ env: { SVC_LOG_LEVEL: "error" } });
  try {
    const runtime = await runtimeApiOf(program);
    const leaving = new AbortController();
    const left = Array.from({ length: CROWD }, () =>
      fetch(`${runtime.api}/jobs`, {
        method: "POST",
        headers: { ...LONG, "content-type": "application/json" },
        body: JSON.stringify(held),
        signal: leaving.signal,
      }).then(
        () => "answered",
        () => "left",
      ),
    );
    await untilWaiting(program, CROWD);

    // What follows the submission of the jobs ends by itself; a timer that repeats does not.
    let fewest = Number.POSITIVE_INFINITY;
    for (let second = 0; second < 20 && fewest > WAKE_UPS_MAX; second++) {
      const before = wakeUpsOf(program.pid);
      await delay(1_000);
      fewest = Math.min(fewest, wakeUpsOf(program.pid) - before);
    }
    assert.ok(fewest <= WAKE_UPS_MAX, `woken ${fewest} times in its quietest second`);

    leaving.abort();
    assert.deepEqual(new Set(await Promise.all(left)), new Set(["left"]));
    // Sooner than their own time is over.
    await until("their requests are forgotten", async () => (await waitingRequests(program)) === 0, 15_000);

    const answers = Array.from({ length: CROWD }, () =>
      ask(runtime, "POST", "/jobs", { body: held, headers: LONG }),
    );
    await untilWaiting(program, CROWD);
    assert.equal((await program.stop()).code, 0);
    for (const { status, headers } of await Promise.all(answers)) {
      assert.deepEqual([status, headers.get("preference-applied")], [201, null]);
    }
  } finally {
    await program.stop();
  }
});
