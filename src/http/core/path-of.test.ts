// The one spelling of a path that lists, keys and problems go by.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf } from "./path-of.ts";

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
