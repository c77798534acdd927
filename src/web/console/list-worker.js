// @ts-check
// One connection for the lists of all tabs: a shared worker of the console's origin. A tab says that it is there, with the headers
// of who has signed in, and that it leaves.

import { ListConnection } from "./list-connection.js";

/** @type {Set<MessagePort>} */
const tabs = new Set();
const connection = new ListConnection((message) => {
  for (const tab of tabs) tab.postMessage(message);
});

/** @type {any} */ (globalThis).onconnect = (/** @type {MessageEvent} */ { ports: [tab] }) => {
  if (tab === undefined) return;
  tab.onmessage = ({ data }) => {
    if (data.kind === "leave") {
      tabs.delete(tab);
      if (tabs.size === 0) connection.end();
      return;
    }
    const isNew = !tabs.has(tab);
    tabs.add(tab);
    connection.follow(data.headers);
    if (!isNew) return;
    tab.postMessage(connection.state);
    // What it has read before may be older than the first change that it is told. A new stream begins with a reset by itself.
    if (connection.state.state === "live") tab.postMessage({ kind: "news", isReset: true, changes: [] });
  };
};
