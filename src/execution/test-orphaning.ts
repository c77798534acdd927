// A runtime that is about to be killed: started by process-trees.test.ts as a process of its own. It runs a worker
// that leaves its group in part, prints the worker's process ids, and waits.

import { executorConfig, RunnerFixture, taskStart } from "./test-support.ts";

const [home] = process.argv.slice(2);
const fixture = new RunnerFixture(home);
const script = "sleep 1000 & echo $!; setsid sh -c 'echo $$; exec sleep 1000' & echo $$; wait";
fixture.runner.start(taskStart({ config: executorConfig({ command: ["sh", "-c", script] }) }));
await fixture.listener.until(() => fixture.listener.logs("stdout").length === 3);
console.log(JSON.stringify(fixture.listener.logs("stdout").map(Number)));
setInterval(() => {}, 1_000_000);
