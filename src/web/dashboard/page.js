// The dashboard of one run: reads what to show from config.json beside this script, follows the run's events, and lets
// each part of the page show its part of the model.
//
// - The same page is served by a run's own dashboard and by the gateway; only config.json differs.
// - Events change the model at once, and the page before the next picture: a burst costs one picture, not thousands.
// - When the server goes away, as it does when a run ends, the browser continues to the run's page at the gateway; where
//   it cannot, what was shown stays.

import { AgentsView } from "./agents-view.js";
import { atMost, byId, element, onceAFrame, setText } from "./dom.js";
import { FeedView } from "./feed-view.js";
import { HeaderView } from "./header-view.js";
import { apply, createModel } from "./model.js";
import { OutputsView } from "./outputs-view.js";
import { terminalTypes } from "./run-stream.mjs";
import { follow } from "./stream.js";
import { TroubleView } from "./trouble-view.js";

const CONFIG_URL = new URL("config.json", import.meta.url);
/** However fast events come, what they announce is asked for no oftener than this. */
const GATHER_MS = 400;

/** Whether somebody has used this page, and may be reading it. */
let isTouched = false;
for (const act of ["pointerdown", "keydown", "wheel"]) {
  addEventListener(act, () => (isTouched = true), { once: true, passive: true });
}

/** Reads JSON from beside config.json; null when it cannot be had now. */
async function read(url) {
  try {
    const answer = await fetch(new URL(url, CONFIG_URL), { cache: "no-store" });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

async function start() {
  const config = await configuration();
  const model = createModel(config.graph);
  const page = { config, model, run: null, connection: "connecting" };
  const header = new HeaderView(page);
  const trouble = new TroubleView(page);
  const outputs = new OutputsView(page, CONFIG_URL);
  const feed = new FeedView(page);
  const agents = new AgentsView(page, (id) => feed.showAgent(id));
  const draw = onceAFrame(() => {
    header.draw();
    trouble.draw();
    outputs.draw();
    agents.draw();
    feed.draw();
  });

  const takeRun = (run) => {
    if (run?.run_id === undefined) return;
    page.run = run;
    outputs.showResult(run.result ?? null);
    draw();
  };
  const askRun = atMost(GATHER_MS, async () => {
    if (!page.isFinal) takeRun(await read(config.run));
  });
  const askOutputs = atMost(GATHER_MS, async () => {
    if (!page.isFinal) outputs.show(await read(config.outputs));
  });
  askRun();
  askOutputs();
  draw();

  void follow({
    url: new URL(config.events, CONFIG_URL),
    isSameRun: async () => {
      const now = await read(CONFIG_URL);
      return now === null || now.run_id === config.run_id;
    },
    onEvents: (events) => {
      for (const event of events) {
        if (!apply(model, event)) continue;
        feed.add(event);
        if (event.type.startsWith("job_") || event.type.startsWith("human_")) askRun();
        if (event.type === "artifact_written" || terminalTypes.has(event.type)) askOutputs();
      }
      draw();
    },
    onNotice: ({ event, upstream, run, outputs: list }) => {
      if (event === "connection") page.connection = upstream === "live" ? "live" : "reconnecting";
      if (event === "final") {
        takeRun(run);
        outputs.show(list);
        if (config.ends_with_run) {
          page.isFinal = true;
          outputs.sourceGone();
          if (run !== null) void goToGateway(config.gateway_page);
        }
      }
      draw();
    },
    onConnection: (connection) => {
      page.connection = connection;
      if (connection === "ended") {
        askRun();
        askOutputs();
      }
      draw();
    },
  });
  setInterval(() => header.tick(), 1_000);
}

/**
 * This page's server ends with the run; the gateway's page of the run can be loaded again, and has all files. A reader who has
 * touched this page may be reading, and gets a link instead.
 */
async function goToGateway(page) {
  if (!page) return;
  try {
    await fetch(new URL("/api/v1/health", page), { mode: "no-cors", cache: "no-store" });
  } catch {
    // Such as through a tunnel to this port alone: what is shown stays.
    return;
  }
  if (!isTouched) {
    location.replace(page);
    return;
  }
  const link = element("a", { href: page, text: "Open the run's page at the gateway" });
  byId("notice").replaceChildren(
    "The run has ended, and this address ends with it. ",
    link,
    " before you reload.",
  );
  byId("notice").hidden = false;
}

/** The first answer decides what this page is; without one there is nothing to show. */
async function configuration() {
  for (let tries = 0; ; tries++) {
    const config = await read(CONFIG_URL);
    if (config !== null) return config;
    const notice = byId("notice");
    notice.hidden = false;
    setText(notice, "This run cannot be read at the moment. The page tries again by itself.");
    await new Promise((resolve) => setTimeout(resolve, Math.min(5_000, 500 * 2 ** tries)));
    notice.hidden = true;
  }
}

void start();
