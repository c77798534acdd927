#!/bin/sh
# Counts the primes of one shard with sh and awk: primes.sh SHARD SHARDS, with SHARD from 0.
# The message says how far to go in total: {"limit": n}. Shard k of s takes k*n/s + 1 to (k+1)*n/s.
set -eu

limit=$(tr -dc '0-9' <"$SVC_INPUT_FILE")
if [ -z "$limit" ]; then
  echo "The message has to be {\"limit\": a whole number}, and it is: $(cat "$SVC_INPUT_FILE")" >&2
  exit 1
fi

awk -v limit="$limit" -v shard="$1" -v shards="$2" '
  BEGIN {
    low = int(shard * limit / shards) + 1
    high = int((shard + 1) * limit / shards)
    if (low < 2) low = 2
    # Cross out, in our part only, the multiples of every number up to the root of its end.
    for (base = 2; base * base <= high; base++) {
      first = int((low + base - 1) / base) * base
      if (first < base * base) first = base * base
      for (n = first; n <= high; n += base) crossed[n] = 1
    }
    count = 0
    largest = "null"
    for (n = low; n <= high; n++) if (!(n in crossed)) { count++; largest = n }
    printf "{\"complete_step\":{\"shard\":%d,\"worker\":\"shell\",\"from\":%d,\"to\":%d,", shard, low, high
    printf "\"primes\":%d,\"largest\":%s}}\n", count, largest
  }'
