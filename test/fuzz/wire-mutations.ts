// What is done to the bytes of a request: lengths that lie, chunks that are none, halves, garbage, requests behind
// requests. After most of it nobody can say where the request ends, so the server may close the connection.

import { setHeader } from "./draft.ts";
import type { Mutation } from "./mutations.ts";
import { shaken } from "./values.ts";

/** The server may answer as often as it likes before it closes. */
const unframed =
  (mutation: Mutation): Mutation =>
  (draft, making) => {
    draft.answers = null;
    mutation(draft, making);
  };

const GET_HEALTH = "GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
const lengths = [
  "-1",
  "+1",
  "1e3",
  "0x10",
  "1.5",
  "",
  " ",
  "a",
  "99999999999999999999",
  "1,1",
  "1, 2",
  "\t5",
];
const codings = [
  "chunked, chunked",
  "gzip, chunked",
  "chunked, identity",
  "identity",
  "x",
  "",
  "Chunked ",
  "chunked;q=1",
];
const chunks = [
  "zz\r\n{}\r\n0\r\n\r\n",
  "-2\r\n{}\r\n0\r\n\r\n",
  "2\r\n{}",
  "2\r\n{}\r\n",
  "2\r\n{}0\r\n\r\n",
  "2\n{}\n0\n\n",
  "ffffffffffffffffff\r\n{}\r\n",
  `2;${"e=x;".repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
  "2\r\n{}\r\n0\r\nContent-Length: 5\r\nHost: evil.example\r\n\r\n",
  `2\r\n{}\r\n0\r\n${"X: y\r\n".repeat(5_000)}\r\n`,
  "0\r\n\r\n",
  "\r\n",
];

/** By name, for the report. */
export const wireMutations: Readonly<Record<string, Mutation>> = {
  length_lies: unframed((draft, { random }) => {
    const actual = draft.body?.length ?? 0;
    draft.framing = null;
    setHeader(
      draft,
      "Content-Length",
      random.pick([...lengths, String(actual + random.between(1, 50)), String(Math.max(0, actual - 3))]),
    );
  }),
  length_twice: unframed((draft, { random }) => {
    draft.headers.push(["Content-Length", "3"], ["Content-Length", random.pick(["3", "4"])]);
  }),
  length_and_chunked: unframed((draft) => {
    draft.body ??= Buffer.from("{}");
    draft.framing = "chunked";
    draft.headers.push(["Content-Length", "2"]);
  }),
  coding: unframed((draft, { random }) => {
    draft.framing = null;
    setHeader(draft, "Transfer-Encoding", random.pick(codings));
  }),
  chunks_broken: unframed((draft, { random }) => {
    draft.framing = null;
    draft.body = Buffer.from(random.pick(chunks));
    setHeader(draft, "Transfer-Encoding", "chunked");
  }),
  version: unframed((draft, { random }) => {
    draft.version = random.pick([
      "HTTP/1.0",
      "HTTP/1.2",
      "HTTP/2.0",
      "HTTP/0.9",
      "HTTP/9.9",
      "http/1.1",
      "HTTP/1.1 x",
      "",
    ]);
  }),
  method_garbage: unframed((draft, { random }) => {
    draft.method = random.pick([
      "get",
      "FOO",
      "CONNECT",
      "GET ",
      "",
      "G\0T",
      "PRI",
      "x".repeat(500),
      "POST\tX",
    ]);
  }),
  target: unframed((draft, { random }) => {
    draft.path = random.pick([
      "*",
      "",
      "api/v1/jobs",
      "http://",
      "//",
      "/a b",
      "/\0",
      "/\x7f",
      "/é",
      "/\\",
      "/#x",
      "?",
    ]);
  }),
  line_ends: unframed((draft, { random }) => {
    draft.eol = random.pick(["\n", "\r", "\r\r\n", "\n\r", "\r\n "]);
  }),
  header_line: unframed((draft, { random }) => {
    const lines: readonly (readonly [string, string])[] = [
      ["No Colon", ""],
      ["", "x"],
      ["A\0B", "x"],
      ["A", "x\0y"],
      ["A", "x\ry"],
      ["A", "x\x7fy"],
      ["A", "x\r\n folded"],
      ["Host ", "x"],
      ["x".repeat(20_000), "y"],
      ["A", "x\r\n\r\nGET / HTTP/1.1"],
    ];
    const [name, value] = random.pick(lines);
    draft.headers.splice(random.below(draft.headers.length + 1), 0, [name, value]);
  }),
  expectation: unframed((draft, { random }) => {
    setHeader(draft, "Expect", random.pick(["100-continue", "100-Continue, x", "miracles", ""]));
  }),
  upgrade: unframed((draft, { random }) => {
    setHeader(
      draft,
      "Connection",
      random.pick(["Upgrade", "Upgrade, HTTP2-Settings", "close", "keep-alive, x"]),
    );
    setHeader(draft, "Upgrade", random.pick(["websocket", "h2c", "TLS/1.0", "x"]));
    setHeader(draft, "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    setHeader(draft, "Sec-WebSocket-Version", "13");
  }),
  bytes_shaken: unframed((draft, { random }) => {
    draft.path = shaken(Buffer.from(draft.path), random).toString("latin1");
    const [name = "X", value = ""] = draft.headers[random.below(draft.headers.length)] ?? [];
    draft.headers.push([shaken(Buffer.from(name), random).toString("latin1"), value]);
  }),
  garbage: unframed((draft, { random }) => {
    const bytes = Buffer.from(Array.from({ length: random.between(1, 400) }, () => random.below(256)));
    draft.method = bytes.toString("latin1");
  }),
  half: unframed((draft, { random }) => {
    draft.cutAt = random.fraction();
    draft.leaves = random.chance(0.5);
  }),
  leaves: unframed((draft) => {
    draft.leaves = true;
  }),
  pipelined(draft, { random }) {
    // What ends itself, like a stream, answers nothing behind it; so the rest of the answers is not counted.
    draft.answers = null;
    draft.next = Buffer.from(GET_HEALTH.repeat(random.between(1, 20)));
  },
  pipelined_garbage: unframed((draft, { random }) => {
    draft.next = Buffer.from(
      random.pick(["\0\0garbage\r\n\r\n", "\r\n\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "{}"]),
    );
  }),
  slow(draft, { random }) {
    draft.pieces = random.between(2, 12);
  },
};
