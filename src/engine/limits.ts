// Every bound of the engine and of execution, in one place. A limit that is hit becomes an event, a dead letter
// or a failure with a reason; nothing is dropped silently.

export const limits = {
  /** Nodes of one graph, and edges of one graph. */
  nodesMax: 20_000,
  edgesMax: 200_000,
  /** Characters of a node_id, graph_id, message type or event type. */
  nameCharsMax: 200,
  /** Nesting of any JSON that enters. */
  jsonDepthMax: 100,
  /** Jobs that one process holds open; more are refused until some have ended. */
  openJobsMax: 100_000,
  /** Messages that wait for one agent; more become dead letters (`mailbox_full`). */
  mailboxMessagesMax: 200_000,
  /** Bodies an aggregator collects; more become dead letters (`mailbox_full`). */
  collectedMessagesMax: 1_000_000,
  /** Bodies kept by an aggregator that neither emits nor completes the run. */
  keptMessagesMax: 10_000,
  /** Messages of a batch job; a job that exceeds it loops for ever and fails (`job.message_limit`). */
  batchJobMessagesMax: 10_000_000,
  /** Characters of all messages that wait in one job, tasks included; more become dead letters (`mailbox_full`). */
  waitingCharsMax: 128 * 1024 * 1024,
  /** Characters that one aggregator collects, and of a body that an agent forms of others; more fails the run. */
  formedCharsMax: 32 * 1024 * 1024,
  /** Bytes of one message body as JSON; larger ones fail the attempt that made them. */
  messageBodyBytesMax: 4 * 1024 * 1024,
  /** Messages that one worker result may emit, and events it may add. */
  workerEmitsMax: 10_000,
  workerEventsMax: 10_000,
  /** Bytes of one event's payload; a larger one is replaced by {truncated, chars, preview}. */
  eventPayloadCharsMax: 64 * 1024,
  /** Requests to people that one job has open; what is asked beyond them stays an event. */
  humanRequestsOpenMax: 1_000,
  /** Closed requests that an open job remembers, and their characters; the journal has all of them. */
  humanClosedKeptMax: 10_000,
  humanClosedCharsMax: 8 * 1024 * 1024,
  /** Characters of a question, and answers that it may allow; what is longer is cut. */
  humanPromptCharsMax: 4 * 1024,
  humanDecisionsMax: 50,
  /** Characters of the schema of an answer's data; one that is longer is not taken. */
  humanDataSchemaCharsMax: 8 * 1024,
  /** Dead letters that an open job remembers to have sent again, so that two requests at once do not double one. */
  retriedLettersKeptMax: 100_000,
  /** Steps of one job before the next job gets its turn. */
  stepsPerTurn: 512,
  /** Operations, and wall time, after which a batch is written though the loop is still busy. */
  batchOperationsMax: 4_000,
  batchAgeMsMax: 4,
  /** How long a batch waits until jobs that were submitted together have done what they can at once. */
  submittedTogetherMsMax: 50,
  /** How long a batch that holds only logs and progress may wait to grow. */
  lazyFlushMs: 10,
  /** Uncommitted event bytes above which task output is no longer read. */
  uncommittedBytesMax: 8 * 1024 * 1024,
  /** Log bytes kept of one run. */
  runLogBytesMax: 256 * 1024 * 1024,
  /** A log line beyond this many characters is cut and marked. */
  logLineCharsMax: 64 * 1024,
  /** What of a command's stdout is searched for a result object, and what of it a message carries. */
  stdoutParsedBytesMax: 1024 * 1024,
  stdoutCarriedBytesMax: 64 * 1024,
  /** Files that one attempt may leave as artifacts, and their bytes. */
  artifactsPerAttemptMax: 10_000,
  artifactBytesMax: 16 * 1024 * 1024 * 1024,
  /** What is read of a line of the event stream; of a payload beyond eventPayloadCharsMax the longest values are replaced. */
  workerEventLineBytesMax: 256 * 1024,
  /** From SIGTERM to SIGKILL. */
  killGraceMs: 5_000,
} as const;
