// BullMQ: each step adds the next under an id of its own, so that a step that is run again adds nothing twice. A fan is a flow:
// a parent that waits for its children.

import { FlowProducer, Queue, Worker } from "bullmq";

const QUEUE = "steps";

export async function start() {
  const connection = { host: "127.0.0.1", port: Number(process.env.PEERS_REDIS_PORT ?? 6397) };
  const queue = new Queue(QUEUE, { connection });
  const flows = new FlowProducer({ connection });
  const waiting = new Map();
  const prefix = Date.now().toString(36);
  let count = 0;

  const handle = async ({ name, data: { id, step, width } }) => {
    if (name === "pair" && step === 1) await queue.add("pair", { id, step: 2 }, { jobId: `${id}_2` });
    if (name !== "spread") return;
    const children = Array.from({ length: width }, (_, n) => ({
      ...{ name: "work", queueName: QUEUE, data: { id } },
      opts: { jobId: `${id}_work_${n}` },
    }));
    await flows.add({
      name: "join",
      queueName: QUEUE,
      data: { id },
      opts: { jobId: `${id}_join` },
      children,
    });
  };
  const worker = new Worker(QUEUE, handle, { connection, concurrency: 64 });
  worker.on("completed", ({ name, data: { id, step } }) => {
    if (name !== "join" && !(name === "pair" && step === 2)) return;
    waiting.get(id)?.();
    waiting.delete(id);
  });
  await worker.waitUntilReady();

  const run = (name, data) =>
    new Promise((resolve, reject) => {
      const id = `${prefix}_${count++}`;
      waiting.set(id, resolve);
      queue.add(name, { ...data, id }, { jobId: `${id}_1` }).catch(reject);
    });
  return {
    pair: () => run("pair", { step: 1 }),
    fan: (width) => run("spread", { width }),
    stop: async () => {
      await worker.close();
      await flows.close();
      await queue.close();
    },
  };
}
