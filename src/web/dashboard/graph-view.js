// The drawing of the graph. Each box says its state by a sign, a colour and a word; a box for several agents has a bar
// with a share for each state.

import { drawn, setAttribute, setText } from "./dom.js";
import { nowText } from "./event-text.js";
import { clean, count, ends, start } from "./format.js";
import { box as measure } from "./graph-layout.js";
import { shownState, stateNames } from "./model.js";

/** Paths in a square of 16. A sign differs from each other one by its shape. */
const signs = new Map([
  ["pending", "M8 3.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z"],
  ["queued", "M4.5 3h7M4.5 13h7M5.5 3c0 3 5 4 5 10M10.5 3c0 3-5 4-5 10"],
  ["running", "M8 2.5a5.5 5.5 0 1 1-5.5 5.5"],
  ["retrying", "M12.5 8a4.5 4.5 0 1 1-1.5-3.4M12.5 2.5v3h-3"],
  ["waiting", "M8 7.5a2.5 2.5 0 1 0 0-5a2.5 2.5 0 1 0 0 5zM3 14c0-6 10-6 10 0"],
  ["ready", "M8 3.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9zM8 7.5v1"],
  ["idle", "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12zM5 8.2l2.2 2.2l3.8-4.4"],
  ["done", "M3 8.5l3.5 3.5l6.5-7.5"],
  ["failed", "M4 4l8 8M12 4l-8 8"],
  ["cancelled", "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11zM4.2 4.2l7.6 7.6"],
  ["skipped", "M4 8h8"],
  ["not_reached", "M4 8h8"],
]);

/** More edges than this are one path: each for itself would only be drawn, never changed. */
const SINGLE_EDGES_MAX = 400;
/** As many as fit with an ellipsis at the end; of a text of wide letters, a frame cuts off the rest. */
const NAME_CHARS = 21;
const STATE_CHARS = 26;
const BAR_WIDTH = measure.width - 44;

export class GraphView {
  #model;
  #frame;
  #open;
  #into = new Map();
  #boxOf = new Map();
  #isWhole = false;
  /** [{members, index, x, y, shown, group, state}] as they are drawn; shown: the state that is. */
  boxes = [];
  /** [{from, to, isBack}] between them. */
  links = [];
  /**
   * What boxes tell instead of the state of their agents; null: the state.
   *
   * @type {((box: any) => { text: string, share: number }) | null} share: from 0 to 1
   */
  overlay = null;

  /** @param frame of graph-frame.js @param open called with the agents of a box that is clicked */
  constructor(model, frame, open) {
    this.#model = model;
    this.#frame = frame;
    this.#open = open;
  }

