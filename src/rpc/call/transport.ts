/** How a call reaches the service. */
export type Transport = 'rest' | 'connect' | 'grpc';
