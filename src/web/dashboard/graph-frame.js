// How large the graph is drawn, and which part of it is in sight: zoom, fit, and following the agents that work.
//
// - While it follows, a working agent is in sight if there is one. Moving the graph stops that.

import { byId, setAttribute } from "./dom.js";
import { box as measure } from "./graph-layout.js";

const STEP = 1.25;
const SCALE = { least: 0.1, most: 3 };
const activeStates = ["failed", "waiting", "running", "retrying"];

export class GraphFrame {
  #frame;
  #svg = null;
  #plan = { width: 1, height: 1 };
  #scale = 1;
  #isFollowing = true;

  constructor(frame) {
    this.#frame = frame;
    byId("zoom-in").addEventListener("click", () => this.#zoom(this.#scale * STEP));
    byId("zoom-out").addEventListener("click", () => this.#zoom(this.#scale / STEP));
    byId("zoom-fit").addEventListener("click", () => this.#fit());
    byId("graph-follow").addEventListener("click", () => this.#follow(!this.#isFollowing));
    for (const move of ["wheel", "pointerdown", "keydown"]) {
      frame.addEventListener(move, () => this.#follow(false), { passive: true });
    }
  }

  /** @param plan of graph-layout.js */
  show(svg, plan) {
    this.#svg = svg;
    this.#plan = plan;
    this.#frame.replaceChildren(svg);
    this.#zoom(this.#scale);
  }

  /** @param boxes [{x, y, shown}], all of the graph's */
  followActive(boxes) {
    if (!this.#isFollowing || this.#frame.hidden) return;
    const active = boxes.filter(({ shown }) => activeStates.includes(shown));
    if (active.length === 0 || active.some((one) => this.#isInSight(one))) return;
    const [first] = active.toSorted((a, b) => activeStates.indexOf(a.shown) - activeStates.indexOf(b.shown));
    const { clientWidth, clientHeight } = this.#frame;
    this.#frame.scrollTo(
      (first.x + measure.width / 2) * this.#scale - clientWidth / 2,
      (first.y + measure.height / 2) * this.#scale - clientHeight / 2,
    );
  }

  #isInSight({ x, y }) {
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.#frame;
    const [left, top] = [x * this.#scale - scrollLeft, y * this.#scale - scrollTop];
    return (
      left >= 0 &&
      top >= 0 &&
      left + measure.width * this.#scale <= clientWidth &&
      top + measure.height * this.#scale <= clientHeight
    );
  }

  /** What is in the middle stays there. */
  #zoom(scale) {
    const frame = this.#frame;
    const next = Math.min(SCALE.most, Math.max(SCALE.least, scale));
    const grown = next / this.#scale;
    const [x, y] = [frame.scrollLeft + frame.clientWidth / 2, frame.scrollTop + frame.clientHeight / 2];
    this.#scale = next;
    setAttribute(this.#svg, "width", Math.round(this.#plan.width * next));
    setAttribute(this.#svg, "height", Math.round(this.#plan.height * next));
    frame.scrollTo(x * grown - frame.clientWidth / 2, y * grown - frame.clientHeight / 2);
  }

  #fit() {
    const { clientWidth } = this.#frame;
    const heightMax = Number.parseFloat(getComputedStyle(this.#frame).maxBlockSize) || this.#plan.height;
    this.#zoom(Math.min(1, clientWidth / this.#plan.width, heightMax / this.#plan.height));
  }

  #follow(shall) {
    this.#isFollowing = shall;
    setAttribute(byId("graph-follow"), "aria-pressed", shall);
  }
}
