// What a run's history comes to: a fold over its events, with no clock, no document and no network.
//
// - The model depends on the events alone, in their order; an event whose id is not above the last one changes nothing.
// - One event costs the same however long the history is; only the last one looks at every agent.
// - Whatever events hold is data: names of agents are keys of maps, and values of a wrong kind count as not given.

import { isObject, levelOf, textOf } from "./event.js";
import { terminalTypes } from "./run-stream.mjs";

/**
 * @typedef {"pending" | "queued" | "running" | "retrying" | "waiting" | "ready" | "idle" | "done" | "failed" | "cancelled" | "skipped" | "not_reached"} AgentState
 */

/** What each state is called, in the order in which a reader wants to see them. */
export const stateNames = new Map([
  ["failed", "Failed"],
  ["waiting", "Waiting for a person"],
  ["running", "Running"],
  ["retrying", "Retrying"],
  ["queued", "Waiting for a slot"],
  ["ready", "Ready"],
  ["idle", "Done so far"],
  ["pending", "Not started"],
  ["done", "Done"],
  ["cancelled", "Cancelled"],
  ["skipped", "Not needed"],
  ["not_reached", "Not reached"],
]);

/** Agents that have done what there was for them so far. */
const restingStates = new Set(["idle", "done"]);

/** Agents kept that the graph does not have; what a saved history without a graph is drawn of. */
const DISCOVERED_MAX = 2_000;
const EDGES_MAX = 10_000;
const PEOPLE_MAX = 1_000;

/** @param graph {nodes: [{node_id, agent_type, role}], edges: [{from_node, to_node}]}; null: found out from the events */
export function createModel(graph) {
  const model = {
    lastId: 0,
    /** Of the run, as its events tell it. */
    status: "pending",
    startedAt: null,
    endedAt: null,
    failure: null,
    isPartial: false,
    isDiscovered: graph === null,
    agents: new Map(),
    edges: new Map(),
    /** Grows whenever an agent or an edge is added. */
    shape: 0,
    /** What people are asked, by id. */
    requests: new Map(),
    /** How many agents of the graph are in each state. */
    tally: new Map(),
    /** Agents that have changed since the view looked; it empties this. */
    changed: new Set(),
    counts: { events: 0, warnings: 0, errors: 0, retries: 0, artifacts: 0 },
  };
  for (const { node_id, agent_type, role } of graph?.nodes ?? []) addAgent(model, node_id, agent_type, role);
  for (const { from_node, to_node } of graph?.edges ?? []) addEdge(model, from_node, to_node);
  return model;
}

function addAgent(model, id, type, role) {
  if (typeof id !== "string" || model.agents.has(id)) return null;
  const agent = {
    id,
    type: typeof type === "string" ? type : "",
    role: typeof role === "string" ? role : "",
    state: "pending",
    /** Questions of this agent that are not answered. */
    open: 0,
    attempt: null,
    messages: 0,
    retries: 0,
    deadLetters: 0,
    tokens: 0,
    percent: null,
    label: null,
    error: null,
  };
  model.agents.set(id, agent);
  model.tally.set("pending", (model.tally.get("pending") ?? 0) + 1);
  model.shape++;
  return agent;
}

function addEdge(model, from, to) {
  if (!model.agents.has(from) || !model.agents.has(to) || model.edges.size >= EDGES_MAX) return;
  const key = JSON.stringify([from, to]);
  if (model.edges.has(key)) return;
  model.edges.set(key, { from, to, messages: 0 });
  model.shape++;
}

/** How far the run is, as its agents tell. @returns whole percents, and how many of how many agents are done */
export function progressOf(model) {
  const total = model.agents.size;
  if (model.status === "completed")
    return { percent: 100, done: total - (model.tally.get("failed") ?? 0), total };
  let done = 0;
  for (const state of restingStates) done += model.tally.get(state) ?? 0;
  return { percent: total === 0 ? 0 : Math.floor((100 * done) / total), done, total };
}

/** What an agent is shown as: an open question of a running one comes first. */
export function shownState(agent) {
  return agent.open > 0 && !isFinal(agent.state) ? "waiting" : agent.state;
}

const isFinal = (state) => ["done", "failed", "cancelled", "skipped", "not_reached"].includes(state);

/** Lets an event change the model. @returns false for one that it had already */
export function apply(model, event) {
  if (!(event.id > model.lastId)) return false;
  model.lastId = event.id;
  model.counts.events++;
  const level = levelOf(event);
  if (level === 3) model.counts.warnings++;
  else if (level > 3) model.counts.errors++;
  const payload = isObject(event.payload) ? event.payload : {};
  runChanges.get(event.type)?.(model, event, payload);
  const agent = agentOf(model, event);
  if (agent !== null) {
    const before = shownState(agent);
    agentChanges.get(event.type)?.(agent, payload, event, model);
    count(model, agent, before);
    model.changed.add(agent.id);
  }
  if (terminalTypes.has(event.type)) end(model, event);
  return true;
}

/** Of a history without a graph, the agents are those that it speaks of. */
function agentOf(model, { agent_id: id, type, payload }) {
  if (typeof id !== "string") return null;
  const known = model.agents.get(id);
  if (known !== undefined) return known;
  if (!model.isDiscovered || model.agents.size >= DISCOVERED_MAX) return null;
  return addAgent(model, id, type === "agent_started" ? textOf(payload?.agent_type) : "", "");
}

function count(model, agent, before) {
  const after = shownState(agent);
  if (before === after) return;
  model.tally.set(before, (model.tally.get(before) ?? 1) - 1);
  model.tally.set(after, (model.tally.get(after) ?? 0) + 1);
}

