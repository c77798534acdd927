// Loaded into a program under measurement (`--import`): the longest time for which its event loop stood still. SIGUSR2
// prints it to stderr, and begins anew. Also in the thread's processor time, which other programs of the machine do not
// lengthen; what it waited for the disk is not in that.

const EVERY_MS = 1;

let last = performance.now();
let longestMs = 0;
let lastProcessor = process.threadCpuUsage();
let longestProcessorMs = 0;
setInterval(() => {
  const now = performance.now();
  longestMs = Math.max(longestMs, now - last - EVERY_MS);
  last = now;
  const { user, system } = process.threadCpuUsage(lastProcessor);
  longestProcessorMs = Math.max(longestProcessorMs, (user + system) / 1_000);
  lastProcessor = process.threadCpuUsage();
}, EVERY_MS).unref();

process.on("SIGUSR2", () => {
  process.stderr.write(
    `longest gap ${longestMs.toFixed(1)} ms, of the processor ${longestProcessorMs.toFixed(1)} ms\n`,
  );
  longestMs = 0;
  longestProcessorMs = 0;
});
