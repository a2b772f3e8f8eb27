import cassandra from 'cassandra-driver';
import { DeadlinePassed, type Health } from './circuit.ts';

const { responseErrorCodes } = cassandra.types;
const { ArgumentError, BusyConnectionError, NoHostAvailableError, OperationTimedOutError, ResponseError } =
  cassandra.errors;

/** Errors of the process itself, such as a value that does not fit its column. They come before anything is sent. */
const ownErrors = [TypeError, RangeError, ReferenceError, SyntaxError, URIError, ArgumentError];

/**
 * What an error shows about Cassandra. Only the errors that are listed here mean that it is gone or slow. A node that
 * reports a timeout of other nodes has answered. One without enough replicas counts as gone.
 */
export function healthOf(error: unknown): Health {
  if (error instanceof OperationTimedOutError && error.host) return { silentNode: error.host };
  if (error instanceof ResponseError) {
    const { unavailableException, overloaded, isBootstrapping } = responseErrorCodes;
    return [unavailableException, overloaded, isBootstrapping].includes(error.code) ? 'gone' : 'answered';
  }
  const isGone =
    [DeadlinePassed, NoHostAvailableError, BusyConnectionError, OperationTimedOutError].some(
      (kind) => error instanceof kind,
    ) || isSocketError(error);
  return isGone ? 'gone' : 'unknown';
}

/** The driver marks errors of a connection, which are of no class of their own. */
function isSocketError(error: unknown): boolean {
  return error instanceof Error && 'isSocketError' in error && error.isSocketError === true;
}

/** Whether a replica gave up a read, which it does for too many deleted rows. */
export function isReadFailure(error: unknown): boolean {
  return error instanceof ResponseError && error.code === responseErrorCodes.readFailure;
}

/** Whether Cassandra will never accept the statement, so that a retry is useless. It must not look like an outage. */
export function isProgrammerError(error: unknown): boolean {
  if (ownErrors.some((kind) => error instanceof kind)) return true;
  if (!(error instanceof ResponseError)) return false;
  const { syntaxError, invalid, configError } = responseErrorCodes;
  return [syntaxError, invalid, configError].includes(error.code);
}
