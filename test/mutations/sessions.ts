// Faults of the sessions of browsers.

import type { Mutation } from "./mutation.ts";

const sessions = ["src/security/sessions.test.ts"];
const tickets = ["src/http/core/tickets.test.ts"];
const overSockets = ["test/gateway/sessions.test.ts"];

export const sessionMutations: readonly Mutation[] = [
  {
    fault: "a session takes any second key",
    file: "src/security/sessions.ts",
    search: "key !== null && hashOf(key) !== session?.keyHash ? null : session",
    replacement: "session",
    tests: sessions,
  },
  {
    fault: "the cookie alone lets in",
    file: "src/http/core/session-door.ts",
    search: "if (!found.hasKey && (",
    replacement: "if (found.kind !== found.kind && (",
    tests: overSockets,
  },
  {
    fault: "a session takes changes from other ports of its host",
    file: "src/http/core/session-door.ts",
    search: "if (isUnsafe(method) && !isSameOrigin(headers)) {",
    replacement: "if (isUnsafe(method) && headers.host === undefined) {",
    tests: overSockets,
  },
  {
    fault: "a share shows runs whose ids begin alike",
    file: "src/http/core/session-door.ts",
    search: "`${path}/`.startsWith(`/api/v1/runs/${runId}/`)",
    replacement: "path.startsWith(`/api/v1/runs/${runId}`)",
    tests: overSockets,
  },
  {
    fault: "a share may change its run",
    file: "src/http/core/session-door.ts",
    search: "return !isUnsafe(method) && ",
    replacement: "return ",
    tests: overSockets,
  },
  {
    fault: "a ticket is given for what its holder may not read",
    file: "src/http/resources/sessions.ts",
    search: "if (holder instanceof Problem) throw holder;",
    replacement: "",
    tests: overSockets,
  },
  {
    fault: "a link opens sessions again and again",
    file: "src/security/sessions.ts",
    search: "return isTaken ? this.#open(",
    replacement: "return isTaken || link !== null ? this.#open(",
    tests: sessions,
  },
  {
    fault: "sessions outlive the tokens",
    file: "src/security/sessions.ts",
    search: "session.tokensMark === this.#mark &&",
    replacement: "",
    tests: sessions,
  },
  {
    fault: "what a share has opened outlives it",
    file: "src/store/sql/sessions.ts",
    search: "await endOpened(db, sessionId);",
    replacement: "",
    tests: sessions,
  },
  {
    fault: "a ticket is good more than once",
    file: "src/http/core/tickets.ts",
    search: "|| this.#used.has(nonce)",
    replacement: "",
    tests: tickets,
  },
  {
    fault: "a ticket is good for every address",
    file: "src/http/core/tickets.ts",
    search: "update(`${signed}\\n${address}`)",
    replacement: "update(signed)",
    tests: tickets,
  },
  {
    fault: "sign-ins may be tried without end",
    file: "src/http/resources/sessions.ts",
    search: "if (waitSeconds > 0) throw tooMany(waitSeconds);",
    replacement: "",
    tests: overSockets,
  },
];
