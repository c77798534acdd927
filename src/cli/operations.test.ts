import assert from "node:assert/strict";
import { test } from "node:test";
import type { Operation } from "../../sdk/src/index.ts";
import { planLines } from "./operations.ts";

const fingerprint = "facfc9161795".padEnd(64, "0");

function removal(kind: "preview" | "removed", action: "delete" | "keep"): Pick<Operation, "result"> {
  const resources = [{ kind: "package", id: fingerprint, bytes: 2048, action }];
  const plan = { resources, jobs_affected: 1, bytes_freed: action === "delete" ? 2048 : 0 };
  return { result: { [kind]: plan } } as unknown as Pick<Operation, "result">;
}

test("a removal lists what was removed and how much it freed", () => {
  assert.deepEqual(planLines(removal("removed", "delete")), [
    "Removed:",
    "  package facfc9161795, 2.0 KiB",
    "2.0 KiB of files were freed.",
    "1 job made from it stays.",
  ]);
});

test("a package that is kept is listed with the reason, before and after", () => {
  const staying = "  package facfc9161795, 2.0 KiB: still used by its jobs or an uploaded bundle";
  const jobs = "1 job made from it stays.";
  assert.deepEqual(planLines(removal("preview", "keep")), [
    "No files would be removed.",
    "Would be kept:",
    staying,
    jobs,
  ]);
  assert.deepEqual(planLines(removal("removed", "keep")), ["No files were removed.", "Kept:", staying, jobs]);
});
