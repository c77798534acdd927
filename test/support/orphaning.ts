// A runtime that is about to be killed or stopped: started by tests as a process of its own. It runs a worker that prints
// process ids, prints them too, and waits; under a lease it also prints when that is over, and how the worker ended.

import { executorConfig, RunnerFixture, realClock, taskStart } from "./execution.ts";

/** The worker leaves its group in part. */
const LEAVING = "sleep 1000 & echo $!; setsid sh -c 'echo $$; exec sleep 1000' & echo $$; wait";

const [home, script = LEAVING, count = "3", leaseMs = "0"] = process.argv.slice(2);
const fixture = new RunnerFixture(home);
if (leaseMs !== "0") {
  fixture.runner.mayRunUntil(realClock.steadyMs() + Number(leaseMs), () => console.log("over"));
}
fixture.runner.start(taskStart({ config: executorConfig({ command: ["sh", "-c", script] }) }));
await fixture.listener.until(() => fixture.listener.logs("stdout").length === Number(count));
console.log(JSON.stringify(fixture.listener.logs("stdout").map(Number)));
void fixture.runner.ended().then(() => console.log("ended"));
setInterval(() => {}, 1_000_000);
