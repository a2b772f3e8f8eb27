import type { ConnectRouter } from '@connectrpc/connect';
import { ServerReflection, type ServerReflectionRequest } from '../../gen/grpc/reflection/v1/reflection_pb.ts';
import { limits } from '../../runtime/limits/limits.ts';
import { serializedDescriptorFiles } from '../endpoints/descriptor-image.ts';
import { Reflection } from '../endpoints/reflection.ts';
import { apiServices } from '../endpoints/routes.ts';

/** `/grpc.reflection.v1.ServerReflection/ServerReflectionInfo` */
export const reflectionPath = `/${ServerReflection.typeName}/${ServerReflection.method.serverReflectionInfo.name}`;

/**
 * Serves reflection over Connect and gRPC-Web. connect-es reads the next request of a stream once the answer to the
 * last one was taken.
 */
export function addReflection(router: ConnectRouter): void {
  let reflection: Reflection | null = null;
  async function* answer(requests: AsyncIterable<ServerReflectionRequest>) {
    reflection ??= new Reflection(
      apiServices.map(({ typeName }) => typeName),
      serializedDescriptorFiles(),
    );
    for await (const request of requests) yield reflection.answer(request);
  }
  const options = { readMaxBytes: limits.grpcStandardMessageMaxBytes };
  router.rpc(ServerReflection.method.serverReflectionInfo, answer, options);
}
