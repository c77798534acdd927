// What every failure promises, whatever it is made of.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { anyString, fc } from "../../test/support/fast-check.ts";
import { textEnd, textStart } from "./bounded-value.ts";
import { makeFailure } from "./failure.ts";
import { type FailureCode, type FailureKind, failureCatalogue } from "./failure-catalogue.ts";
import { limits } from "./limits.ts";

const codes = Object.keys(failureCatalogue) as FailureCode[];
const jsonBytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
/** Without the quotes. */
const textBytes = (text: string) => jsonBytes(text) - 2;

/** Long texts of what is expensive, cannot be cut anywhere, or means something to JSON. */
const hostile = fc
  .tuple(
    fc.constantFrom("\0", "\u001b", "é", "漢", "😀", "\ud800", "\udc00", '"', "\\", "\n", "a", "a\u0001漢😀"),
    fc.nat(20_000),
    anyString({ maxLength: 40 }),
    anyString({ maxLength: 40 }),
  )
  .map(([unit, times, before, behind]) => before + unit.repeat(times) + behind);
const name = hostile.map((text) => text.slice(0, limits.nameCharsMax));

const place = (runId: string) => ({
  runId,
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  eventId: Number.MAX_SAFE_INTEGER,
});

describe("a failure", () => {
  it("is small, whatever its message, its stderr and its names are", () => {
    const context = fc.record({
      message: hostile,
      stderrTail: hostile,
      agentId: name,
      code: fc.constantFrom(...codes),
    });
    fc.assert(
      fc.property(context, ({ code, message, stderrTail, agentId }) => {
        const failure = makeFailure(code, message, 0, place("run_06f0q1v6k2m406f0q1v6k2m4"), {
          agentId,
          attempt: 1_000_000,
          maxAttempts: 1_000_000,
          exitCode: 255,
          signal: "SIGRTMAX-14",
          stderrTail,
        });
        const { desc, details } = failure;
        assert.ok(desc.length > 0 && desc.length <= 160 && !desc.includes("\n"));
        assert.ok(textBytes(details.message) <= 2_048);
        assert.ok(textBytes(details.stderr_tail ?? "") <= 4_096);
        assert.ok(jsonBytes(failure) <= 16 * 1_024);
      }),
      { numRuns: 500 },
    );
  });

  it("carries short texts as they are, the beginning of a long message and the end of a long stderr", () => {
    const short = makeFailure("executor.timeout", "One.\nTwo.", 0, place("r"), { stderrTail: "why\n" });
    assert.deepEqual(
      [short.desc, short.details.message, short.details.stderr_tail],
      ["One.", "One.\nTwo.", "why\n"],
    );
    const text = Array.from({ length: 2_000 }, (_, i) => `${i}`).join(" ");
    const long = makeFailure("executor.timeout", text, 0, place("r"), { stderrTail: text }).details;
    assert.ok(long.message.startsWith("0 1 2") && long.message.endsWith("…") && long.message.length > 2_000);
    assert.match(long.stderr_tail ?? "", /^….* 1998 1999$/);
    assert.equal(
      makeFailure("executor.timeout", "", 0, place("r")).desc,
      failureCatalogue["executor.timeout"].meaning,
    );
  });

  it("links to its run, and to the logs of its agent", () => {
    const { links } = makeFailure("executor.timeout", "x", 0, place("run_1"), { agentId: "a b" });
    assert.deepEqual(links, [
      { rel: "run", url: "/api/v1/runs/run_1" },
      { rel: "logs", url: "/api/v1/runs/run_1/logs?agent_id=a%20b" },
      { rel: "timeline", url: "/api/v1/runs/run_1/timeline" },
    ]);
  });
});

describe("cutting a text by its bytes in JSON", () => {
  it("keeps as much as fits, and no half of a character", () => {
    fc.assert(
      fc.property(hostile, fc.integer({ min: 8, max: 5_000 }), (text, bytesMax) => {
        const fits = textBytes(text) <= bytesMax;
        const start = textStart(text, bytesMax);
        const end = textEnd(text, bytesMax);
        assert.equal(start === text, fits);
        assert.equal(end === text, fits);
        if (fits) return;
        // The next character would take six bytes at most, and the ellipsis takes three.
        for (const cut of [start, end])
          assert.ok(textBytes(cut) <= bytesMax && textBytes(cut) > bytesMax - 9);
        assert.ok(text.startsWith(start.slice(0, -1)) && text.endsWith(end.slice(1)));
        if (text.isWellFormed()) assert.ok(start.isWellFormed() && end.isWellFormed());
      }),
    );
  });
});

describe("the catalogue", () => {
  it("says of every code what has happened and what to do next, in sentences", () => {
    for (const [code, kind] of Object.entries<FailureKind>(failureCatalogue)) {
      assert.match(code, /^[a-z]+\.[a-z_]+$/);
      assert.match(kind.meaning, /^[A-Zh].{20,}[.)]$/s, code);
      assert.match(kind.remediation, /^[A-Z].{20,}\.$/s, code);
    }
  });

  it("retries nothing that will fail in the same way again", () => {
    for (const [code, { category, retryable }] of Object.entries<FailureKind>(failureCatalogue)) {
      if (category === "validation" || category === "dependency") assert.equal(retryable, false, code);
    }
  });
});
