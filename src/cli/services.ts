// `troupe services`: the long-lived processes that open runs offer, such as their dashboards.

import type { Service } from "../../sdk/src/index.ts";
import { checkedId } from "./ids.ts";
import { printList } from "./lists.ts";
import type { ServerCall } from "./session.ts";
import type { Paint } from "./terminal.ts";
import { cleanText } from "./text.ts";

export async function services(call: ServerCall): Promise<number> {
  const run = call.text("run");
  const query = {
    name: call.words[0],
    tag: call.text("tag") ?? undefined,
    run_id: run === null ? undefined : checkedId(run, "run"),
  };
  const what = query.name === undefined ? "service" : `service of the name ${cleanText(query.name)}`;
  return printList<Service>(
    call,
    {
      items: (pageSize) => call.client.services.list({ ...query, page_size: pageSize }),
      head: ["SERVICE", "STATUS", "REACHED AT", "RUN", "TAGS", "WHY"],
      row: (service) => serviceRow(service, call.terminal.paint),
      nothing: `No ${what}. Runs offer them while they are open, such as their dashboards.`,
    },
    null,
  );
}

function serviceRow(service: Service, paint: Paint): readonly string[] {
  const { address, port, public_url: publicUrl, checks } = service;
  const failing = checks.find(({ status }) => status !== "passing");
  return [
    cleanText(service.name),
    service.status === "passing" ? service.status : paint("red", cleanText(service.status)),
    cleanText(publicUrl ?? (port === null ? address : `${address}:${port}`)),
    cleanText(service.run_id ?? "-"),
    cleanText(service.tags.join(",")),
    cleanText(failing === undefined ? "" : `${failing.name}: ${failing.output}`),
  ];
}
