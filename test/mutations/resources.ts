// Faults of resources: what the machine has, and the limits that operators set.

import { type Mutation, mutationsOf } from "./mutation.ts";

const limits = mutationsOf("src/resources/limits.ts", ["src/resources/limits.test.ts"]);
const resources = mutationsOf("src/resources/resources.ts", ["src/resources/resources.test.ts"]);

const lines = mutationsOf("src/execution/resource-lines.ts", ["src/execution/resource-slots.test.ts"]);
const pools = mutationsOf("src/execution/pools.ts", ["src/execution/resource-slots.test.ts"]);

const names = mutationsOf("src/execution/held-names.ts", ["src/execution/resource-slots.test.ts"]);

const volumes = mutationsOf("src/execution/volumes.ts", ["src/execution/runner/volumes.test.ts"]);

const groups = mutationsOf("src/execution/process/control-groups.ts", [
  "src/execution/process/control-groups.test.ts",
]);

const watch = mutationsOf("src/execution/process/memory-watch.ts", [
  "src/execution/process/memory-watch.test.ts",
]);

export const resourceMutations: readonly Mutation[] = [
  pools(
    "a device that is not there is waited for",
    "return device === undefined ? null :",
    "return true ? null :",
  ),
  {
    fault: "a command is placed where its device is not",
    file: "src/cluster/tasks/slots.ts",
    search: "(isOwn ? own.hasDevices(demand) : hasDevices(demand, (path) => devices.includes(path)))",
    replacement: "true",
    tests: ["src/cluster/tasks/slots.test.ts"],
  },
  {
    fault: "a job whose device no machine has is accepted",
    file: "src/resources/capacity.ts",
    search: " || lackingDevices(resources, asked).length > 0;",
    replacement: ";",
    tests: ["test/gateway/resource.test.ts"],
  },
  {
    fault: "what is no device is taken for one",
    file: "src/execution/devices.ts",
    search: "found !== undefined && (found.isCharacterDevice() || found.isBlockDevice())",
    replacement: "found !== undefined",
    tests: ["src/execution/devices.test.ts"],
  },
  volumes(
    "a volume may hold more than its size",
    "if (bytesMax !== null && !isReadOnly) await requireRoom",
    "if (false) await requireRoom",
  ),
  volumes(
    "a volume's links are measured as what they lead to",
    'import { lstat, opendir } from "node:fs/promises";',
    'import { stat as lstat, opendir } from "node:fs/promises";',
  ),
  {
    fault: "a volume stays in the working folder when its command has ended",
    file: "src/execution/runner/volume-links.ts",
    search: "if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) unlinkSync(path);",
    replacement: "",
    tests: ["src/execution/runner/volumes.test.ts"],
  },
  {
    fault: "a volume takes the place of a folder of the command's own",
    file: "src/execution/runner/volume-links.ts",
    search: "else if (found !== undefined)",
    replacement: "else if (false)",
    tests: ["src/execution/runner/volumes.test.ts"],
  },
  {
    fault: "a volume is removed while a command has it",
    file: "src/execution/pools.ts",
    search: "if (!this.#machine.free().names.isFree(claim)) return null;",
    replacement: "",
    tests: ["test/gateway/resource.test.ts"],
  },
  {
    fault: "a command is placed where its volume is not",
    file: "src/cluster/tasks/slots.ts",
    search: "if (volumeNode !== null && volumeNode !== nodeId) return false;",
    replacement: "",
    tests: ["src/cluster/tasks/slots.test.ts"],
  },
  {
    fault: "a new volume is made on two nodes at once",
    file: "src/cluster/tasks/slots.ts",
    search: "if (nodeId !== null) this.#volumes.note(needs, nodeId);",
    replacement: "",
    tests: ["src/cluster/tasks/slots.test.ts"],
  },
  {
    fault: "a second node takes a volume that another one has",
    file: "src/store/postgres/volumes.ts",
    search: "WHERE volumes.node_id = excluded.node_id\n",
    replacement: "WHERE true\n",
    tests: ["src/store/postgres/volumes.test.ts"],
  },
  names(
    "a port that another command has is given to a second one",
    "return held === undefined ||",
    "return true ||",
  ),
  names(
    "what one command wants alone is given to it while others share it",
    "(claim.isShared && held.claim.isShared)",
    "held.claim.isShared",
  ),
  names("what several share is free once the first of them has ended", "--held.holders === 0", "true"),
  names(
    "who waits for a name alone is overtaken for ever by those who share it",
    "(other.isShared && claim.isShared)",
    "true",
  ),
  names("ports are chosen although all are held", "if (isOfRange(claim)) this.#freePorts--;", ""),
  lines(
    "amounts are set aside for who waits for a name that somebody has for days",
    "lacksNames(demand, free) ? 0 : 1",
    "1",
  ),
  {
    fault: "a port is chosen at which another program listens",
    file: "src/execution/free-ports.ts",
    search: "const isFree = server.listening;",
    replacement: "const isFree = true;",
    tests: ["src/execution/free-ports.test.ts"],
  },
  {
    fault: "a request for a port goes to a program that would give it none",
    file: "src/cluster/tasks/slots.ts",
    search: "if (!isOwn && demand.named !== undefined && node?.machine?.givesNames !== true) return false;",
    replacement: "",
    tests: ["src/cluster/tasks/slots.test.ts"],
  },
  limits(
    "an amount that is set leaves the percentage of the same in force",
    "return { ...before, ...takenBack(given),",
    "return { ...before,",
  ),
  limits(
    "an amount beyond what the machine has is taken for what it has",
    "Math.min(Math.floor(share(total, percent)), amount ?? total)",
    "(amount ?? Math.floor(share(total, percent)))",
  ),
  resources("a reading of old limits undoes a change", "stored.revision < this.#applied.revision ||", ""),
  resources(
    "limits are read once, and then no more",
    "if (!this.#isStopped) this.#followEvery(everyMs);",
    "",
  ),
  resources(
    "the same limits are a new revision",
    "isDeepStrictEqual(limits, before.limits) ? before :",
    "limits === before.limits ? before :",
  ),
  {
    fault: "limits that were set are gone after a restart",
    file: "src/app/app.ts",
    search: "await core.resources.start();",
    replacement: "",
    tests: ["test/gateway/resource.test.ts"],
  },
  {
    fault: "a stale If-Match changes limits",
    file: "src/http/resources/resource.ts",
    search: 'throw stale(tagOf(stored, ""));',
    replacement: "",
    tests: ["test/gateway/resource.test.ts"],
  },
  {
    fault: "an nvidia-smi that fails names GPUs",
    file: "src/execution/machine-resources.ts",
    search: 'error === null ? stdout : ""',
    replacement: "stdout",
    tests: ["src/execution/machine-resources.test.ts"],
  },
  {
    fault: "what the limits leave is not looked at, but what the machine has",
    file: "src/resources/capacity.ts",
    search: "isThere(asked, amountsOf(resources.effective))",
    replacement: "isThere(asked, amountsOf(resources.totals))",
    tests: ["test/gateway/resource.test.ts"],
  },
  {
    fault: "two machines that together have it are taken for one",
    file: "src/resources/capacity.ts",
    search: "machines.every((machine) => lacks(machine, asked))",
    replacement: "machines.length === 1 && machines.every((machine) => lacks(machine, asked))",
    tests: ["src/resources/capacity.test.ts"],
  },
  {
    fault: "a manifest that asks for resources is looked at once, and then accepted whatever the limits are",
    file: "src/launch/submissions.ts",
    search: " || dependsOnMachines(graph)",
    replacement: "",
    tests: ["src/launch/submissions.test.ts"],
  },
  {
    fault: "a run is accepted that no machine could hold",
    file: "src/launch/acceptance.ts",
    search: "await this.#parts.capacity.refuseUnsatisfiable(graph);",
    replacement: "",
    tests: ["test/gateway/resource.test.ts"],
  },
  {
    fault: "parts of a core are rounded down",
    file: "src/engine/manifest/resources.ts",
    search: "Math.ceil(",
    replacement: "Math.floor(",
    tests: ["src/engine/manifest.test.ts"],
  },
  lines(
    "a large request is overtaken for ever",
    "if (overtaken >= OVERTAKEN_MAX) spare = freeBehind(spare, demand, lacksNames(demand, free) ? 0 : 1);",
    "",
  ),
  lines(
    "nobody overtakes a request that lacks something",
    "if (overtaken >= OVERTAKEN_MAX) spare",
    "if (overtaken >= 0) spare",
  ),
  lines(
    "a request is blocked by others that take nothing it lacks",
    ".some((kind) => granted[kind] > 0)",
    ".length >= 0",
  ),
  lines("the next one of a line is taken for overtaken as often as the last one", "line.overtaken = 0;", ""),
  pools(
    "what a command had of the machine is never given back",
    "if (!this.#machine.isEmpty) this.#machine.release(key);",
    ";",
  ),
  pools(
    "a pool does not wait for a request that has its resources",
    "let next: Head<Ticket> | null = this.#readyIn(pool);",
    "let next: Head<Ticket> | null = plainWaiting(pool) > 0 ? null : this.#readyIn(pool);",
  ),
  pools(
    "limits that allow more are noticed by the next command that ends",
    "this.#machine.limitTo(effective);\n    this.#serveAll();",
    "this.#machine.limitTo(effective);",
  ),
  pools(
    "a command waits for what the machine never has",
    "if (missing.length > 0)",
    "if (missing.length > 9)",
  ),
  {
    fault: "two commands have one GPU",
    file: "src/execution/allotment.ts",
    search: "for (const index of gpus) this.#gpusInUse.add(index);",
    replacement: "",
    tests: ["test/simulation/simulation.test.ts", "src/execution/resource-slots.test.ts"],
  },
  {
    fault: "more memory and cores are given away than there are",
    file: "src/execution/allotment.ts",
    search: "this.#add(demand, 1);",
    replacement: "",
    tests: ["test/simulation/simulation.test.ts"],
  },
  {
    fault: "a queued run does not say for what it waits",
    file: "src/engine/job/tasks.ts",
    search: "task.waitsFor = hint ?? null;",
    replacement: "",
    tests: ["test/gateway/reservations.test.ts"],
  },
  {
    fault: "a request for resources is sent to nodes that could never hold it",
    file: "src/cluster/tasks/slots.ts",
    search: "return allowed !== undefined && isThere(demand, allowed);",
    replacement: "return true;",
    tests: ["src/cluster/tasks/slots.test.ts"],
  },
  {
    fault: "limits that are lowered for a while fail what waits for another node's resources",
    file: "src/cluster/tasks/known-nodes.ts",
    search: "{ totals, devices = [] }: KnownMachine, demand",
    replacement: "{ allowed: totals, devices = [] }: KnownMachine, demand",
    tests: ["src/cluster/tasks/slots.test.ts"],
  },
  {
    fault: "a request that waits for resources is not taken to where they are free",
    file: "src/cluster/tasks/slots.ts",
    search: "for (const pool of this.#movable.keys()) this.#fill(this.#parts.nodeId, pool);",
    replacement: "",
    tests: ["src/cluster/tasks/slots.test.ts"],
  },
  {
    fault: "a host grants slots without the resources that were asked for with them",
    file: "src/cluster/tasks/host.ts",
    search: "{ ...noNeeds, demand }",
    replacement: "noNeeds",
    tests: ["src/cluster/tasks/cluster-tasks.test.ts"],
  },
  {
    fault: "a request whose resources a host cannot read gets no answer, or slots without them",
    file: "src/cluster/tasks/host.ts",
    search: " || (demand === null && message.demand !== undefined)",
    replacement: "",
    tests: ["src/cluster/tasks/host.test.ts"],
  },
  groups(
    "a command has swap beside its memory",
    '{ file: "memory.swap.max", value: "0", isOptional: true },',
    "",
  ),
  groups(
    "a program takes a group for its own that others are in",
    "if (pids.some((one) => one !== String(pid) && one !== String(parentPid))) return;",
    "",
  ),
  groups(
    "a killed predecessor that had the same id keeps this program from making groups",
    "return maker === pid || (maker > 0 && !isAlive(maker));",
    "return maker > 0 && !isAlive(maker);",
  ),
  groups(
    "each restart under one supervisor makes its groups further below",
    "basename(folder) === MAIN ? dirname(folder) : folder;",
    "folder;",
  ),
  groups(
    "a group that has processes when it is to be removed stays for ever",
    "this.#left.push(...left);",
    "",
  ),
  groups(
    "groups are used that do not count what was ended",
    "if (await this.#works(version)) return version;",
    "return version;",
  ),
  {
    fault: "a command that was ended for want of memory is told to have been ended by a signal",
    file: "src/execution/runner/host-local.ts",
    search: "memoryExceeded: isMemoryShort",
    replacement: "memoryExceeded: false",
    tests: ["src/execution/runner/own-resources.test.ts"],
  },
  {
    fault: "a command with resources of its own joins no group",
    file: "src/execution/runner/host-local.ts",
    search: "...(group !== null && joining(group.joinPaths, started)),",
    replacement: "",
    tests: ["src/execution/runner/own-resources.test.ts"],
  },
  {
    fault: "a missing program with resources of its own is a shell's exit code",
    file: "src/execution/runner/host-local.ts",
    search: "if (group !== null && sandbox === null)",
    replacement: "if (group === undefined)",
    tests: ["src/execution/runner/own-resources.test.ts"],
  },
  {
    fault: "a volume of a node that does not run is asked for there",
    file: "src/cluster/remote-volumes.ts",
    search: "!isLiving(having) || ",
    replacement: "",
    tests: ["src/cluster/remote-volumes.test.ts"],
  },
  {
    fault: "a node removes what another one of its address was to remove",
    file: "src/cluster/node-service.ts",
    search: "if (nodeId !== parts.nodeId) throw",
    replacement: "if (false) throw",
    tests: ["src/cluster/remote-volumes.test.ts", "src/cluster/remote-reconcile.test.ts"],
  },
  watch("memory that processes share counts for each of them", "shareOf(one) ?? all", "all"),
  watch(
    "a process that is being started counts with its parent's memory",
    "isOwn ? bytesIn",
    "true ? bytesIn",
  ),
  watch("what has left a command's tree is not watched", "heldBelow([pid, ...marked])", "heldBelow([pid])"),
  watch("what a command has started is not watched", "parents.set(child, memory)", "parents.has(child)"),
  watch(
    "a burst that nobody has seen is a failure of the program",
    "/ 2 ? rssBytesMax : null",
    "/ 2 ? null : null",
  ),
  {
    fault: "processes that are watched have no limit of their own",
    file: "src/execution/process/native-spawn.ts",
    search: "if (soft <= BigInt(bytes)) return;",
    replacement: "if (soft > 0n) return;",
    tests: ["src/execution/process/memory-watch.test.ts"],
  },
  {
    fault: "a run whose commands were kept within nothing says the opposite",
    file: "src/engine/resources.ts",
    search: "enforcements.indexOf(one) < enforcements.indexOf(other) ? one : other",
    replacement: "enforcements.indexOf(one) > enforcements.indexOf(other) ? one : other",
    tests: ["src/engine/resources.test.ts"],
  },
];
