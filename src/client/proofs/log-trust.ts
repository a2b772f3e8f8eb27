import { decodeBase64 } from '../../domain/keys/base64.ts';
import { endorsementCheck, PUBLIC_KEY_BYTES } from '../../domain/log/endorsement.ts';
import { logKey } from '../../domain/log/log-key.ts';
import { isServiceName } from '../../domain/log/origin.ts';
import { ProofRefused } from '../../domain/log/proof-refused.ts';
import type { GetAuthorityResponse, LogAnchor } from '../../gen/svc/v1/resolver_pb.ts';
import { invalidAnswer } from '../error.ts';
import type { Answer } from '../shapes.ts';
import type { WatermarkState, WatermarkStore } from '../watermark-store.ts';
import { logKeyOfService } from './verify-proof.ts';

/** Which name and which log keys of a service a client accepts (docs/proofs.md, "Watermarks"). */

/** The part of the trust anchor that says how the service signs checkpoints. */
type LogTrustAnchor = Pick<Answer<GetAuthorityResponse>, 'keys' | 'log' | 'phase'>;

const DEVELOPMENT_PHASE = '1';

type Given = Pick<WatermarkStore, 'logKeys' | 'newOrigin'>;

/** What a client accepts from its first look on. Keys that the user gives come in place of the published ones. */
export function firstTrust(anchor: LogTrustAnchor, given: Given): WatermarkState {
  const origin = acceptedOrigin(anchor, given);
  const pinned = { origin, checkpoints: new Map(), previous: [] };
  const logKeys = givenKeys(given, origin);
  // The authority of this look vouches for no other key: anybody can endorse the user's key by a key of their own.
  if (logKeys.length > 0) return { ...pinned, authorityKeys: [], logKeys };
  // In phase 1 the service has made the authority's key itself. It endorses nothing.
  const authorityKeys = anchor.phase === DEVELOPMENT_PHASE ? [] : anchor.keys.map(({ publicKey }) => publicKey);
  return { ...pinned, authorityKeys, logKeys: acceptable(anchor, authorityKeys) };
}

export function withGivenKeys(state: WatermarkState, given: Given): WatermarkState {
  return { ...state, logKeys: union(state.logKeys, givenKeys(given, state.origin)) };
}

/** The state with the published keys that a pinned key of the authority has endorsed. */
export function withEndorsedKeys(state: WatermarkState, anchor: LogTrustAnchor): WatermarkState {
  const { origin } = logOf(anchor);
  if (origin !== state.origin) throw originChanged(state.origin, origin);
  // Where no key of the authority is pinned, nobody vouches for another log key.
  if (state.authorityKeys.length === 0) return state;
  return { ...state, logKeys: union(state.logKeys, acceptable(anchor, state.authorityKeys)) };
}

/**
 * The state of a service that has taken the name which the user accepts. What was kept before stays under `previous`.
 */
export function withNewOrigin(state: WatermarkState, anchor: LogTrustAnchor, given: Given): WatermarkState {
  const origin = acceptedOrigin(anchor, given);
  if (state.previous.some((one) => one.origin === origin))
    throw new ProofRefused('origin_changed', `The service has had the name ${origin} before and gave it up.`);
  const own = givenKeys(given, origin);
  const known = state.authorityKeys.length > 0 ? acceptable(anchor, state.authorityKeys) : state.logKeys;
  return {
    origin,
    authorityKeys: state.authorityKeys,
    logKeys: own.length > 0 ? own : known,
    checkpoints: new Map(),
    previous: [...state.previous, endedOf(state)],
  };
}

/** The name of the service. ProofRefused if the user accepts another new one. */
function acceptedOrigin(anchor: LogTrustAnchor, { newOrigin }: Given): string {
  const { origin } = logOf(anchor);
  if (newOrigin !== undefined && newOrigin !== origin) throw originChanged(newOrigin, origin);
  return origin;
}

/**
 * What is kept, once `found` was built on an older reading of it. Another process may have accepted other keys and
 * checkpoints meanwhile.
 */
export function mergedTrust(kept: WatermarkState | null, found: WatermarkState): WatermarkState {
  if (kept === null) return found;
  if (kept.origin === found.origin) {
    const logKeys = union(kept.logKeys, found.logKeys);
    return { ...kept, logKeys, authorityKeys: union(kept.authorityKeys, found.authorityKeys) };
  }
  if (found.previous.at(-1)?.origin !== kept.origin) throw originChanged(kept.origin, found.origin);
  return { ...found, previous: [...kept.previous, endedOf(kept)] };
}

export function originChanged(kept: string, found: string): ProofRefused {
  return new ProofRefused(
    'origin_changed',
    `The service signs under the name ${found}, not under ${kept}: ask its operator why.`,
  );
}

/** The published keys that one of the authority's keys has endorsed; all where there is no key of the authority. */
function acceptable(anchor: LogTrustAnchor, authorityKeys: readonly string[]): string[] {
  const { origin: serviceName, keys } = logOf(anchor);
  const checks = authorityKeys.map(endorsementCheck);
  const isEndorsed = ({ publicKey, endorsement }: (typeof keys)[number]) => {
    const bytes = decodeBase64(publicKey, PUBLIC_KEY_BYTES);
    if (bytes === null || endorsement === null) return false;
    return checks.some((check) => check({ serviceName, publicKey: bytes }, endorsement.sig));
  };
  return keys
    .filter((key) => checks.length === 0 || isEndorsed(key))
    .map(({ publicKey }) => publicKey)
    .filter((publicKey) => logKey(publicKey) !== null);
}

function logOf({ log }: LogTrustAnchor): Answer<LogAnchor> {
  if (log === null || !isServiceName(log.origin))
    throw invalidAnswer('log', 'the name and the keys of a service that signs checkpoints');
  return log;
}

function givenKeys({ logKeys = [] }: Given, origin: string): string[] {
  return logKeys.map((text) => logKeyOfService(text, origin).publicKey);
}

function endedOf({ origin, logKeys, checkpoints }: WatermarkState): WatermarkState['previous'][number] {
  return { origin, logKeys, checkpoints };
}

function union(some: readonly string[], more: readonly string[]): string[] {
  return [...new Set([...some, ...more])];
}
