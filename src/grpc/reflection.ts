// The services that every gRPC server has: grpc.health.v1.Health and grpc.reflection.v1.ServerReflection.

import { create, createRegistry, type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus as Status } from "./gen/grpc/health/v1/health_pb.ts";
import { ServerReflection, ServerReflectionResponseSchema } from "./gen/grpc/reflection/v1/reflection_pb.ts";

/** @param isServing whether work is taken */
export function addHealth(
  router: ConnectRouter,
  services: readonly DescService[],
  isServing: () => Promise<boolean>,
): void {
  const statusOf = async (name: string) => {
    if (name !== "" && services.every(({ typeName }) => typeName !== name)) return null;
    return (await isServing()) ? Status.SERVING : Status.NOT_SERVING;
  };
  router.service(Health, {
    async check({ service }) {
      const status = await statusOf(service);
      if (status === null) throw new ConnectError(`There is no service ${service} here.`, Code.NotFound);
      return { status };
    },
    async *watch({ service }, { signal }) {
      yield { status: (await statusOf(service)) ?? Status.SERVICE_UNKNOWN };
      await aborted(signal);
    },
  });
}

function aborted(signal: HandlerContext["signal"]): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

const NOT_FOUND = 5;

export function addReflection(router: ConnectRouter, services: readonly DescService[]): void {
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
