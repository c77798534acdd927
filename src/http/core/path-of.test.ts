// The one spelling of a path that lists, keys and problems go by.

import assert from "node:assert/strict";
import { test } from "node:test";
import { loggedPath, pathOf } from "./path-of.ts";

test("a URL's path has no query, no fragment and no host, and is left as it is spelled", () => {
  const paths = {
    "/jobs": "/jobs",
    "/jobs?a=b?c": "/jobs",
    "/jobs#top?a=b": "/jobs",
    "/jobs?next=http://other/path": "/jobs",
    "/runs/%41//b/": "/runs/%41//b/",
    "http://127.0.0.1:80/jobs?a=b": "/jobs",
    "HTTPS://host/jobs": "/jobs",
    "/http://host/jobs": "/http://host/jobs",
    "*": "*",
    "": "",
  };
  for (const [url, path] of Object.entries(paths)) assert.equal(pathOf(url), path, url);
});

test("a log has no paths of webhooks", () => {
  const token = "c2VjcmV0";
  for (const url of [`/hooks/${token}`, `http://host/hooks/${token}?a=b`, `//HOOKS/${token}/more`])
    assert.ok(!loggedPath(url).includes(token), url);
  assert.equal(loggedPath(`/hooks/${token}`), "/hooks/********");
  assert.equal(loggedPath("/api/v1/jobs/hooks/x?a"), "/api/v1/jobs/hooks/x");
});
