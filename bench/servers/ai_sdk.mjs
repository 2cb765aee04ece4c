// For each line of JSON on stdin, a list of chunks, one on stdout: how long npm `ai` takes to reduce them, every snapshot read.
import { createInterface } from "node:readline";
import { readUIMessageStream } from "ai";

async function reduce(chunks) {
  let next = 0;
  let snapshots = 0;
  const pull = (controller) => (next < chunks.length ? controller.enqueue(chunks[next++]) : controller.close());
  const begin = performance.now();
  for await (const _ of readUIMessageStream({ stream: new ReadableStream({ pull }) })) snapshots += 1;
  return { seconds: (performance.now() - begin) / 1000, snapshots };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${JSON.stringify(await reduce(JSON.parse(line)))}\n`);
}
