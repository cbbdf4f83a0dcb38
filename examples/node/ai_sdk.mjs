// A tool loop of the AI SDK whose steps fit a token budget, and a chat in a store, with a scripted model.

import { convertToModelMessages, generateText, jsonSchema, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { recto } from "recto-context/ai-sdk";

const requests = [];
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) => {
    const number = requests.push(prompt.length);
    const call = { type: "tool-call", toolCallId: `call-${number}`, toolName: "read", input: '{"path":"a.log"}' };
    const isDone = number > 12;
    const content = [isDone ? { type: "text", text: "The disk is full." } : call];
    return { content, finishReason: { unified: isDone ? "stop" : "tool-calls" }, usage, warnings: [] };
  },
});
const inputSchema = jsonSchema({ type: "object", properties: { path: { type: "string" } } });
const read = tool({ description: "Reads a file.", inputSchema, execute: async () => "a line of the log\n".repeat(20) });

const store = await recto.open("memory:"); // or "sqlite:recto.db"
const chat = await store.chat("user-42");
const question = { id: "1", role: "user", parts: [{ type: "text", text: "Why does checkout fail?" }] };
await chat.save([question]);
const result = await generateText({
  model,
  tools: { read },
  messages: await convertToModelMessages(await chat.load()),
  stopWhen: stepCountIs(20),
  prepareStep: chat.prepareStep({ maxTokens: 600 }),
});
await chat.save([question, { id: "2", role: "assistant", parts: [{ type: "text", text: result.text }] }]);

console.log(result.text);
console.log(`the response has ${result.response.messages.length} messages, the longest request had ${Math.max(...requests)}`);
// The user edits the question: the old one and its answer stay in earlier versions.
await chat.save([{ ...question, id: "3", parts: [{ type: "text", text: "And in June?" }] }]);
console.log(`now ${(await chat.load()).length} message, at version 2 there were ${(await chat.load({ at: 2 })).length}`);
