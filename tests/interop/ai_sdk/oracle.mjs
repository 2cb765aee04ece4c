// Answers each line of JSON on stdin with one on stdout: what npm `ai` makes of chunks, of text, or of the shape of chunks.
import { createInterface } from "node:readline";
import { asSchema } from "@ai-sdk/provider-utils";
import { parsePartialJson, readUIMessageStream, uiMessageChunkSchema } from "ai";

const turn = () => new Promise(setImmediate);
const schema = asSchema(uiMessageChunkSchema);

// The chunks go in one by one, each after everything that the one before caused, so that it is known which one caused what.
async function fold({ message, chunks }) {
  const snapshots = [];
  const errors = [];
  let index = -1;
  let feed;
  const stream = new ReadableStream({ start: (controller) => (feed = controller) });
  const onError = ({ name, message: text, chunkType, chunkId }) => errors.push({ chunk: index, name, text, chunkType, chunkId });
  let over = false;
  const reading = (async () => {
    for await (const snapshot of readUIMessageStream({ message, stream, onError })) snapshots.push([index, snapshot]);
    over = true;
  })();
  for (const chunk of chunks) {
    index += 1;
    feed.enqueue(chunk);
    await turn();
    if (over) break;
  }
  if (!over) feed.close();
  await reading;
  return { snapshots, errors };
}

async function answer(question) {
  if (question.chunks) return fold(question);
  if (question.texts) return Promise.all(question.texts.map((text) => parsePartialJson(text)));
  return Promise.all(question.shapes.map(async (chunk) => (await schema.validate(chunk)).success));
}

const written = (_, value) => (typeof value === "number" && !Number.isFinite(value) ? { $nonfinite: String(value) } : value);

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)), written)}\n`);
}
