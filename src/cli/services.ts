// `troupe services`: the long-lived processes that open runs offer, such as their dashboards.

import type { Service, ServicePage, ServicesQuery } from "../../sdk/src/index.ts";
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
  const silent = new Set<string>();
  const what = query.name === undefined ? "service" : `service of the name ${cleanText(query.name)}`;
  const code = await printList<Service>(call, {
    async *items(pageSize) {
      for await (const page of pagesOf(call, { ...query, page_size: pageSize })) {
        for (const node of page.unreachable_nodes) silent.add(cleanText(node));
        yield* page.items;
      }
    },
    head: ["SERVICE", "STATUS", "NODE", "REACHED AT", "RUN", "TAGS", "WHY"],
    row: serviceRow,
    style: ({ status }) => (status === "passing" ? null : "red"),
    nothing: `No ${what}. Runs offer them while they are open, such as their dashboards.`,
  });
  if (silent.size > 0)
    call.terminal.note(`Without those of nodes that do not answer now: ${[...silent].join(", ")}.`);
  return code;
}

async function* pagesOf(call: ServerCall, query: ServicesQuery): AsyncGenerator<ServicePage> {
  const { services: api } = call.client;
  if (call.flag("check") !== true) {
    yield* api.list(query).pages();
    return;
  }
  for (let token: string | null | undefined; token !== null; ) {
    const page: ServicePage = await api.check({ ...query, page_token: token });
    yield page;
    token = page.next_page_token;
  }
}

function serviceRow(service: Service): readonly unknown[] {
  const { address, port, public_url: publicUrl, checks } = service;
  const failing = checks.find(({ status }) => status !== "passing");
  return [
    service.name,
    service.status,
    service.node,
    publicUrl ?? (port === null ? address : `${address}:${port}`),
    service.run_id ?? "-",
    service.tags.join(","),
    failing && `${failing.name}: ${failing.output}`,
  ];
}
