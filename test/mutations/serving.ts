// Faults of models that are served.

import { type Mutation, mutationsOf } from "./mutation.ts";

const protocol = ["src/http/resources/llm.test.ts"];
const upstream = mutationsOf("src/models/serving/upstream.ts", protocol);
const serving = mutationsOf("src/models/serving/serving.ts", protocol);
const relay = mutationsOf("src/models/serving/stream-relay.ts", [
  "src/models/serving/stream-relay.test.ts",
  ...protocol,
]);
const processes = mutationsOf("src/models/serving/process-backend.ts", [
  "src/models/serving/process-backend.test.ts",
]);
const runs = mutationsOf("src/models/serving/run-llms.ts", ["src/models/serving/run-llms.test.ts"]);

export const servingMutations: readonly Mutation[] = [
  upstream(
    "a server that asks for a long wait is asked again and again",
    " || waitMs > RETRY_WAIT_MAX_MS",
    "",
  ),
  upstream("a server that wants no repetition gets one", ' && headers["x-should-retry"] !== "false"', ""),
  upstream(
    "the key of an endpoint is shown to the client when a server quotes it",
    'secret === null || secret === "" ? text :',
    "true ? text :",
  ),
  serving(
    "the turn of a client that has left is never free again",
    "      begun.cancel();\n      leave();",
    "      begun.cancel();",
  ),
  relay(
    "a stream that breaks off passes for a whole one",
    "if (this.#isFinished) return",
    "if (true) return",
  ),
  relay(
    "the usage that nobody asked for is passed on",
    "if (!this.#hidesUsage) return null;",
    "return null;",
  ),
  processes(
    "a process that does not start is started for each request",
    "if (this.#failures >= FAILURES_TOLD && this.#lastFailure !== null) throw",
    "if (this.#failures < 0 && this.#lastFailure !== null) throw",
  ),
  processes(
    "a process that nobody asks keeps its memory",
    "      this.#isWanted = false;\n      void this.#unload();",
    "",
  ),
  runs(
    "a key is good for another run's agent",
    "timingSafeEqual(digest(mac), digest(this.#macOf(id)))",
    "mac.length > 0",
  ),
  runs("a budget begins anew with each program", "{ requests: 1, tokens: 0 }", "{ requests: 0, tokens: 0 }"),
  runs(
    "the end of an attempt takes the key of the next one",
    "if (this.#open.get(id) === open) this",
    "this",
  ),
];
