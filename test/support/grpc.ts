// A client of the runtime protocol that shares nothing with the program but the .proto files: @grpc/grpc-js.

import { join } from "node:path";
import {
  type CallOptions,
  type ChannelCredentials,
  type Client,
  credentials,
  type GrpcObject,
  loadPackageDefinition,
  Metadata,
  type ServiceClientConstructor,
  type ServiceError,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const protos = join(import.meta.dirname, "../../proto");

const files = ["node", "service", "resource", "schedule", "deployment", "job"].map(
  (name) => `svc/runtime/v1/${name}.proto`,
);
const loaded = loadPackageDefinition(
  loadSync([...files, "grpc/health/v1/health.proto", "google/rpc/error_details.proto"], {
    includeDirs: [protos],
    keepCase: true,
    longs: Number,
    enums: String,
    arrays: true,
  }),
);

// biome-ignore lint/suspicious/noExplicitAny: what a client without generated code sends and gets.
export type Fields = Record<string, any>;

export interface GrpcClient {
  /** @throws ServiceError */
  call(method: string, request?: Fields, metadata?: Record<string, string>): Promise<Fields>;
  /** What a server sends until it has ended. Breaking off cancels the call. */
  stream(method: string, request: Fields, options?: CallOptions): AsyncGenerator<Fields>;
  [Symbol.dispose](): void;
}

/** The address as the program has printed it. */
export function grpcAddress(output: string): string {
  const address = /^ {2}gRPC +(\S+)$/m.exec(output)?.[1];
  if (address === undefined) throw new Error(`No address of gRPC was printed:\n${output}`);
  return address;
}

/** @param service such as `svc.runtime.v1.JobService` */
export function grpcClient(
  address: string,
  service: string,
  { token, channel = credentials.createInsecure() }: { token?: string; channel?: ChannelCredentials } = {},
): GrpcClient {
  const path = service.split(".");
  const found = path.reduce<GrpcObject>((at, name) => at[name] as GrpcObject, loaded);
  const client = new (found as unknown as ServiceClientConstructor)(address, channel, {
    // Names in certificates are of hosts.
    "grpc.ssl_target_name_override": "localhost",
  }) as Client & Fields;
  const metadataOf = (given: Record<string, string>) => {
    const metadata = new Metadata();
    if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
    for (const [name, value] of Object.entries(given)) metadata.set(name, value);
    return metadata;
  };
  return {
    call: (method, request = {}, metadata = {}) =>
      new Promise((resolve, reject) => {
        const answered = (error: ServiceError | null, answer: Fields) =>
          error === null ? resolve(answer) : reject(error);
        client[method](request, metadataOf(metadata), answered);
      }),
    async *stream(method, request, options = {}) {
      const call = client[method](request, metadataOf({}), options);
      try {
        yield* call;
      } finally {
        call.cancel();
      }
    },
    [Symbol.dispose]: () => client.close(),
  };
}

/** The `reason` of an error's google.rpc.ErrorInfo, which has its text in the encoded status. */
export function reasonOf({ metadata }: ServiceError): string {
  const [status = Buffer.alloc(0)] = metadata.get("grpc-status-details-bin") as Buffer[];
  // In a google.rpc.Status: the first field of the ErrorInfo stands behind the name of its type.
  const text = Buffer.from(status).toString("latin1");
  return /google\.rpc\.ErrorInfo\W+([a-z_]+)/.exec(text)?.[1] ?? "";
}