  /** Draws the graph anew: it has other agents or edges than before. @param plan of graph-layout.js */
  lay(plan) {
    const svg = drawn("svg", {
      viewBox: `0 0 ${plan.width} ${plan.height}`,
      role: "group",
      "aria-label": "The graph of the run",
    });
    this.#into = new Map();
    this.links = plan.edges;
    svg.append(this.#edges(plan));
    this.#boxOf = new Map();
    this.boxes = plan.boxes.map((one) => {
      const made = this.#box(one);
      svg.append(made.group);
      for (const id of one.members) this.#boxOf.set(id, made);
      return made;
    });
    this.#frame.show(svg, plan);
    this.redraw();
  }

  /** The box of an agent; undefined for none. */
  boxOf(id) {
    return this.#boxOf.get(id);
  }

  /** Everything is told anew with the next picture. */
  redraw() {
    this.#isWhole = true;
  }

  draw(changed) {
    const stale = new Set(this.#isWhole ? this.boxes : []);
    this.#isWhole = false;
    for (const id of changed) {
      const found = this.#boxOf.get(id);
      if (found !== undefined) stale.add(found);
    }
    for (const one of stale) this.#fill(one);
    if (stale.size > 0) this.#frame.followActive(this.boxes);
  }

  #edges(plan) {
    const { boxes, edges } = plan;
    const group = drawn("g", { class: "edges" });
    const isSingle = edges.length <= SINGLE_EDGES_MAX;
    const parts = { on: [], back: [] };
    for (const { from, to, isBack } of edges) {
      const d = (isBack ? wayBack : wayOn)(boxes[from], boxes[to], plan);
      if (!isSingle) parts[isBack ? "back" : "on"].push(d);
      else {
        const path = drawn("path", { d, class: isBack ? "edge back" : "edge" });
        group.append(path);
        if (!this.#into.has(to)) this.#into.set(to, []);
        this.#into.get(to).push(path);
      }
    }
    if (!isSingle) {
      group.append(drawn("path", { d: parts.on.join(""), class: "edge" }));
      group.append(drawn("path", { d: parts.back.join(""), class: "edge back" }));
    }
    return group;
  }

  #box({ members, x, y, index }) {
    const [first] = members;
    const isGroup = members.length > 1;
    const agent = this.#model.agents.get(first);
    const made = {
      members,
      index,
      x,
      y,
      shown: "pending",
      title: drawn("title"),
      sign: drawn("path", { class: "sign" }),
      name: drawn("text", { class: "name", y: 23 }),
      state: drawn("text", { class: "state", y: 42 }),
      bar: drawn("g", { class: "share", transform: `translate(36 ${measure.height - 9})` }),
      group: drawn("g", { class: isGroup ? "box many" : "box", transform: `translate(${x} ${y})` }),
    };
    const { width, height } = measure;
    made.group.append(made.title);
    if (isGroup) made.group.append(drawn("rect", { class: "behind", x: 5, y: 5, width, height, rx: 10 }));
    made.group.append(
      drawn("rect", { class: "face", width, height, rx: 10 }),
      drawn("g", { transform: "translate(12 11)" }, made.sign),
      drawn("svg", { x: 36, width: width - 42, height }, made.name, made.state),
      made.bar,
    );
    const many = ` × ${count(members.length)}`;
    const text = isGroup
      ? ends(clean(groupName(members.map((id) => this.#model.agents.get(id)))), NAME_CHARS - many.length) +
        many
      : ends(clean(agent.id), NAME_CHARS);
    setText(made.name, text);
    made.group.addEventListener("click", () => this.#open(members));
    return made;
  }

  #fill(made) {
    const agents = made.members.map((id) => this.#model.agents.get(id));
    const tally = new Map();
    for (const agent of agents) {
      const state = shownState(agent);
      tally.set(state, (tally.get(state) ?? 0) + 1);
    }
    // The states are in the order of interest, so that one failed agent of many is seen.
    const state = [...stateNames.keys()].find((one) => tally.has(one));
    made.shown = state;
    setAttribute(made.group, "data-state", state);
    setAttribute(made.sign, "d", signs.get(state));
    for (const path of this.#into.get(made.index) ?? []) setAttribute(path, "data-state", state);
    if (agents.length === 1) fillOne(made, agents[0], state);
    else fillMany(made, agents, tally);
    const told = this.overlay?.(made) ?? null;
    if (told !== null) setText(made.state, start(told.text, STATE_CHARS));
    setAttribute(made.group, "data-heat", told === null ? null : Math.round(told.share * 4));
  }
}

/** What agents of a group have in common: how their names begin, or their role; else one of them stands for all. */
export function groupName(agents) {
  const prefix = commonStart(agents.map(({ id }) => id)).replace(/\d+$/, "");
  const [{ id, role }] = agents;
  if (prefix !== "") return `${prefix}…`;
  return role !== "" && agents.every((agent) => agent.role === role) ? role : `${id}…`;
}

function commonStart(texts) {
  const [first] = texts;
  let length = first.length;
  for (const text of texts) while (!text.startsWith(first.slice(0, length))) length--;
  return first.slice(0, length);
}

function fillOne(made, agent, state) {
  const now = nowText(agent);
  const name = stateNames.get(state);
  const text = now === "" && agent.messages > 1 ? `${name} · ${count(agent.messages)} messages` : name;
  setText(made.state, start(clean(now === "" ? text : `${name} · ${now}`), STATE_CHARS));
  setText(made.title, start(clean(`${agent.id}\n${agent.role}\n${name} ${now}`), 500));
  const share = agent.percent === null ? [] : [["running", agent.percent / 100]];
  drawBar(made.bar, share);
}

function fillMany(made, agents, tally) {
  const parts = [...stateNames.keys()].filter((state) => tally.has(state));
  const texts = parts.map((state) => `${count(tally.get(state))} ${stateNames.get(state).toLowerCase()}`);
  setText(made.state, start(texts.join(", "), STATE_CHARS));
  const ids = agents.slice(0, 20).map(({ id }) => id);
  setText(made.title, start(clean(`${texts.join(", ")}\n${ids.join(", ")}`), 1_000));
  drawBar(
    made.bar,
    parts.map((state) => [state, tally.get(state) / agents.length]),
  );
}

/** @param shares [[state, 0 to 1]] from left to right */
function drawBar(bar, shares) {
  while (bar.childElementCount > shares.length) bar.lastElementChild.remove();
  let x = 0;
  shares.forEach(([state, share], i) => {
    if (bar.children[i] === undefined) bar.append(drawn("rect", { height: 3, rx: 1 }));
    const width = Math.max(1, share * BAR_WIDTH);
    const rect = bar.children[i];
    setAttribute(rect, "data-state", state);
    setAttribute(rect, "x", x.toFixed(1));
    setAttribute(rect, "width", width.toFixed(1));
    x += width;
  });
}

function wayOn(from, to, { isDown }) {
  if (isDown) {
    const [x1, y1] = [from.x + measure.width / 2, from.y + measure.height];
    const [x2, y2] = [to.x + measure.width / 2, to.y];
    const bend = Math.max(measure.gapX / 2, (y2 - y1) / 2);
    return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2 - 2}`;
  }
  const [x1, y1] = [from.x + measure.width, from.y + measure.height / 2];
  const [x2, y2] = [to.x, to.y + measure.height / 2];
  const bend = Math.max(measure.gapX / 2, (x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 2} ${y2}`;
}

/** Beyond all boxes, from the end of the one to the start of the other. */
function wayBack(from, to, { isDown, width, height }) {
  if (isDown) {
    const side = width - measure.margin / 2;
    const [x1, y1] = [from.x + measure.width, from.y + measure.height / 2];
    const [x2, y2] = [to.x + measure.width, to.y + measure.height / 2];
    const turn = Math.sign(y1 - y2) * measure.gapY;
    return `M${x1} ${y1}Q${side} ${y1} ${side} ${y1 - turn}L${side} ${y2 + turn}Q${side} ${y2} ${x2} ${y2}`;
  }
  const bottom = height - measure.margin / 2;
  const [x1, y1] = [from.x + measure.width / 2, from.y + measure.height];
  const [x2, y2] = [to.x + measure.width / 2, to.y + measure.height];
  const turn = Math.sign(x1 - x2) * measure.gapY;
  return `M${x1} ${y1}Q${x1} ${bottom} ${x1 - turn} ${bottom}L${x2 + turn} ${bottom}Q${x2} ${bottom} ${x2} ${y2}`;
}
