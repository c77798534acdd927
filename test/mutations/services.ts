// Faults of services that several nodes offer, and of dashboards on the node that runs them.

import type { Mutation } from "./mutation.ts";

const services = ["src/services/services.test.ts"];
const views = ["src/services/service-view.test.ts"];
const remote = ["src/cluster/remote-services.test.ts"];
const wire = ["src/cluster/wire/services.test.ts"];
const placing = ["src/engine/placing.test.ts"];
const dashboards = ["src/web/dashboards-here.test.ts"];

export const serviceMutations: readonly Mutation[] = [
  {
    fault: "a service on the loopback of another machine is resolved as if it were here",
    file: "src/services/services.ts",
    search: "const fromElsewhere = node === null && !other.isSameMachine;",
    replacement: "const fromElsewhere = false;",
    tests: services,
  },
  {
    fault: "a page that browsers reach is not found on another machine when its server listens on loopback",
    file: "src/services/registry.ts",
    search: "spec.publicUrl !== null && !isLoopback(hostOfUrl(spec.publicUrl))",
    replacement: "spec.publicUrl === null && !isLoopback(spec.name)",
    tests: services,
  },
  {
    fault: "a page that only its own machine's browsers reach is found on another one",
    file: "src/services/registry.ts",
    search: "spec.publicUrl !== null && !isLoopback(hostOfUrl(spec.publicUrl))",
    replacement: "spec.publicUrl !== null",
    tests: services,
  },
  {
    fault: "a service of a node that does not answer is said not to be there",
    file: "src/services/services.ts",
    search: "if (silent.length > 0) {",
    replacement: "if (silent.length < 0) {",
    tests: services,
  },
  {
    fault: "the oldest passing service is resolved",
    file: "src/services/services.ts",
    search: "passing.toSorted((a, b) => b.registeredAtMs - a.registeredAtMs)[0]",
    replacement: "passing.toSorted((a, b) => a.registeredAtMs - b.registeredAtMs)[0]",
    tests: services,
  },
  {
    fault: "a service that two nodes have is listed as the older one has it",
    file: "src/services/services.ts",
    search: "known.registeredAtMs < service.registeredAtMs",
    replacement: "known.registeredAtMs > service.registeredAtMs",
    tests: services,
  },
  {
    fault: "a page of several nodes has what is behind its end",
    file: "src/services/services.ts",
    search: "inOrder(found).slice(0, page.limit)",
    replacement: "inOrder(found)",
    tests: services,
  },
  {
    fault: "a page does not say whose services it lacks",
    file: "src/services/services.ts",
    search: ".filter(({ listed }) => listed === null)",
    replacement: ".filter(() => false)",
    tests: services,
  },
  {
    fault: "each launch that waits for a service asks all nodes",
    file: "src/services/services.ts",
    search: "if (known !== undefined && atMs - known.atMs < WAITED_FOR_MS) return known.unmet;",
    replacement: "",
    tests: services,
  },
  {
    fault: "those who wait for a service never learn that it is there",
    file: "src/services/services.ts",
    search: "atMs - known.atMs < WAITED_FOR_MS",
    replacement: "atMs - known.atMs >= 0",
    tests: services,
  },
  {
    fault: "a node is not found by its id",
    file: "src/services/services.ts",
    search: "node === null || node === one.name || node === one.nodeId",
    replacement: "node === null || node === one.name",
    tests: services,
  },
  {
    fault: "callers are given the address that stands for all of a machine's",
    file: "src/services/service-view.ts",
    search: "return isEvery(declared) ? (nodeHost ?? checkedAt(declared)) : declared;",
    replacement: "return declared;",
    tests: views,
  },
  {
    fault: "what listens on all addresses of the machine is checked at none",
    file: "src/services/service-view.ts",
    search: "if (!isEvery(declared)) return declared;",
    replacement: "return declared;",
    tests: views,
  },
  {
    fault: "a node that does not answer fails the list of all nodes",
    file: "src/cluster/remote-services.ts",
    search: "if (!(error instanceof PeerUnreachable || error instanceof WireProblem)) throw error;",
    replacement: "throw error;",
    tests: remote,
  },
  {
    fault: "a node asks itself as if it were another one",
    file: "src/cluster/remote-services.ts",
    search: ".filter((node) => node.owner !== owner)",
    replacement: "",
    tests: remote,
  },
  {
    fault: "another node lists from the beginning again",
    file: "src/cluster/wire/services.ts",
    search: "after: after === null ? undefined : create(ServicePlaceSchema, after),",
    replacement: "after: undefined,",
    tests: wire,
  },
  {
    fault: "a command that may offer a service of its job runs on another node",
    file: "src/engine/job/tasks.ts",
    search: "services.length > 0 || (config.longLived && job.graph.services.length > 0)",
    replacement: "services.length > 0",
    tests: placing,
  },
  {
    fault: "a dashboard of another node is shown without the key that it asks for",
    file: "src/cluster/wire/services.ts",
    search: "    asksForKey,\n    jobId,",
    replacement: "    asksForKey: false,\n    jobId,",
    tests: wire,
  },
  {
    fault: "every service is shown with its run's key",
    file: "src/web/dashboards-here.ts",
    search: "areKeyed && agentId === WEB_UI_NODE",
    replacement: "areKeyed",
    tests: dashboards,
  },
  {
    fault: "who lists services is not told of the nodes that do not answer",
    file: "src/cli/services.ts",
    search: "silent.add(cleanText(node))",
    replacement: "cleanText(node)",
    tests: ["src/cli/services.test.ts"],
  },
  {
    fault: "paths of another machine are shown as if they were here",
    file: "src/cluster/node-names.ts",
    search: "owner === null || nodeOf(owner) === own.nodeId",
    replacement: "owner !== null",
    tests: ["src/http/resources/submitted-job-view.test.ts"],
  },
  {
    fault: "a run is given a port that a run on another node has, while others are free",
    file: "src/web/ports.ts",
    search: "Promise.all([records.portsInUse(), records.portsInUseAnywhere()])",
    replacement: "Promise.all([records.portsInUse(), records.portsInUse()])",
    tests: ["src/web/ports.test.ts"],
  },
  {
    fault: "who asks for checks gets what is known already",
    file: "src/services/check-rounds.ts",
    search: "    await Promise.all(results);",
    replacement: "",
    tests: ["src/services/registry.test.ts"],
  },
  {
    fault: "the runtime protocol is served to pages of other sites",
    file: "src/grpc/server.ts",
    search: "if (problem !== null) return { status: 403, message: problem.message };",
    replacement: "",
    tests: ["test/gateway/runtime-protocol.test.ts"],
  },
  {
    fault: "the runtime protocol forgets the caller's version of a schedule",
    file: "src/grpc/calls.ts",
    search: 'headers["if-match"] = etag;',
    replacement: "{}",
    tests: ["test/gateway/runtime-protocol.test.ts"],
  },
  {
    fault: "a dashboard is reached where its run was launched, on whatever node it is",
    file: "src/web/dashboards-here.ts",
    search: "return { ...spec, address: place.host, publicUrl: publicUrlOf(place, spec.port) };",
    replacement: "return spec;",
    tests: dashboards,
  },
  {
    fault: "a dashboard is bound where its run was launched, on whatever node it is",
    file: "src/web/dashboards-here.ts",
    search: "return { ...declared, ...placeVariables(place, Number(port)) };",
    replacement: "return declared;",
    tests: dashboards,
  },
];
