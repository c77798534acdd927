// Where the boxes of a graph are drawn: in layers from left to right or from top to bottom, as far from the start as their
// longest way. Pure.
//
// - Time and space are linear in nodes and edges, but for sorting.
// - The same graph gives the same picture, and nothing in it depends on how far the run is: boxes never move.
// - Large graphs stay readable: nodes of one kind with neighbours of the same kinds share a box; if that is not
//   enough, all of one kind in one layer do; and if that is not, several layers become one. There are never more than
//   BOXES_MAX boxes.

const GROUPED_FROM = 40;
const BOXES_MAX = 120;
const SWEEPS = 4;
const LIKENESS_STEPS = 4;

export const box = { width: 196, height: 56, gapX: 72, gapY: 18, margin: 16 };

/**
 * @param nodes [{id, type}] in the order of the graph
 * @param edges [{from, to}] between them
 * @param isDown from top to bottom
 * @returns {boxes: [{members, x, y}], edges: [{from, to, isBack}] between boxes by index, width, height, isDown}
 */
export function layout(nodes, edges, isDown = false) {
  const graph = linked(nodes, edges);
  const layers = layersOf(graph);
  let group = (index) => index;
  if (nodes.length > GROUPED_FROM) group = byLikeness(graph, nodes, layers);
  let boxes = boxesOf(nodes, layers, group);
  if (boxes.list.length > BOXES_MAX) {
    boxes = boxesOf(nodes, layers, (index) => JSON.stringify([layers[index], nodes[index].type]));
  }
  if (boxes.list.length > BOXES_MAX) boxes = inBands(nodes, layers);
  const links = linksOf(graph, boxes);
  return placed(boxes.list, links, isDown);
}

/** Neighbours by index; an edge to itself is none. */
function linked(nodes, edges) {
  const indexOf = new Map(nodes.map(({ id }, index) => [id, index]));
  const next = nodes.map(() => []);
  const before = nodes.map(() => []);
  for (const { from, to } of edges) {
    const [a, b] = [indexOf.get(from), indexOf.get(to)];
    if (a === undefined || b === undefined || a === b) continue;
    next[a].push(b);
    before[b].push(a);
  }
  return { next, before };
}

/** The longest way to each node, without the edges that lead back into a circle. */
function layersOf({ next, before }) {
  const back = backEdges(next, before);
  const waits = before.map((list, to) => list.filter((from) => !back.has(from * next.length + to)).length);
  const layers = next.map(() => 0);
  const ready = [...waits.keys()].filter((index) => waits[index] === 0);
  for (let i = 0; i < ready.length; i++) {
    const from = ready[i];
    for (const to of next[from]) {
      if (back.has(from * next.length + to)) continue;
      layers[to] = Math.max(layers[to], layers[from] + 1);
      if (--waits[to] === 0) ready.push(to);
    }
  }
  return layers;
}

/** Edges to a node whose own way is not finished. Without recursion: a chain may be long. */
function backEdges(next, before) {
  const back = new Set();
  const UNSEEN = 0;
  const OPEN = 1;
  const CLOSED = 2;
  const seen = next.map(() => UNSEEN);
  // From where the graph begins, so that what leads back is what a reader would call so.
  const starts = [...next.keys()].sort((a, b) => Number(before[a].length > 0) - Number(before[b].length > 0));
  for (const first of starts) {
    if (seen[first] !== UNSEEN) continue;
    const way = [{ node: first, at: 0 }];
    seen[first] = OPEN;
    while (way.length > 0) {
      const top = way[way.length - 1];
      const to = next[top.node][top.at++];
      if (to === undefined) {
        seen[top.node] = CLOSED;
        way.pop();
      } else if (seen[to] === OPEN) back.add(top.node * next.length + to);
      else if (seen[to] === UNSEEN) {
        seen[to] = OPEN;
        way.push({ node: to, at: 0 });
      }
    }
  }
  return back;
}

/**
 * Nodes of one layer and kind whose neighbours are alike, and whose neighbours' neighbours are: of fifty ways side by
 * side each step is one group. What sets two nodes apart is passed on along the edges, a few steps far.
 */
