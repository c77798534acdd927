// Runs inside a sandbox, beside its command: passes connections to the address of HTTP_PROXY on to the socket behind which the
// proxy is. First it tries the hosts that it is given, if any. Plain JavaScript, because it starts with every command.
//
// - It writes one line, `ready` or what is wrong, and nothing after that.
// - Signals that ask its session to end are for the command, which may need the network until it has ended.

import { writeSync } from "node:fs";
import { connect, createServer } from "node:net";

const [, , socketPath, port, ...hosts] = process.argv;
/** Longer than the proxy tries, which knows why. */
const CHECK_MS = 25_000;
const ANSWER_CHARS_MAX = 1_000;

for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) process.on(signal, () => {});

const problems = (await Promise.all(hosts.map(problemOf))).filter((problem) => problem !== null);
if (problems.length > 0) end(problems.join("; "));
else listen();

function listen() {
  const server = createServer({ allowHalfOpen: true }, passOn);
  // Later ones are of clients that could not be accepted: those that are there go on.
  server.on("error", ({ message }) => server.listening || end(message));
  server.listen(Number(port), "127.0.0.1", () => end("ready"));
}

/** @param {import("node:net").Socket} client */
function passOn(client) {
  const proxy = connect({ path: socketPath, allowHalfOpen: true });
  for (const [one, other] of [
    [client, proxy],
    [proxy, client],
  ]) {
    one.on("error", () => other.destroy());
    // Without an end before it, what the other one has not written yet has no reader.
    one.on("close", () => one.readableEnded || other.destroy());
    one.pipe(other);
  }
}

/**
 * Connects to a host through the proxy.
 *
 * @param {string} host with its port
 * @returns {Promise<string | null>} why it cannot be reached
 */
function problemOf(host) {
  return new Promise((resolve) => {
    const proxy = connect({ path: socketPath, timeout: CHECK_MS });
    let answer = "";
    const settle = (problem) => {
      proxy.destroy();
      resolve(problem);
    };
    const lost = (why) => settle(`${host} cannot be reached: ${why}`);
    proxy.on("timeout", () => lost("no answer"));
    proxy.on("error", ({ message }) => lost(message));
    // The proxy says which host it is about.
    proxy.on("end", () => {
      const [, said = ""] = answer.split("\r\n\r\n");
      if (said === "") lost("the proxy has closed the connection");
      else settle(said.split("\n", 1)[0]);
    });
    proxy.on("data", (chunk) => {
      answer += chunk;
      if (/^HTTP\/1\.1 200 /.test(answer)) settle(null);
      else if (answer.length > ANSWER_CHARS_MAX) settle(answer.slice(0, ANSWER_CHARS_MAX));
    });
    proxy.write(`CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  });
}

/** @param {string} line */
function end(line) {
  writeSync(1, `${line}\n`);
}
