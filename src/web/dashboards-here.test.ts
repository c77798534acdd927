// A run's dashboard on a node that has taken the run over.

import assert from "node:assert/strict";
import { test } from "node:test";
import { specOf } from "../../test/support/services.ts";
import { dashboardsHere } from "./dashboards-here.ts";
import { WEB_UI_NODE } from "./inject.ts";

const here = dashboardsHere({ host: "0.0.0.0", publicUrl: "http://b.example.org:{port}/" }, true);

test("a dashboard is bound and reached where the node has it, at the run's own port", () => {
  const launched = specOf({ port: 61_003, address: "127.0.0.1", public_url: "http://a.example.org:61003/" });
  const { address, port, publicUrl } = here.service(launched, WEB_UI_NODE);
  assert.deepEqual([address, port, publicUrl], ["0.0.0.0", 61_003, "http://b.example.org:61003/"]);
  const declared = { SVC_WEB_UI_PORT: "61003", SVC_WEB_UI_HOST: "127.0.0.1", SVC_WEB_UI_TITLE: "Digest" };
  assert.deepEqual(here.environment(WEB_UI_NODE, declared), {
    ...declared,
    SVC_WEB_UI_HOST: "0.0.0.0",
    SVC_WEB_UI_PUBLIC_URL: "http://b.example.org:61003/",
  });
});

test("what other agents offer and declare is as they say", () => {
  assert.deepEqual([WEB_UI_NODE, "web", null].map(here.asksForKey), [true, false, false]);
  const spec = specOf({ port: 8_080, address: "10.0.0.7" });
  assert.equal(here.service(spec, "web"), spec);
  assert.equal(here.service(spec, null), spec);
  const declared = { SVC_WEB_UI_PORT: "1" };
  assert.equal(here.environment("web", declared), declared);
  const empty = {};
  assert.equal(here.environment(WEB_UI_NODE, empty), empty);
});
