// The agents of the run: as a graph to look at, and as a list that is read, searched and reached by keyboard.
//
// - A picture only touches the agents that have changed since the last one.
// - The list shows a bounded number of agents; of a large graph those of most interest.

import { atMost, byId, element, fill, scrollable, setAttribute, setText } from "./dom.js";
import { nowText } from "./event-text.js";
import { clean, count, ends, plural, start } from "./format.js";
import { GraphFrame } from "./graph-frame.js";
import { layout } from "./graph-layout.js";
import { GraphView } from "./graph-view.js";
import { shownState, stateNames } from "./model.js";

const ROWS_MAX = 200;
/** Of a large graph the list is chosen anew now and then, not with each event. */
const CHOOSE_MS = 1_000;
const NARROW = "(max-width: 640px)";

export class AgentsView {
  #page;
  #graph;
  #showAgent;
  #rows = new Map();
  #shape = -1;
  #choose;

  /** @param showAgent called with the agent whose events a reader wants to see */
  constructor(page, showAgent) {
    this.#page = page;
    this.#showAgent = showAgent;
    scrollable(byId("graph"), "The graph; the list has the same in words");
    scrollable(byId("list"), "The agents as a list");
    this.#graph = new GraphView(page.model, new GraphFrame(byId("graph")), ([id, ...others]) => {
      if (others.length === 0) showAgent(id);
    });
    this.#choose = atMost(CHOOSE_MS, () => this.#fillList());
    byId("show-graph").addEventListener("click", () => this.#show("graph"));
    byId("show-list").addEventListener("click", () => this.#show("list"));
    // On a narrow screen words are easier to read than a picture that has to be moved around.
    this.#show(matchMedia(NARROW).matches ? "list" : "graph");
  }

  draw() {
    const { model } = this.#page;
    const isReshaped = model.shape !== this.#shape;
    this.#shape = model.shape;
    if (isReshaped) {
      this.#graph.lay(layout([...model.agents.values()], [...model.edges.values()]));
      this.#fillList();
    }
    this.#graph.draw(model.changed);
    for (const id of model.changed) {
      const row = this.#rows.get(id);
      if (row !== undefined) fillRow(row, model.agents.get(id));
    }
    if (model.changed.size > 0 && model.agents.size > ROWS_MAX) this.#choose();
    model.changed.clear();
    setText(byId("agents-summary"), summary(model.tally));
  }

  #show(view) {
    byId("graph-tools").hidden = view !== "graph";
    for (const one of ["graph", "list"]) {
      byId(one).hidden = one !== view;
      setAttribute(byId(`show-${one}`), "aria-pressed", one === view);
    }
  }

  #fillList() {
    const { agents } = this.#page.model;
    const shown = mostInteresting([...agents.values()]);
    this.#rows = new Map();
    const body = element("tbody");
    for (const agent of shown) {
      const row = this.#row(agent);
      this.#rows.set(agent.id, row);
      fillRow(row, agent);
      body.append(row.line);
    }
    const names = ["Agent", "State", "Messages", "Now"];
    const head = element(
      "thead",
      {},
      element("tr", {}, ...names.map((text) => element("th", { scope: "col", text }))),
    );
    const left = agents.size - shown.length;
    const more = `${count(left)} more are not listed: they wait, or are done.`;
    fill(
      byId("list"),
      element("table", {}, head, body),
      left === 0 ? null : element("p", { class: "muted", text: more }),
    );
  }

  #row({ id }) {
    const row = {
      line: element("tr"),
      name: element("button", { type: "button", class: "link", click: () => this.#showAgent(id) }),
      kind: element("span", { class: "muted kind" }),
      state: element("span", { class: "pill" }),
      messages: element("td", { class: "number", "data-name": "Messages" }),
      now: element("td", { class: "now", dir: "auto" }),
    };
    setAttribute(row.name, "title", "Show its events");
    row.line.append(
      element("th", { scope: "row" }, row.name, row.kind),
      element("td", {}, row.state),
      row.messages,
      row.now,
    );
    return row;
  }
}

function fillRow(row, agent) {
  const state = shownState(agent);
  setText(row.name, ends(clean(agent.id), 80));
  setText(row.kind, start(clean([agent.type, agent.role].filter((text) => text !== "").join(" · ")), 160));
  setText(row.state, stateNames.get(state) ?? state);
  setAttribute(row.state, "data-state", state);
  setText(row.messages, count(agent.messages));
  setText(row.now, start(clean(nowText(agent)), 240));
}

/** In the order of the graph; of more than a reader looks at, those where something happens. */
function mostInteresting(agents) {
  if (agents.length <= ROWS_MAX) return agents;
  const rank = new Map([...stateNames.keys()].map((state, place) => [state, place]));
  return agents
    .map((agent, place) => ({ agent, place, rank: rank.get(shownState(agent)) }))
    .sort((a, b) => a.rank - b.rank || a.place - b.place)
    .slice(0, ROWS_MAX)
    .sort((a, b) => a.place - b.place)
    .map(({ agent }) => agent);
}

function summary(tally) {
  const parts = [...stateNames]
    .map(([state, name]) => ({ name, number: tally.get(state) ?? 0 }))
    .filter(({ number }) => number > 0);
  if (parts.length === 0) return "";
  if (parts.length === 1) return `${plural(parts[0].number, "agent")}: ${parts[0].name.toLowerCase()}`;
  return parts.map(({ name, number }) => `${count(number)} ${name.toLowerCase()}`).join(" · ");
}
