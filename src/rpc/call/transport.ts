/** The ways into the service. */
export type Transport = 'rest' | 'connect' | 'grpc';
