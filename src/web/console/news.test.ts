// What is said of changes to who cannot see them.

import assert from "node:assert/strict";
import { test } from "node:test";

// The session asks what this browser has kept as soon as it is loaded.
Object.assign(globalThis, {
  localStorage: { getItem: () => null },
  location: { pathname: "/console", search: "" },
});
const { newsOf } = await import(new URL("./news.js", import.meta.url).href);

test("failed runs and new questions are told, and nothing else", () => {
  const run = (status: string) => ({
    topic: "runs",
    id: "run_1",
    changes: { status, job_name: "Orders \u202e" },
  });
  const question = (status: string) => ({ topic: "human", id: "ship", changes: { run_id: "run_1", status } });
  assert.equal(
    newsOf([run("completed"), question("answered"), { topic: "runs", id: "run_2", changes: null }]),
    "",
  );
  assert.equal(newsOf([run("failed")]), "A run has failed: Orders \ufffd.");
  assert.equal(
    newsOf([run("failed"), run("failed"), question("pending")]),
    "2 runs have failed. There is a new question.",
  );
});
