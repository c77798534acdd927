// `troupe services`: the long-lived processes that open runs offer, such as their dashboards.

import type { Service } from "../../sdk/src/index.ts";
import { checkedId } from "./ids.ts";
import { printList } from "./lists.ts";
import type { ServerCall } from "./session.ts";
import { cleanText } from "./text.ts";

export async function services(call: ServerCall): Promise<number> {
  const run = call.text("run");
  const query = {
    name: call.words[0],
    tag: call.text("tag") ?? undefined,
    run_id: run === null ? undefined : checkedId(run, "run"),
  };
  const what = query.name === undefined ? "service" : `service of the name ${cleanText(query.name)}`;
  return printList<Service>(call, {
    items: (pageSize) => call.client.services.list({ ...query, page_size: pageSize }),
    head: ["SERVICE", "STATUS", "REACHED AT", "RUN", "TAGS", "WHY"],
    row: serviceRow,
    style: ({ status }) => (status === "passing" ? null : "red"),
    nothing: `No ${what}. Runs offer them while they are open, such as their dashboards.`,
  });
}

function serviceRow(service: Service): readonly unknown[] {
  const { address, port, public_url: publicUrl, checks } = service;
  const failing = checks.find(({ status }) => status !== "passing");
  return [
    service.name,
    service.status,
    publicUrl ?? (port === null ? address : `${address}:${port}`),
    service.run_id ?? "-",
    service.tags.join(","),
    failing && `${failing.name}: ${failing.output}`,
  ];
}
