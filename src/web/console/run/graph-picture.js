// @ts-check
// The picture of a run's graph, kept true while it is in the page: boxes placed by a Worker, drawn by ../../dashboard/graph-view.js;
// and the ways to move in it: by keys along its edges, by a search, by the small map.

import { atMost, drawn, setAttribute, setText } from "../../dashboard/dom.js";
import { count } from "../../dashboard/format.js";
import { GraphFrame } from "../../dashboard/graph-frame.js";
import { box as measure } from "../../dashboard/graph-layout.js";
import { GraphView } from "../../dashboard/graph-view.js";
import { overlayOf } from "./graph-figures.js";
import { Layout } from "./layout.js";
import { Minimap } from "./minimap.js";

const FIGURES_MS = 1_000;
/** Of more edges nobody reads the figures. */
const TOLD_EDGES_MAX = 120;

export class GraphPicture {
  #source;
  #frame;
  #view;
  #map;
  #on;
  #layout;
  #shape = -1;
  #isDown = false;
  #overlay = "";
  #text = "";
  /** @type {{ from: any, to: any, edges: any[], label: SVGTextElement }[]} */
  #told = [];
  #figures = atMost(FIGURES_MS, () => this.#tell());

  /**
   * @param {import("./run-source.js").RunSource} source @param {HTMLElement} element @param {HTMLCanvasElement} canvas
   * @param {{ open: (ids: string[]) => void, laid: () => void }} on open: a box; laid: boxes have their places
   */
  constructor(source, element, canvas, on) {
    this.#source = source;
    this.#frame = new GraphFrame(element);
    this.#view = new GraphView(source.model, this.#frame, on.open);
    this.#map = new Minimap(canvas, element);
    this.#on = on;
    this.#layout = new Layout((plan) => this.#placed(plan));
    element.addEventListener("keydown", (event) => this.#key(event));
  }

  end() {
    this.#layout.end();
  }

  /** @param {string} id @returns {string[]} the agents in the box of this one */
  membersOf(id) {
    return this.#view.boxOf(id)?.members ?? [];
  }

  /** @param {{ isDown: boolean, overlay: string, text: string }} how text: what names of agents must have in them */
  set({ isDown, overlay, text }) {
    if (isDown !== this.#isDown) this.#shape = -1;
    this.#isDown = isDown;
    const isSame = overlay === this.#overlay && text === this.#text;
    this.#overlay = overlay;
    this.#text = text.toLowerCase();
    if (!isSame) this.#tell();
    this.draw();
  }

  draw() {
    const { model } = this.#source;
    if (model.shape !== this.#shape) {
      this.#shape = model.shape;
      this.#layout.ask(model, this.#isDown);
    }
    if (model.changed.size > 0) {
      this.#view.draw(model.changed);
      model.changed.clear();
      this.#figures();
    }
  }

  /** @param {any} plan of graph-layout.js */
  #placed(plan) {
    this.#view.lay(plan);
    this.#map.show(plan, this.#view.boxes);
    this.#labelEdges(plan);
    for (const { group } of this.#view.boxes) {
      setAttribute(group, "role", "button");
      setAttribute(group, "tabindex", -1);
    }
    if (this.#view.boxes.length > 0) setAttribute(this.#view.boxes[0].group, "tabindex", 0);
    this.#tell();
    this.#on.laid();
  }

  /** @param {any} plan */
  #labelEdges({ edges, boxes, isDown }) {
    this.#told = [];
    if (edges.length > TOLD_EDGES_MAX) return;
    /** @type {Map<string, any>} */
    const byEnds = new Map();
    for (const { from, to } of edges) {
      const label = drawn("text", {
        class: "told",
        x: (boxes[from].x + boxes[to].x + measure.width) / 2,
        y: (boxes[from].y + boxes[to].y + measure.height) / 2 - (isDown ? -4 : 5),
      });
      const told = { from: boxes[from], to: boxes[to], edges: [], label };
      byEnds.set(`${from} ${to}`, told);
      this.#told.push(told);
      this.#view.boxes[0].group.parentNode.insertBefore(label, this.#view.boxes[0].group);
    }
    for (const edge of this.#source.model.edges.values()) {
      const [from, to] = [this.#view.boxOf(edge.from), this.#view.boxOf(edge.to)];
      byEnds.get(`${from?.index} ${to?.index}`)?.edges.push(edge);
    }
  }

  /** Figures, and what the search finds: of all boxes, since each is compared with the others. */
  #tell() {
    const { boxes } = this.#view;
    this.#view.overlay = overlayOf(this.#source, this.#overlay, boxes);
    this.#view.redraw();
    this.#view.draw(new Set());
    for (const { label, edges } of this.#told) {
      const sum = edges.reduce((all, { messages }) => all + messages, 0);
      setText(label, sum === 0 ? "" : count(sum));
    }
    const isSearch = this.#text !== "";
    for (const box of boxes) setAttribute(box.group, "data-found", isSearch ? this.#has(box) : null);
    this.#map.draw();
  }

  /** @param {{ members: string[] }} box */
  #has({ members }) {
    return members.some((id) => id.toLowerCase().includes(this.#text));
  }

  /** Goes to the next box that the search finds. */
  next() {
    const { boxes } = this.#view;
    const found = boxes.filter((box) => this.#has(box));
    const current = found.findIndex(({ group }) => group === document.activeElement);
    const box = found[(current + 1) % found.length];
    if (box !== undefined) this.#focus(box);
  }

  /** @param {any} box */
  #focus(box) {
    for (const { group } of this.#view.boxes) setAttribute(group, "tabindex", group === box.group ? 0 : -1);
    box.group.focus({ preventScroll: true });
    this.#frame.center(box);
  }

  /** Along edges, or to the neighbour in the same layer. @param {KeyboardEvent} event */
  #key(event) {
    const { boxes } = this.#view;
    const box = boxes.find(({ group }) => group === document.activeElement);
    if (box === undefined) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.#on.open(box.members);
      return;
    }
    const [ahead, aside] = this.#isDown ? ["Down", "Right"] : ["Right", "Down"];
    const [behind, before] = this.#isDown ? ["Up", "Left"] : ["Left", "Up"];
    const [depth, row] = this.#isDown ? /** @type {const} */ (["y", "x"]) : /** @type {const} */ (["x", "y"]);
    const layer = boxes.filter((one) => one[depth] === box[depth]).sort((a, b) => a[row] - b[row]);
    /** @type {Record<string, () => any>} */
    const ways = {
      [`Arrow${ahead}`]: () => boxes[this.#view.links.find(({ from }) => from === box.index)?.to],
      [`Arrow${behind}`]: () => boxes[this.#view.links.find(({ to }) => to === box.index)?.from],
      [`Arrow${aside}`]: () => layer[layer.indexOf(box) + 1],
      [`Arrow${before}`]: () => layer[layer.indexOf(box) - 1],
    };
    const way = ways[event.key];
    if (way === undefined) return;
    event.preventDefault();
    const next = way();
    if (next !== undefined) this.#focus(next);
  }
}
