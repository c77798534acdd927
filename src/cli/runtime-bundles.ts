// The bundles that the runtime has by path: `troupe bundles --runtime` and `troupe reload`.

import { type Call, exitCodes } from "./command.ts";
import { clientFor } from "./connection.ts";
import { cleanText, table } from "./text.ts";

const FINGERPRINT_CHARS = 12;

/** `troupe bundles --runtime`. */
export async function runtimeBundles(call: Call): Promise<number> {
  const found = await clientFor(call).bundles();
  if (call.flag("json")) {
    call.terminal.print(JSON.stringify(found));
    return exitCodes.success;
  }
  if (found.length === 0) call.terminal.note("No bundles. `troupe run <folder>` registers one.");
  const rows = found.map((bundle) => [
    cleanText(bundle.bundle_id),
    cleanText(bundle.graph_id),
    cleanText(bundle.fingerprint).slice(0, FINGERPRINT_CHARS),
  ]);
  if (rows.length > 0)
    for (const line of table(["BUNDLE", "GRAPH", "FINGERPRINT"], rows)) call.terminal.print(line);
  return exitCodes.success;
}

export async function reload(call: Call): Promise<number> {
  const answer = await clientFor(call).reloadBundle(call.words[0] ?? "");
  call.terminal.print(call.flag("json") ? JSON.stringify(answer) : cleanText(answer.message ?? answer));
  return exitCodes.success;
}
