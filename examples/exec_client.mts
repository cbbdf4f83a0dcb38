// A client of `recto exec`. Run it with Node 22.18 or later: node examples/exec_client.mts

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

type Json = Record<string, any>;

export class RectoError extends Error {
  code: string;
  constructor(error: Json) {
    super(`${error.code}: ${error.message}`);
    this.code = error.code;
  }
}

export function open(store: string) {
  const child = spawn("recto", ["exec", "--store", store], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    // Responses come in the order of the requests, so several may be in progress.
    async request(fields: Json): Promise<Json> {
      child.stdin.write(JSON.stringify(fields) + "\n");
      const { value, done } = await lines.next();
      if (done) throw new Error("recto exec has ended");
      const response: Json = JSON.parse(value);
      if (response.error) throw new RectoError(response.error);
      return response;
    },
    close: () => child.stdin.end(),
  };
}

const recto = open("memory:");
await recto.request({ create: "support", messages: [{ role: "user", content: "Hello" }] });
const answer = { role: "assistant", content: "Hello! How can I help?" };
const append = { conversation: "support", op: { operation: "APPEND", messages: [answer] }, expectedVersion: 0 };
const outcome = await recto.request(append);
console.log("version", outcome.version, "has", outcome.stats.currentBatchMessages, "messages");
await recto.request(append).catch((error: RectoError) => console.log("refused:", error.code));
recto.close();
