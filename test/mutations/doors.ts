// Faults of what nodes ask each other, and of jobs that are reached through another node than their own.

import type { Mutation } from "./mutation.ts";

const control = ["src/cluster/remote-control.test.ts"];
const mapping = ["src/cluster/wire/control.test.ts"];
const credentials = ["src/cluster/wire/credentials.test.ts"];
const watch = ["src/cluster/wire/watch.test.ts"];
const follower = ["src/cluster/follower.test.ts"];
const places = ["src/cluster/places.test.ts"];
const heads = ["src/store/sql/heads.test.ts"];

export const doorMutations: readonly Mutation[] = [
  {
    fault: "a job that another node has taken over is not looked up again",
    file: "src/cluster/remote-control.ts",
    search: "looks < 2; looks++",
    replacement: "looks < 1; looks++",
    tests: control,
  },
  {
    fault: "a message whose answer was lost is sent again",
    file: "src/cluster/remote-control.ts",
    search: 'const mayRetry = action.kind !== "deliver" || !error.mayHaveArrived;',
    replacement: "const mayRetry = true;",
    tests: control,
  },
  {
    fault: "a job is asked for at a lost node",
    file: "src/cluster/remote-control.ts",
    search: "if (place.address === null) throw new EngineUnavailable(lostText(jobId));",
    replacement: 'if (place.address === null) return { kind: "not_open" };',
    tests: control,
  },
  {
    fault: "letters of any size go in one call",
    file: "src/cluster/remote-control.ts",
    search: "if (some.length > 0 && chars + more > LETTERS_CHARS_MAX) {",
    replacement: "if (some.length > 0 && chars < 0) {",
    tests: control,
  },
  {
    fault: "a node answers for an owner that it is not any more",
    file: "src/cluster/node-service.ts",
    search: "asked.owner === owner() && engine.holds(asked.jobId)",
    replacement: "engine.holds(asked.jobId)",
    tests: control,
  },
  {
    fault: "an engine that takes nothing is an unexpected error on another node",
    file: "src/cluster/node-service.ts",
    search: "if (error instanceof EngineUnavailable) return",
    replacement: "if (error === null) return",
    tests: control,
  },
  {
    fault: "nobody stops listening for a stream that is over",
    file: "src/cluster/node-service.ts",
    search: "          stop();",
    replacement: "",
    tests: watch,
  },
  {
    fault: "a connection that is not made in time is waited for",
    file: "src/cluster/wire/peers.ts",
    search: "await Promise.race([peer.connection.connect(), isLate.promise]);",
    replacement: "await peer.connection.connect();",
    tests: control,
  },
  {
    fault: "an empty text is none on another node",
    file: "src/cluster/wire/control.ts",
    search: "const orNull = <Value>(value: Value | undefined): Value | null => value ?? null;",
    replacement: "const orNull = <Value>(value: Value | undefined): Value | null => value || null;",
    tests: mapping,
  },
  {
    fault: "a node of another authority is let in",
    file: "src/cluster/wire/credentials.ts",
    search: "requestCert: true, rejectUnauthorized: true",
    replacement: "requestCert: false, rejectUnauthorized: false",
    tests: credentials,
  },
  {
    fault: "a node that proves nothing is believed",
    file: "src/cluster/wire/credentials.ts",
    search: 'return { cert, key, ca, rejectUnauthorized: true, minVersion: "TLSv1.3" };',
    replacement: 'return { cert, key, ca, rejectUnauthorized: false, minVersion: "TLSv1.3" };',
    tests: credentials,
  },
  {
    fault: "events that a node does not take are kept for it",
    file: "src/cluster/wire/watch.ts",
    search: "if (!hasRoom) this.#waiting = [];",
    replacement: "",
    tests: watch,
  },
  {
    fault: "events that were left out of a stream are missing",
    file: "src/runs/feed.ts",
    search: "if (firstSeq > wanted) return false;",
    replacement: "",
    tests: follower,
  },
  {
    fault: "events that came twice are told twice",
    file: "src/runs/feed.ts",
    search: "const news = lines.slice(wanted - firstSeq);",
    replacement: "const news = lines;",
    tests: follower,
  },
  {
    fault: "the end is told to those who listen once more",
    file: "src/runs/feed.ts",
    search: "audience.hasEnded ||= isEnd;",
    replacement: "",
    tests: follower,
  },
  {
    fault: "what a stream leaves out is read a second later",
    file: "src/cluster/follower.ts",
    search: "if (!isTaken) this.#lookSoon(jobId);",
    replacement: "",
    tests: follower,
  },
  {
    fault: "a stream of a former owner is kept",
    file: "src/cluster/follower.ts",
    search: "if (stream !== null && stream.owner === source?.owner) return;",
    replacement: "if (stream !== null) return;",
    tests: follower,
  },
  {
    fault: "a page is told beyond the end that is known",
    file: "src/cluster/follower.ts",
    search: "const known = lines.slice(0, head.seq - seq);",
    replacement: "const known = lines;",
    tests: follower,
  },
  {
    fault: "the nodes are read for each job that a lost one has left",
    file: "src/cluster/places.ts",
    search: "if (address === null) this.#addresses.set(owner, null);",
    replacement: "",
    tests: places,
  },
  {
    fault: "a node that has begun since is taken for lost",
    file: "src/cluster/places.ts",
    search: "if (this.#isOld || !this.#addresses.has(owner)) {",
    replacement: "if (this.#isOld) {",
    tests: places,
  },
  {
    fault: "a job that has ended is asked for at its former owner",
    file: "src/store/sql/heads.ts",
    search: '.where("job_id", "=", jobId).where("terminal", "=", sql.lit(0))',
    replacement: '.where("job_id", "=", jobId)',
    tests: heads,
  },
  {
    fault: "a run that waits for its launch is over for other nodes",
    file: "src/store/sql/heads.ts",
    search: '            .where("terminal", "=", sql.lit(1)),',
    replacement: "",
    tests: heads,
  },
  {
    fault: "a lost node is asked for its jobs",
    file: "src/cluster/places.ts",
    search: ".filter(isLiving)",
    replacement: "",
    tests: places,
  },
  {
    fault: "a port for nodes is open to other machines without certificates",
    file: "src/app/config.ts",
    search: "} else if (first !== undefined && !isLoopback(nodeHost)) {",
    replacement: '} else if (first !== undefined && nodeHost === "") {',
    tests: ["src/app/config.test.ts"],
  },
  {
    fault: "a certificate of a node replaces another one",
    file: "src/security/node-certificates.ts",
    search: "if (there === undefined) continue;",
    replacement: "if (true) continue;",
    tests: ["test/integration/node-certificates.test.ts"],
  },
  {
    fault: "others may read the keys of certificates",
    file: "src/security/node-certificates.ts",
    search: 'format: "pem" })), 0o600);',
    replacement: 'format: "pem" })), 0o644);',
    tests: ["test/integration/node-certificates.test.ts"],
  },
  {
    fault: "an authority that has ended signs certificates",
    file: "src/security/node-certificates.ts",
    search: "certificate.validToDate.getTime() <= nowMs",
    replacement: "false",
    tests: ["test/integration/node-certificates.test.ts"],
  },
  {
    fault: "a certificate names an IP address as if it were a host",
    file: "src/security/node-certificates.ts",
    search: "isIP(host) === 0",
    replacement: "true",
    tests: ["test/integration/node-certificates.test.ts"],
  },
];
