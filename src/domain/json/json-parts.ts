/** So many bytes beyond the first ones take as long to read as a value. */
const longFromBytes = 16 * 1024;
const longPartBytes = 64;

/** A number with a fraction or an exponent takes some 3 to 10 times as long to read as an integer. */
const notIntegerMore = 4;

/** Where in a text the scan is: where no number begins, where one can begin, in the first digits of one. */
const [elsewhere, beforeNumber, inDigits] = [0, 1, 2];

/** By place and byte: the next place, and four times the parts that the byte begins. */
const steps = new Uint8Array(3 * 256);
const step = (places: readonly number[], characters: string, next: number, parts: number): void => {
  for (const place of places)
    for (const character of characters) steps[place * 256 + character.charCodeAt(0)] = parts * 4 + next;
};
const anywhere = [elsewhere, beforeNumber, inDigits];
step(anywhere, ',[', beforeNumber, 1);
step(anywhere, ':', beforeNumber, 0);
// An escape may stand for what begins or parts values.
step(anywhere, '{\\', elsewhere, 1);
step([beforeNumber], ' \t\r\n-', beforeNumber, 0);
step([beforeNumber, inDigits], '0123456789', inDigits, 0);
step([inDigits], '.eE', elsewhere, notIntegerMore);

/**
 * Returns how many parts a JSON text or serialized message takes to read, at most: values, escapes, and stretches of
 * long ones. Takes a thirtieth of the time that reading takes.
 */
export function partsIn(bytes: Uint8Array): number {
  let count = Math.floor(Math.max(0, bytes.length - longFromBytes) / longPartBytes);
  let last = elsewhere;
  for (let at = 0; at < bytes.length; at += 1) {
    last = steps[(last & 3) * 256 + (bytes[at] as number)] as number;
    count += last >> 2;
  }
  return count;
}
