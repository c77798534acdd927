// Adds up what the shards have counted, and ends the run. An agent of the type "module" is a function that the
// runtime calls itself, in a thread of its own: nothing is started, and no slot is needed.

export async function handle(message) {
  const shards = message.body.messages.map((answer) => answer.result);
  const byWorker = {};
  for (const { worker, primes } of shards) byWorker[worker] = (byWorker[worker] ?? 0) + primes;
  return {
    complete: {
      primes: shards.reduce((sum, shard) => sum + shard.primes, 0),
      up_to: Math.max(...shards.map((shard) => shard.to)),
      largest_prime: shards.reduce((largest, shard) => Math.max(largest, shard.largest ?? 0), 0),
      shards: shards.length,
      primes_by_worker: byWorker,
    },
  };
}
