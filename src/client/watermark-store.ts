/** What a client keeps of the logs of one service, between its calls. */
export interface WatermarkState {
  /** Name of the service, for example `ledger.example/v1`. */
  readonly origin: string;
  /** Log keys whose checkpoints are accepted, each 32 bytes in base64. */
  readonly logKeys: readonly string[];
  /** Public keys of the authority, each 32 bytes in base64. A log key that one of them has endorsed is accepted. */
  readonly authorityKeys: readonly string[];
  /** The newest verified note of each log, by the origin of the log. */
  readonly checkpoints: ReadonlyMap<string, string>;
  /** What was kept under names that the service had before, oldest first. */
  readonly previous: readonly Pick<WatermarkState, 'origin' | 'logKeys' | 'checkpoints'>[];
}

/** Where a client keeps the watermarks of one service. `Watermarks` keeps them in a file. */
export interface WatermarkStore {
  /** Log keys that the user has from elsewhere, each 32 bytes in base64 or a vkey. They are accepted. */
  readonly logKeys?: readonly string[];
  /** The name of the service that the user accepts in place of the kept one. */
  readonly newOrigin?: string;
  /** null: nothing was kept yet. */
  read(): Promise<WatermarkState | null>;
  /**
   * Replaces the state by what `change` makes of it, as one step: no other update comes in between. Where `change`
   * returns null, the state stays.
   */
  update(change: (state: WatermarkState | null) => WatermarkState | null): Promise<void>;
}

/** How many logs a client without a store of its own remembers. The one that was kept first is forgotten first. */
const LOGS_MAX = 10_000;

/** Watermarks in memory, for a client that has no other place for them. */
export function memoryWatermarks(): WatermarkStore {
  let state: WatermarkState | null = null;
  return {
    read: async () => state,
    update: async (change) => {
      const changed = change(state);
      if (changed !== null) state = { ...changed, checkpoints: newest(changed.checkpoints) };
    },
  };
}

function newest(checkpoints: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return checkpoints.size <= LOGS_MAX ? checkpoints : new Map([...checkpoints].slice(-LOGS_MAX));
}