function byLikeness({ next, before }, nodes, layers) {
  let group = numbered(nodes.map(({ type }, index) => `${layers[index]}|${type}`));
  for (let step = 0; step < LIKENESS_STEPS; step++) {
    const groupsOf = (list) =>
      [...new Set(list.map((index) => group[index]))].sort((a, b) => a - b).join(",");
    group = numbered(group.map((own, index) => `${own}|${groupsOf(before[index])}|${groupsOf(next[index])}`));
  }
  return (index) => group[index];
}

/** A number for each different text, so that texts made of them stay short. */
function numbered(texts) {
  const numbers = new Map();
  return texts.map((text) => {
    if (!numbers.has(text)) numbers.set(text, numbers.size);
    return numbers.get(text);
  });
}

function boxesOf(nodes, layers, group) {
  const byKey = new Map();
  const list = [];
  const of = nodes.map((node, index) => {
    const key = group(index);
    let found = byKey.get(key);
    if (found === undefined) {
      found = { index: list.length, layer: layers[index], members: [], x: 0, y: 0 };
      byKey.set(key, found);
      list.push(found);
    }
    found.members.push(node.id);
    return found.index;
  });
  return { list, of };
}

/** Neighbouring layers as one, so many of them that the boxes are few enough. */
function inBands(nodes, layers) {
  const types = new Set(nodes.map(({ type }) => type)).size;
  const hasTypes = types <= BOXES_MAX;
  const bandsMax = hasTypes ? Math.floor(BOXES_MAX / types) : BOXES_MAX;
  const layerCount = layers.reduce((most, layer) => Math.max(most, layer + 1), 0);
  const bands = layers.map((layer) => Math.floor((layer * bandsMax) / Math.max(layerCount, bandsMax)));
  return boxesOf(nodes, bands, (index) => JSON.stringify([bands[index], hasTypes && nodes[index].type]));
}

function linksOf({ next }, { list: boxes, of }) {
  const links = new Map();
  next.forEach((list, a) => {
    for (const b of list) {
      const [from, to] = [of[a], of[b]];
      const isBack = boxes[to].layer <= boxes[from].layer;
      if (from !== to) links.set(from * of.length + to, { from, to, isBack });
    }
  });
  return [...links.values()];
}

/** Each layer ordered by where its neighbours are, to and fro, and centred. */
function placed(boxes, links, isDown) {
  const layers = [];
  for (const one of boxes) {
    layers[one.layer] ??= [];
    layers[one.layer].push(one);
  }
  const neighbours = { back: boxes.map(() => []), on: boxes.map(() => []) };
  for (const { from, to, isBack } of links) {
    if (isBack) continue;
    neighbours.on[from].push(to);
    neighbours.back[to].push(from);
  }
  const place = boxes.map(() => 0);
  const settle = (layer) => {
    for (const [row, one] of layer.entries()) place[one.index] = (row + 0.5) / layer.length;
  };
  layers.forEach(settle);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isForward = sweep % 2 === 0;
    for (const layer of isForward ? layers : [...layers].reverse()) {
      const near = isForward ? neighbours.back : neighbours.on;
      const wanted = new Map(layer.map((one) => [one, mean(near[one.index], place) ?? place[one.index]]));
      layer.sort((a, b) => wanted.get(a) - wanted.get(b) || a.index - b.index);
      settle(layer);
    }
  }
  // Along is the way from layer to layer, across is within one.
  const across = isDown ? box.width + box.gapY : box.height + box.gapY;
  const along = isDown ? box.height + box.gapX : box.width + box.gapX;
  const most = layers.reduce((size, layer) => Math.max(size, layer.length), 1);
  layers.forEach((layer, depth) => {
    layer.forEach((one, row) => {
      const [far, aside] = [depth * along, ((most - layer.length) / 2 + row) * across];
      one.x = box.margin + (isDown ? aside : far);
      one.y = box.margin + (isDown ? far : aside);
    });
  });
  const length = 2 * box.margin + Math.max(1, layers.length) * along - box.gapX;
  const hasBack = links.some(({ isBack }) => isBack);
  const breadth = 2 * box.margin + most * across - box.gapY + (hasBack ? box.gapY : 0);
  return { boxes, edges: links, width: isDown ? breadth : length, height: isDown ? length : breadth, isDown };
}

function mean(indexes, place) {
  if (indexes.length === 0) return null;
  return indexes.reduce((sum, index) => sum + place[index], 0) / indexes.length;
}
