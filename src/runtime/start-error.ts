/** A store cannot serve in its present state. `message` says what the operator should do. */
export class StartError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StartError';
  }
}

/**
 * A node or a command cannot do what it was asked to, as its settings, its arguments or the store are. `message` is one
 * sentence that says what to do.
 */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ConfigError';
  }
}
