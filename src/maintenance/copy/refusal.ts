/** Something cannot be copied as it is. `message` is one sentence that says what to do. */
export class CopyRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CopyRefused';
  }
}
