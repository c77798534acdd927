// The clock of a database that several programs share: none of theirs decides what is over.

/** Milliseconds since 1970, as the database has them now. */
export const NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
