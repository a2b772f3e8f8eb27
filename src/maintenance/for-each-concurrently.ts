/** Runs at most `max` items at a time. After a failure it starts no more, and rejects when all that runs has ended. */
export async function forEachConcurrently<T>(
  items: Iterable<T> | AsyncIterable<T>,
  max: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | null = null;
  for await (const item of items) {
    const one: Promise<void> = work(item).then(
      () => void running.delete(one),
      (error: unknown) => {
        running.delete(one);
        failure ??= { error };
      },
    );
    running.add(one);
    if (running.size >= max) await Promise.race(running);
    if (failure !== null) break;
  }
  await Promise.all(running);
  if (failure !== null) throw (failure as { readonly error: unknown }).error;
}
