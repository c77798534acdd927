// @ts-check
// The start of the console: who looks, and then the view of the address.

import { App } from "./app.js";
import { html, render } from "./html.js";
import { listen } from "./router.js";
import { startSession } from "./session.js";
import { applyTheme } from "./theme.js";

applyTheme();
listen();
await startSession().catch(() => {});
const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.replaceChildren();
render(html`<${App} />`, root);
