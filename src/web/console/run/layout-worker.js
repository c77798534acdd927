// @ts-check
// Places the boxes of a graph beside the page, which goes on drawing: a thousand agents take longer than a picture may.

import { layout } from "../../dashboard/graph-layout.js";

addEventListener("message", ({ data: { number, nodes, edges, isDown } }) =>
  postMessage({ number, plan: layout(nodes, edges, isDown) }),
);
