import { codeToHttpStatus, codeToString } from '@connectrpc/connect/protocol-connect';
import { errorTable, type RetryRule } from '../src/domain/error-codes.ts';
import { errorCodes } from '../src/domain/errors.ts';
import { statusOf } from '../src/rpc/call/status.ts';

/** The made parts of docs/errors.md. */

const retries: { readonly [rule in RetryRule]: string } = {
  refused: 'no',
  refused_unchecked: 'no; says nothing about earlier attempts',
  not_written: 'yes, any call',
  in_progress: 'yes, any call',
  maybe_written: 'with the same Idempotency-Key, or a read',
  fault: 'with the same Idempotency-Key, or a read; once or twice',
};

/** Markdown: one row a code, in the order of the code's own table. */
export function errorCodesTable(): string {
  const rows = errorCodes.map((code) => {
    const { retry, meaning, action } = errorTable[code];
    const { http, grpc } = statusOf(code);
    const connect = codeToString(grpc);
    const cells = [
      `\`${code}\``,
      http,
      `${connect.toUpperCase()} (${grpc})`,
      `\`${connect}\`, ${codeToHttpStatus(grpc)}`,
      meaning,
      action,
      retries[retry],
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return [
    '| code | REST | gRPC and gRPC-Web | Connect, its HTTP status | meaning | what to do | send it again? |',
    '|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}
