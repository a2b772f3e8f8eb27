/** What index.ts (Node) and browser.ts have in common. The reference lets compilers read `AsyncDisposable`. */
/// <reference lib="esnext.disposable" preserve="true" />
export type { ErrorCode } from '../domain/errors.ts';
export type { ActorType, LedgerType } from '../domain/event/event.ts';
export type { Checkpoint } from '../domain/log/checkpoint.ts';
export { ProofRefused } from '../domain/log/proof-refused.ts';
export type {
  Appended,
  AppendOutcome,
  AppendStream,
  AppendStreamOptions,
  StreamedEvent,
} from './append/append-api.ts';
export type { ClientOptions, RestDispatcher } from './call/client-options.ts';
export type { Credential } from './call/credential.ts';
export type { RetryClock } from './call/retry.ts';
export { type ClientErrorCode, LedgerTrustError } from './error.ts';
export type { Event } from './event.ts';
export type {
  DelegationEventFilter,
  EventReading,
  EventReadingOptions,
  LedgerEventFilter,
  MasterEventFilter,
} from './event-reading.ts';
export type {
  FollowedEvent,
  FollowHead,
  FollowIssues,
  Following,
  FollowOptions,
  FollowPlace,
  FollowRequest,
  FollowRetry,
} from './follow/follow-api.ts';
export type { LedgerTrustClient } from './ledger-trust-client.ts';
export type { AnswerFacts, CallOptions, DeliveryChainItem } from './methods.ts';
export type {
  CheckpointOptions,
  ProofOptions,
  ProofReading,
  ProvenEvent,
  VerifiedCheckpoint,
} from './proofs/proof-reading.ts';
export {
  type ExpectedLog,
  type ExpectedRecord,
  verifyCheckpoint,
  verifyConsistency,
  verifyInclusion,
} from './proofs/verify-proof.ts';
export type { Answer, JsonObject, JsonValue, Request } from './shapes.ts';
export {
  digestOf,
  entityRequestInput,
  type PrivateKey,
  publicKeyBase64,
  type Signer,
  type SigningInput,
  signerFromPrivateKey,
} from './signing/signing.ts';
export {
  type ActorDocument,
  type AuthorityDocument,
  type AuthorityKeys,
  authorityKeysOf,
  type KeySource,
  keysFromDocuments,
  keysFromResolver,
} from './verify/key-source.ts';
export type {
  IncompleteReason,
  IncompleteType,
  Verification,
  VerificationIssue,
  VerificationIssueType,
} from './verify/verification.ts';
export { type EventChecks, type TrustedKeys, type VerifyOptions, verifyEvents } from './verify/verifying.ts';
export type { WatermarkState, WatermarkStore } from './watermark-store.ts';
export { type VerifyWebhookOptions, verifyWebhook, type WebhookDelivery, type WebhookHeaders } from './webhook.ts';
