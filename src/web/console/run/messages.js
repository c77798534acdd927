// @ts-check
// Who sent what to whom, oldest first.

import { html } from "../html.js";
import { More, useList } from "../parts/list.js";
import { Empty, Problem, shown } from "../parts/pieces.js";
import { Time } from "../parts/time.js";
import { to } from "../router.js";

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const { id, model } = source;
  // Each message was counted with the agent that received it.
  const count = [...model.agents.values()].reduce((sum, agent) => sum + agent.messages, 0);
  const list = useList(
    `/runs/${encodeURIComponent(id)}/events`,
    { type: "agent_message_received" },
    [],
    count,
  );
  return html`<section class="card rows" aria-labelledby="messages-heading"><h2 id="messages-heading">Messages</h2>
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>No agent has received a message.</${Empty}>`}
    ${
      list.items !== null &&
      list.items.length > 0 &&
      html`<table>
        <thead><tr><th scope="col">Type</th><th scope="col">From</th><th scope="col">To</th><th scope="col">Received</th></tr></thead>
        <tbody>${list.items.map(
          ({ id: number, agent_id: agent, payload, timestamp }) => html`<tr key=${number}>
            <th scope="row" dir="auto">${shown(payload?.type, 80) || "A message"}</th>
            <td data-name="From" dir="auto">${shown(payload?.from, 80) || "the start of the run"}</td>
            <td data-name="To"><a href=${to(["runs", id, "events"], { agent })} dir="auto">${shown(agent, 80)}</a></td>
            <td class="tight" data-name="Received"><${Time} at=${timestamp} /></td></tr>`,
        )}</tbody></table>`
    }
    <${More} list=${list} />
  </section>`;
}
