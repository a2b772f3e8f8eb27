import { randomBytes } from 'node:crypto';
import { type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { Metadata } from '@grpc/grpc-js';
import type { NodeId } from '../../src/actors/routing/placement.ts';
import {
  type ExchangeRequest,
  ExchangeRequestSchema,
  type ExchangeResponse,
  ExchangeResponseSchema,
} from '../../src/gen/svc/cluster/v1/peers_pb.ts';
import { checkBounds } from '../../src/rpc/call/message-bounds.ts';
import { messageFieldsMax, messageItemsMax } from './exchange-method.ts';
import { isSecret, type PeerSecurity } from './security.ts';
import { nonceBytes, PeerSession } from './session.ts';

/** Used with certificates: the secret, if nodes have one too. TLS carries it, and to a node of the cluster only. */
const secretKey = 'x-cluster-secret';
/** A peer accepts a stream by sending its node id. No frame is sent before that. */
export const acceptedKey = 'x-cluster-node';
/** Used without certificates: the client's node id, the random bytes of both sides, and the server's proof. */
const clientKey = 'x-cluster-client';
const clientNonceKey = 'x-cluster-client-nonce';
const serverNonceKey = 'x-cluster-server-nonce';
const serverProofKey = 'x-cluster-server-proof';

/** Encodes and decodes the frames of the side that opens a stream. */
export interface ClientWire {
  /** The metadata to open the stream with. */
  readonly greeting: Metadata;
  /** Checks the metadata that the other side answers. Throws an Error if it is not the expected node. */
  accept(answer: Metadata): void;
  seal(request: ExchangeRequest): Buffer;
  /** Throws ForgedFrame or MessageBeyondBounds. */
  open(frame: Buffer): ExchangeResponse;
}

/** Encodes and decodes the frames of the side that accepts a stream. */
export interface ServerWire {
  /** The metadata to accept the stream with. */
  readonly answer: Metadata;
  /** Whether the client proves that it is a node only with its first frame. */
  readonly isProvedByFrame: boolean;
  seal(response: ExchangeResponse): Buffer;
  /** Throws ForgedFrame or MessageBeyondBounds. */
  open(frame: Buffer): ExchangeRequest;
}

/** Returns the wire of a stream that this node opens to `peer`. */
export function clientWire(security: PeerSecurity, self: NodeId, peer: NodeId): ClientWire {
  return security.tls === null ? sealedClient(security.secret ?? '', self, peer) : certifiedClient(security, peer);
}

/** Returns the wire of a stream that another node opens, or null if the greeting is not of a node of this cluster. */
export function serverWire(security: PeerSecurity, self: NodeId, greeting: Metadata): ServerWire | null {
  return security.tls === null
    ? sealedServer(security.secret ?? '', self, greeting)
    : certifiedServer(security, self, greeting);
}

/** With certificates, TLS authenticates both sides and protects every frame. */
function certifiedClient({ secret }: PeerSecurity, peer: NodeId): ClientWire {
  const greeting = new Metadata();
  if (secret !== null) greeting.set(secretKey, secret);
  return {
    greeting,
    accept: (answer) => checkNode(answer, peer),
    seal: (request) => Buffer.from(toBinary(ExchangeRequestSchema, request)),
    open: (frame) => decoded(ExchangeResponseSchema, frame),
  };
}

function certifiedServer({ secret }: PeerSecurity, self: NodeId, greeting: Metadata): ServerWire | null {
  if (secret !== null && !isSecret(greeting.get(secretKey)[0], secret)) return null;
  const answer = new Metadata();
  answer.set(acceptedKey, self);
  return {
    answer,
    isProvedByFrame: false,
    seal: (response) => Buffer.from(toBinary(ExchangeResponseSchema, response)),
    open: (frame) => decoded(ExchangeRequestSchema, frame),
  };
}

/** Without certificates, both sides prove that they know the secret, and seal every frame with keys of the stream. */
function sealedClient(secret: string, self: NodeId, peer: NodeId): ClientWire {
  const clientNonce = randomBytes(nonceBytes);
  const greeting = new Metadata();
  greeting.set(clientKey, self);
  greeting.set(clientNonceKey, clientNonce.toString('base64'));
  let session: PeerSession | null = null;
  const accepted = (): PeerSession => {
    if (session === null) throw new Error('the other side has not accepted the stream');
    return session;
  };
  return {
    greeting,
    accept(answer) {
      checkNode(answer, peer);
      const serverNonce = bytesOf(answer, serverNonceKey);
      const made = new PeerSession(secret, { clientId: self, serverId: peer, clientNonce, serverNonce });
      if (serverNonce.length !== nonceBytes || !made.isProvedBy(bytesOf(answer, serverProofKey)))
        throw new Error('the other side does not know the secret of the cluster');
      session = made;
    },
    seal: (request) => accepted().fromClient.seal(toBinary(ExchangeRequestSchema, request)),
    open: (frame) => decoded(ExchangeResponseSchema, accepted().fromServer.open(frame)),
  };
}

function sealedServer(secret: string, self: NodeId, greeting: Metadata): ServerWire | null {
  const clientId = textOf(greeting, clientKey);
  const clientNonce = bytesOf(greeting, clientNonceKey);
  if (clientId === '' || clientId.length > 128 || clientNonce.length !== nonceBytes) return null;
  const serverNonce = randomBytes(nonceBytes);
  const session = new PeerSession(secret, { clientId, serverId: self, clientNonce, serverNonce });
  const answer = new Metadata();
  answer.set(acceptedKey, self);
  answer.set(serverNonceKey, serverNonce.toString('base64'));
  answer.set(serverProofKey, session.serverProof.toString('base64'));
  return {
    answer,
    isProvedByFrame: true,
    seal: (response) => session.fromServer.seal(toBinary(ExchangeResponseSchema, response)),
    open: (frame) => decoded(ExchangeRequestSchema, session.fromClient.open(frame)),
  };
}

const messageBounds = { fieldsMax: messageFieldsMax, itemsMax: messageItemsMax };

function decoded<S extends DescMessage>(schema: S, message: Uint8Array): MessageShape<S> {
  checkBounds(schema, message, messageBounds);
  return fromBinary(schema, message);
}

/** The address came from Redis, where others may write. */
function checkNode(answer: Metadata, peer: NodeId): void {
  const named = textOf(answer, acceptedKey);
  if (named !== peer) throw new Error(`another node answers: ${JSON.stringify(named.slice(0, 128))}`);
}

function textOf(metadata: Metadata, key: string): string {
  const value = metadata.get(key)[0];
  return typeof value === 'string' ? value : '';
}

function bytesOf(metadata: Metadata, key: string): Buffer {
  return Buffer.from(textOf(metadata, key), 'base64');
}
