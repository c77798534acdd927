// @ts-check
// Asks a Worker (layout-worker.js) where the boxes of a graph are; only the answer to the last question counts.

import { scriptUrl } from "../script-url.js";

export class Layout {
  #worker;
  #number = 0;

  /** @param {(plan: any) => void} onPlan of ../../dashboard/graph-layout.js */
  constructor(onPlan) {
    const url = new URL("./layout-worker.js", import.meta.url).href;
    this.#worker = new Worker(scriptUrl(url), { type: "module" });
    this.#worker.addEventListener("message", ({ data: { number, plan } }) => {
      if (number === this.#number) onPlan(plan);
    });
  }

  /** @param {any} model of ../../dashboard/model.js @param {boolean} isDown from top to bottom */
  ask(model, isDown) {
    const nodes = [...model.agents.values()].map(({ id, type }) => ({ id, type }));
    const edges = [...model.edges.values()].map(({ from, to }) => ({ from, to }));
    this.#worker.postMessage({ number: ++this.#number, nodes, edges, isDown });
  }

  end() {
    this.#worker.terminate();
  }
}
