// The door between the nodes of one database: what this node answers others, and how it reaches their jobs.

import { Follower } from "../cluster/follower.ts";
import { NodeBytes } from "../cluster/node-bytes.ts";
import { nodeService } from "../cluster/node-service.ts";
import type { NodeReads } from "../cluster/nodes.ts";
import { type JobHeads, Places } from "../cluster/places.ts";
import type { Reconciler } from "../cluster/reconcile.ts";
import { RemoteControl } from "../cluster/remote-control.ts";
import { type ReconcileNode, remoteReconcile } from "../cluster/remote-reconcile.ts";
import { nodesWithServices } from "../cluster/remote-services.ts";
import { remoteVolumeRemoval } from "../cluster/remote-volumes.ts";
import type { TaskHost } from "../cluster/tasks/host.ts";
import type { WelcomesParts } from "../cluster/welcomes.ts";
import type { NodeCredentials } from "../cluster/wire/credentials.ts";
import type { Peers } from "../cluster/wire/peers.ts";
import { type NodeServer, startNodeServer } from "../cluster/wire/server.ts";
import type { Engine } from "../engine/engine.ts";
import type { JobControl } from "../engine/job-control.ts";
import type { EngineLog } from "../engine/ports.ts";
import type { RemoveVolume } from "../execution/volume-removal.ts";
import type { GatewayRecords } from "../launch/records.ts";
import { historyOfUnlaunched } from "../launch/run-ends.ts";
import { programVersion } from "../lib/version.ts";
import type { OperationRecords } from "../operations/records.ts";
import type { NoteSource } from "../runs/change-notes.ts";
import type { EventFeed } from "../runs/feed.ts";
import type { EventPage, JobRecords } from "../runs/job-records.ts";
import type { ServiceRegistry } from "../services/registry.ts";
import type { Services } from "../services/services.ts";
import type { FilesOfNodes } from "./bytes.ts";
import { systemClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { addressOf, explainAddress, StartFailed } from "./listen.ts";

const OPERATION_EVENTS_PER_READ = 500;

export interface NodeDoorParts {
  readonly engine: Engine;
  readonly feed: EventFeed;
  readonly heads: JobHeads;
  readonly jobs: JobRecords;
  readonly gatewayRecords: GatewayRecords;
  readonly operationRecords: OperationRecords;
  readonly changeNotes: NoteSource;
  readonly serviceRegistry: ServiceRegistry;
  readonly services: Services;
  /** Null when all nodes share a store of files. */
  readonly files: FilesOfNodes | null;
  /** This node's owner, as it is now. */
  readonly owner: () => string;
  readonly nodeId: string;
  readonly nodes: Pick<NodeReads, "present" | "livingFirst" | "find">;
  readonly peers: Peers;
  /** What runs other nodes' attempts here. */
  readonly host: Pick<TaskHost, "accept">;
  /** For programs that join. */
  readonly welcomes: WelcomesParts;
  readonly credentials: NodeCredentials;
  readonly messageBytesMax: number;
  readonly reconciler: Pick<Reconciler, "reconcile">;
  /** Launches a run if it is this node's. */
  readonly launch: (runId: string) => void;
  /** Of this node. */
  readonly removeVolume: RemoveVolume;
  readonly log: EngineLog;
}

export interface NodeDoor {
  /** host:port at which other nodes reach this one. */
  readonly address: string;
  readonly control: JobControl;
  readonly reconcileNode: ReconcileNode;
  readonly removeVolume: RemoveVolume;
}

/**
 * Listens for other nodes, and follows for those who listen here what happens on them.
 *
 * @throws StartFailed
 */
export async function openNodeDoor(
  config: Config,
  parts: NodeDoorParts,
  undo: AsyncDisposableStack,
): Promise<NodeDoor> {
  const { engine, feed, owner, peers, host, serviceRegistry, services, credentials, messageBytesMax, log } =
    parts;
  const { nodeId, nodes, reconciler, removeVolume } = parts;
  const places = new Places({ jobs: parts.heads, nodes: parts.nodes, clock: systemClock });
  const records = { heads: places.heads.bind(places), events: eventsOf(parts) };
  const follower = new Follower({ feed, engine, records, peers, clock: systemClock, log });
  feed.followWith(follower);
  undo.defer(() => follower.stop());
  const routes = nodeService({
    owner,
    nodeId,
    reconcile: (fix) => reconciler.reconcile(fix),
    launch: parts.launch,
    removeVolume,
    version: programVersion(),
    engine,
    feed,
    host,
    services: serviceRegistry,
    notes: parts.changeNotes,
    clock: systemClock,
    welcomes: parts.welcomes,
    bytes: parts.files?.source ?? null,
  });
  parts.files?.askAlso(new NodeBytes({ peers, nodes: parts.nodes, owner, clock: systemClock, log }));
  services.askAlso(nodesWithServices({ living: () => places.living(), owner, peers, clock: systemClock }));
  const server = await listening(config, { credentials, messageBytesMax, routes, log });
  undo.defer(() => server.close());
  const placeOf = places.placeOf.bind(places);
  return {
    address: config.nodeAddress ?? addressOf(config.nodeHost, server.port),
    control: new RemoteControl({ engine, owner, placeOf, peers }),
    reconcileNode: remoteReconcile({ nodeId, own: reconciler, nodes, peers }),
    removeVolume: remoteVolumeRemoval({ nodeId, own: removeVolume, nodes, peers }),
  };
}

/** @param secret that the database keeps for its nodes, as hexadecimal digits; null for a program that joins */
export function credentialsOf(
  { nodeTlsCert: cert, nodeTlsKey: key, nodeTlsCa: ca }: Config,
  secret: string | null,
): NodeCredentials {
  if (cert === null || key === null || ca === null)
    return secret === null ? { kind: "joiner" } : { kind: "secret", secret: Buffer.from(secret, "hex") };
  return { kind: "certificates", cert: cert.pem, key: key.pem, ca: ca.pem };
}

async function listening(
  { nodeHost: host, nodePort: port }: Config,
  options: Omit<Parameters<typeof startNodeServer>[0], "host" | "port">,
): Promise<NodeServer> {
  try {
    return await startNodeServer({ ...options, host, port });
  } catch (error) {
    const failure = error as NodeJS.ErrnoException;
    const { code, message } = failure;
    // Certificates that do not fit together are refused by TLS, which has codes of its own.
    const isTls = code?.startsWith("ERR_") === true;
    throw new StartFailed(
      isTls
        ? `SVC_NODE_TLS_CERT, SVC_NODE_TLS_KEY and SVC_NODE_TLS_CA cannot be used: ${message}`
        : explainAddress(failure, { host, port, variable: "SVC_NODE_PORT" }),
    );
  }
}

/** The events of whatever has them: a job, a run that ended before its launch, an operation. */
function eventsOf({ jobs, heads, gatewayRecords, operationRecords }: NodeDoorParts) {
  return async (id: string, afterSeq: number): Promise<EventPage> => {
    const page = await jobs.events(id, afterSeq);
    if (page.lines.length > 0) return page;
    if (id.startsWith("op_"))
      return operationRecords.operationEvents(id, afterSeq, OPERATION_EVENTS_PER_READ);
    const runId = afterSeq === 0 ? await heads.runOf(id) : null;
    const run = runId === null ? null : await gatewayRecords.run(runId);
    return (run === null ? null : historyOfUnlaunched(run)) ?? page;
  };
}
