/** The ways into the service. */
export type Door = 'rest' | 'connect' | 'grpc';
