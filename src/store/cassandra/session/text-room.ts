/** A row as the driver returns it. */
type Row = { readonly [column: string]: unknown };

/**
 * Room for so many characters. A read drops the rows that arrive once it is full, so that it holds no more than this
 * and one row, whatever sizes rows have. Several reads may share it.
 */
export class TextRoom {
  readonly #column: string | null;
  #chars: number;

  /** `column`: the one whose texts count. null: the texts of all columns. */
  constructor(column: string | null, chars: number) {
    this.#column = column;
    this.#chars = chars;
  }

  get isFull(): boolean {
    return this.#chars <= 0;
  }

  /** Whether to keep a row that has arrived. If so, its text takes up room. */
  takes(row: Row): boolean {
    if (this.isFull) return false;
    this.#chars -= this.#charsOf(row);
    return true;
  }

  /** To be called for rows that were kept and are read again. */
  giveBack(rows: readonly Row[]): void {
    for (const row of rows) this.#chars += this.#charsOf(row);
  }

  #charsOf(row: Row): number {
    if (this.#column !== null) return charsIn(row[this.#column]);
    let chars = 0;
    for (const value of Object.values(row)) chars += charsIn(value);
    return chars;
  }
}

function charsIn(value: unknown): number {
  return typeof value === 'string' ? value.length : 0;
}