// ------------------------------------------------------------------------------------------ of the run

const turns = (status) => (model) => {
  model.status = status;
};

const began = (model, { timestamp }) => {
  model.status = "running";
  model.startedAt ??= timestamp;
};

/** A restart lets a paused run wait on. */
const recovered = (model, event) => {
  if (model.status !== "paused") began(model, event);
};

const runChanges = new Map([
  ["job_pending", turns("pending")],
  ["job_running", began],
  ["job_resumed", began],
  ["job_recovered", recovered],
  ["job_paused", turns("paused")],
  ["sandbox_job_retry_scheduled", ({ counts }) => void counts.retries++],
  ["artifact_written", ({ counts }) => void counts.artifacts++],
  ["human_input_requested", asked],
  ["human_input_answered", answered],
  ["human_input_timed_out", answered],
]);

function asked(model, { agent_id, timestamp }, payload) {
  const id = textOf(payload.request_id);
  if (id === "" || model.requests.has(id) || model.requests.size >= PEOPLE_MAX) return;
  const allowed = Array.isArray(payload.allowed_decisions) ? payload.allowed_decisions : [];
  model.requests.set(id, {
    id,
    agentId: agent_id,
    prompt: textOf(payload.prompt),
    decisions: allowed.filter((one) => typeof one === "string" && one !== ""),
    defaultAction: textOf(payload.default_action) || null,
    expiresAt: textOf(payload.expires_at) || null,
    askedAt: timestamp,
  });
  ask(model, agent_id, 1);
}

function answered(model, { agent_id }, payload) {
  if (model.requests.delete(textOf(payload.request_id))) ask(model, agent_id, -1);
}

function ask(model, agentId, change) {
  const agent = model.agents.get(agentId);
  if (agent === undefined) return;
  const before = shownState(agent);
  agent.open = Math.max(0, agent.open + change);
  count(model, agent, before);
}

/** What was under way is over, too: with its run. */
function end(model, { type, timestamp, error, payload }) {
  model.status = type.slice("job_".length);
  model.endedAt = timestamp;
  model.failure = isObject(error) ? error : null;
  model.isPartial = payload?.partial === true;
  model.requests.clear();
  // Nothing came to them, though the run went on until nothing was left to do.
  const unbegun = Array.isArray(payload?.not_reached) ? "not_reached" : "skipped";
  const culprit = model.failure?.details?.agent_id;
  for (const agent of model.agents.values()) {
    const before = shownState(agent);
    agent.open = 0;
    agent.percent = null;
    if (agent.id === culprit) agent.state = "failed";
    else if (agent.state === "pending") agent.state = unbegun;
    else if (agent.state === "idle") agent.state = "done";
    else if (!isFinal(agent.state)) agent.state = "cancelled";
    count(model, agent, before);
    model.changed.add(agent.id);
  }
}

// --------------------------------------------------------------------------------------- of one agent

const becomes = (state) => (agent) => {
  agent.state = state;
};

const agentChanges = new Map([
  ["agent_started", started],
  ["agent_message_received", received],
  ["executor_lease_requested", becomes("queued")],
  ["sandbox_job_started", attempted],
  ["sandbox_job_completed", (agent) => rested(agent, null)],
  ["sandbox_job_failed", (agent, _payload, { error }) => rested(agent, textOf(error?.desc))],
  ["sandbox_job_retry_scheduled", retried],
  ["metric", metered],
  ["message_retried", revived],
  ["message_dead_lettered", (agent) => void agent.deadLetters++],
  ["executor_interrupted", becomes("queued")],
  ["agent_completed", becomes("done")],
  ["agent_failed", failed],
  ["progress", progressed],
]);

function started(agent, payload) {
  agent.type ||= textOf(payload.agent_type);
  if (agent.state === "pending") agent.state = "ready";
}

/** What has no attempts, such as a router, has done what there was to do as soon as it has read. */
function received(agent, payload, _event, model) {
  agent.messages++;
  if (agent.state === "ready") agent.state = "idle";
  const from = textOf(payload.from);
  if (model.isDiscovered) addEdge(model, from, agent.id);
  const edge = model.edges.get(JSON.stringify([from, agent.id]));
  if (edge !== undefined) edge.messages++;
}

function attempted(agent, payload) {
  agent.state = "running";
  agent.attempt = Number.isInteger(payload.attempt) ? payload.attempt : null;
  agent.percent = null;
  agent.label = null;
}

function retried(agent) {
  agent.state = "retrying";
  agent.retries++;
}

/** Workers may tell of tokens that they used. */
function metered(agent, { tokens }) {
  for (const kind of ["input", "output"]) {
    const used = isObject(tokens) ? tokens[kind] : 0;
    if (Number.isSafeInteger(used) && used > 0) agent.tokens += used;
  }
}

function rested(agent, error) {
  agent.state = "idle";
  agent.percent = null;
  agent.label = null;
  agent.error = error;
}

function failed(agent, _payload, { error }) {
  agent.state = "failed";
  agent.percent = null;
  agent.error = textOf(error?.desc);
}

/** Its dead letter is sent again, which gives an agent that had failed another chance. */
function revived(agent) {
  if (agent.state !== "failed") return;
  agent.state = "ready";
  agent.error = null;
}

function progressed(agent, payload) {
  const { percent, done, total } = payload;
  if (Number.isFinite(percent)) agent.percent = Math.min(100, Math.max(0, percent));
  else if (Number.isFinite(done) && total > 0)
    agent.percent = Math.min(100, Math.max(0, (100 * done) / total));
  if (typeof payload.label === "string") agent.label = payload.label;
}
