// The services that every gRPC server has: grpc.health.v1.Health and grpc.reflection.v1.ServerReflection.

import { setTimeout } from "node:timers/promises";
import { create, createRegistry, type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus as Status } from "./gen/grpc/health/v1/health_pb.ts";
import { ServerReflection, ServerReflectionResponseSchema } from "./gen/grpc/reflection/v1/reflection_pb.ts";

const LOOK_EVERY_MS = 1_000;

export interface HealthParts {
  /** Whether new work is taken. */
  readonly isServing: () => boolean;
  /** Aborted when the program begins to stop. */
  readonly stopping: AbortSignal;
}

export function addHealth(
  router: ConnectRouter,
  services: readonly DescService[],
  { isServing, stopping }: HealthParts,
): void {
  const statusOf = (name: string) => {
    if (name !== "" && services.every(({ typeName }) => typeName !== name)) return null;
    return isServing() ? Status.SERVING : Status.NOT_SERVING;
  };
  router.service(Health, {
    check({ service }) {
      const status = statusOf(service);
      if (status === null) throw new ConnectError(`There is no service ${service} here.`, Code.NotFound);
      return { status };
    },
    async *watch({ service }, { signal }) {
      const over = AbortSignal.any([signal, stopping]);
      let told: Status | null = null;
      while (!signal.aborted) {
        const status = statusOf(service) ?? Status.SERVICE_UNKNOWN;
        if (status !== told) yield { status };
        told = status;
        if (stopping.aborted) return;
        // It rejects when the wait is over for good.
        await setTimeout(LOOK_EVERY_MS, null, { signal: over }).catch(() => {});
      }
    },
  });
}

const NOT_FOUND = 5;

export function addReflection(router: ConnectRouter, others: readonly DescService[]): void {
  const services = [...others, Health, ServerReflection];
  const registry = createRegistry(...services);
  const files = new Map<string, DescFile>();
  const add = (file: DescFile): void => {
    if (files.has(file.proto.name)) return;
    files.set(file.proto.name, file);
    file.dependencies.forEach(add);
  };
  for (const { file } of services) add(file);
  /** A symbol is a message, an enumeration, a service, or something in one of them. */
  const fileOf = (symbol: string) =>
    (registry.get(symbol) ?? registry.get(symbol.slice(0, symbol.lastIndexOf("."))))?.file;
  const answerOf = (file: DescFile | undefined, asked: string) =>
    file === undefined
      ? notFound(asked)
      : ({
          case: "fileDescriptorResponse",
          value: {
            fileDescriptorProto: closureOf(file).map(({ proto }) =>
              toBinary(FileDescriptorProtoSchema, proto),
            ),
          },
        } as const);
  router.service(ServerReflection, {
    async *serverReflectionInfo(requests) {
      for await (const originalRequest of requests) {
        const { case: kind, value } = originalRequest.messageRequest;
        const answer = () => {
          switch (kind) {
            case "listServices":
              return {
                case: "listServicesResponse",
                value: { service: services.map(({ typeName: name }) => ({ name })) },
              } as const;
            case "fileContainingSymbol":
              return answerOf(fileOf(value), value);
            case "fileByFilename":
              return answerOf(files.get(value), value);
            default:
              return notFound("extensions");
          }
        };
        yield create(ServerReflectionResponseSchema, {
          validHost: originalRequest.host,
          originalRequest,
          messageResponse: answer(),
        });
      }
    },
  });
}

/** With what it imports, itself first. */
function closureOf(file: DescFile, seen = new Set<DescFile>()): readonly DescFile[] {
  if (seen.has(file)) return [];
  seen.add(file);
  return [file, ...file.dependencies.flatMap((one) => closureOf(one, seen))];
}

const notFound = (asked: string) =>
  ({
    case: "errorResponse",
    value: { errorCode: NOT_FOUND, errorMessage: `There is no ${asked} here.` },
  }) as const;
