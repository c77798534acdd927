// A runtime that is about to be killed: started by tests as a process of its own. It runs a worker that prints process
// ids, prints them too, and waits.

import { executorConfig, RunnerFixture, taskStart } from "./execution.ts";

/** The worker leaves its group in part. */
const LEAVING = "sleep 1000 & echo $!; setsid sh -c 'echo $$; exec sleep 1000' & echo $$; wait";

const [home, script = LEAVING, count = "3"] = process.argv.slice(2);
const fixture = new RunnerFixture(home);
fixture.runner.start(taskStart({ config: executorConfig({ command: ["sh", "-c", script] }) }));
await fixture.listener.until(() => fixture.listener.logs("stdout").length === Number(count));
console.log(JSON.stringify(fixture.listener.logs("stdout").map(Number)));
setInterval(() => {}, 1_000_000);
