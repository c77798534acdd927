// How large the graph is drawn, and which part of it is in sight: zoom, fit, moving it, and following the agents that work.
//
// - While it follows, a working agent is in sight if there is one. Moving the graph stops that.

import { byId, setAttribute } from "./dom.js";
import { box as measure } from "./graph-layout.js";

const STEP = 1.25;
const DRAG_PX = 4;
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
    frame.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    frame.addEventListener("pointerdown", (event) => this.#drag(event));
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
    this.center(first);
  }

  /** @param box {x, y} */
  center(first) {
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

  /** With Ctrl or ⌘, or two fingers, the wheel zooms. */
  #wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { left, top } = this.#frame.getBoundingClientRect();
    this.#zoom(this.#scale * 2 ** (-event.deltaY / 200), event.clientX - left, event.clientY - top);
  }

  /** A mouse moves the graph; fingers scroll it without help. */
  #drag({ pointerType, button, pointerId, clientX, clientY }) {
    if (pointerType !== "mouse" || button !== 0) return;
    const frame = this.#frame;
    const { scrollLeft, scrollTop } = frame;
    const ending = new AbortController();
    const { signal } = ending;
    const move = (event) => {
      const [x, y] = [event.clientX - clientX, event.clientY - clientY];
      // A click that trembles stays one.
      if (!frame.hasPointerCapture(pointerId) && Math.hypot(x, y) < DRAG_PX) return;
      frame.setPointerCapture(pointerId);
      frame.scrollTo(scrollLeft - x, scrollTop - y);
    };
    frame.addEventListener("pointermove", move, { signal });
    for (const end of ["pointerup", "pointercancel"]) {
      addEventListener(end, () => ending.abort(), { signal });
    }
  }

  /** What is at the place given, else in the middle, stays there. */
  #zoom(scale, atX = this.#frame.clientWidth / 2, atY = this.#frame.clientHeight / 2) {
    const frame = this.#frame;
    const next = Math.min(SCALE.most, Math.max(SCALE.least, scale));
    const grown = next / this.#scale;
    const [x, y] = [frame.scrollLeft + atX, frame.scrollTop + atY];
    this.#scale = next;
    setAttribute(this.#svg, "width", Math.round(this.#plan.width * next));
    setAttribute(this.#svg, "height", Math.round(this.#plan.height * next));
    frame.scrollTo(x * grown - atX, y * grown - atY);
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
