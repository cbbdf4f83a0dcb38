// A client of `recto exec`. Run it with Node 22.18 or later: node examples/exec_client.mts
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

type Json = Record<string, any>;

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
      // {code, message, field?, details?}
      if (response.error) throw Object.assign(new Error(response.error.message), response.error);
      return response;
    },
    close: () => child.stdin.end(),
  };
}

const recto = open("memory:");
await recto.request({ create: "support", messages: [{ role: "user", content: "Hello" }] });
const op = { operation: "APPEND", messages: [{ role: "assistant", content: "How can I help?" }] };
const outcome = await recto.request({ conversation: "support", op, expectedVersion: 0 });
console.log("version", outcome.version, "has", outcome.stats.currentBatchMessages, "messages");
await recto.request({ conversation: "support", op, expectedVersion: 0 })
  .catch((error) => console.log("refused:", error.code));
recto.close();
