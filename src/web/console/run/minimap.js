// @ts-check
// The whole graph in a corner, with what is in sight; a press moves there. It is a picture only: the graph scrolls by keys.

import { box as measure } from "../../dashboard/graph-layout.js";
import { colourReader } from "./colours.js";

const WIDTH = 168;
const HEIGHT = 96;
/** Of a graph of which most is in sight, a map would only hide boxes: this share of it is in sight at most. */
const IN_SIGHT_MAX = 0.5;

/** @type {Record<string, string>} */
const colours = {
  failed: "--failed",
  waiting: "--waiting",
  running: "--running",
  retrying: "--retrying",
  done: "--done",
  idle: "--done",
};

export class Minimap {
  #canvas;
  #frame;
  /** @type {any} */
  #plan = null;
  /** @type {readonly any[]} */
  #boxes = [];

  /** @param {HTMLCanvasElement} canvas @param {HTMLElement} frame what scrolls */
  constructor(canvas, frame) {
    this.#canvas = canvas;
    this.#frame = frame;
    frame.addEventListener("scroll", () => this.draw(), { passive: true });
    for (const press of ["pointerdown", "pointermove"]) {
      canvas.addEventListener(press, (event) => this.#move(/** @type {PointerEvent} */ (event)));
    }
  }

  /** @param {any} plan of graph-layout.js @param {readonly any[]} boxes with their states */
  show(plan, boxes) {
    this.#plan = plan;
    this.#boxes = boxes;
  }

  draw() {
    const { clientWidth, clientHeight, scrollWidth, scrollHeight, scrollLeft, scrollTop } = this.#frame;
    const canvas = this.#canvas;
    canvas.hidden =
      this.#plan === null || clientWidth * clientHeight > scrollWidth * scrollHeight * IN_SIGHT_MAX;
    if (canvas.hidden) return;
    const scale = this.#scale();
    const [width, height] = [this.#plan.width * scale, this.#plan.height * scale];
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    canvas.style.setProperty("inline-size", `${width}px`);
    canvas.style.setProperty("block-size", `${height}px`);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(devicePixelRatio, devicePixelRatio);
    const colour = colourReader(canvas);
    for (const { x, y, shown } of this.#boxes) {
      context.fillStyle = colour(colours[shown] ?? "--quiet");
      const [across, down] = [measure.width * scale, measure.height * scale];
      context.fillRect(x * scale, y * scale, Math.max(2, across), Math.max(2, down));
    }
    context.strokeStyle = colour("--accent");
    context.lineWidth = 1.5;
    const share = width / scrollWidth;
    context.strokeRect(
      scrollLeft * share + 1,
      scrollTop * share + 1,
      Math.min(width, clientWidth * share) - 2,
      Math.min(height, clientHeight * share) - 2,
    );
  }

  #scale() {
    return Math.min(WIDTH / this.#plan.width, HEIGHT / this.#plan.height);
  }

  /** @param {PointerEvent} event */
  #move({ buttons, offsetX, offsetY }) {
    if (buttons !== 1) return;
    const { clientWidth, clientHeight, scrollWidth } = this.#frame;
    const share = scrollWidth / (this.#plan.width * this.#scale());
    this.#frame.scrollTo(offsetX * share - clientWidth / 2, offsetY * share - clientHeight / 2);
  }
}
