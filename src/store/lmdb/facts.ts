import { StartError } from '../../runtime/start-error.ts';
import type { Tables } from './tables.ts';

/**
 * Throws StartError if one of the store's own facts has a value that no node can have stored. With it every append or
 * every change of a record would fail.
 */
export function checkFacts(dataDir: string, { facts, commands, access }: Tables): void {
  const windows = [...slotsOf('commands', commands), ...slotsOf('access', access)];
  const isSound = new Map([
    ['record-versions', (value: number) => value > 0],
    ...windows.map(
      ({ name, slot, slots }) => [name, (value: number) => value === -1 || value % slots === slot] as const,
    ),
  ]);
  for (const [name, isSoundValue] of isSound) {
    const value = facts.get(Buffer.from(name));
    if (value === undefined || (isNumber(value) && isSoundValue(Number(value)))) continue;
    throw new StartError(
      `The fact ${name} in ${dataDir} is damaged (it says ${JSON.stringify(value.slice(0, 20))}): restore a backup.`,
    );
  }
}

/** The facts that say which window of time each table holds: tables take windows in rotation. */
function slotsOf(windows: string, tables: readonly unknown[]) {
  return tables.map((_, slot) => ({ name: `${windows}-${slot}`, slot, slots: tables.length }));
}

function isNumber(text: string): boolean {
  return /^(-1|0|[1-9]\d{0,15})$/.test(text) && Number.isSafeInteger(Number(text));
}
