// The files of a run's dashboard, in the payload that its node uploads from: the server, the page, and the picture of the
// run's graph.

import { constants } from "node:fs";
import { copyFile, mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { WebUi } from "../blueprints/package-description.ts";
import type { JsonObject } from "../engine/json.ts";
import { madeOnce } from "../lib/async.ts";
import { graphPicture, NoRoomForWebUi, WEB_UI_NODE } from "./inject.ts";

const DASHBOARD = fileURLToPath(new URL("./dashboard/", import.meta.url));
/** What browsers and the server are given; tests and types lie beside it. */
const SHIPPED = /^[a-z-]+\.(?:mjs|js|json|css|html|svg)$/;

/** The names of the dashboard's own files. */
export const webUiFiles = madeOnce(async () =>
  (await readdir(DASHBOARD)).filter((name) => SHIPPED.test(name)),
);

/**
 * Looks for the author's own page (adapter static_html); a dashboard without one would be started again and again.
 *
 * @throws NoRoomForWebUi when the payload has no such file
 */
export async function checkPage(payload: string, { page }: WebUi): Promise<void> {
  if (page === null) return;
  const found = await stat(join(payload, page)).catch(() => null);
  if (found?.isFile()) return;
  throw new NoRoomForWebUi(
    `web_ui.output.page is ${JSON.stringify(page)}, and payloads/ has no such file. ` +
      "Put the page there, or set web_ui.enabled to false.",
  );
}

/**
 * Writes the dashboard into a run's own payload, as the folder that its node (injectWebUi) uploads.
 *
 * @param payload the run's payload folder
 * @param manifest the graph that the page draws: without the dashboard's node
 * @throws NoRoomForWebUi when the payload has a file or folder of that name already
 */
export async function writeWebUi(payload: string, manifest: JsonObject, title: string): Promise<void> {
  const folder = join(payload, WEB_UI_NODE);
  await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
    throw new NoRoomForWebUi(
      `The package has payloads/${WEB_UI_NODE}, which is the folder of the dashboard that web_ui asks for. ` +
        "Rename it, or set web_ui.enabled to false.",
    );
  });
  await Promise.all([
    ...(await webUiFiles()).map((name) =>
      copyFile(join(DASHBOARD, name), join(folder, name), constants.COPYFILE_FICLONE),
    ),
    writeFile(join(folder, "graph.json"), JSON.stringify({ title, ...graphPicture(manifest) })),
  ]);
}
