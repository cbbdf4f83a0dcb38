// A LangChain agent whose model calls fit a token budget, with a scripted model.

import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent } from "langchain";
import { z } from "zod";

import { Store } from "recto-context";
import { rectoMiddleware } from "recto-context/langchain";

class Scripted extends BaseChatModel {
  requests = [];
  _llmType() {
    return "scripted";
  }
  bindTools() {
    return this;
  }
  async _generate(messages) {
    const number = this.requests.push(messages.length);
    const call = { id: `call-${number}`, name: "read", args: { path: "a.log" } };
    const message = new AIMessage(number > 12 ? "The disk is full." : { content: "", tool_calls: [call] });
    return { generations: [{ text: "", message }] };
  }
}

const schema = z.object({ path: z.string() });
const read = tool(async () => "a line of the log\n".repeat(20), { name: "read", description: "Reads.", schema });
const context = await rectoMiddleware(await Store.open("memory:"), { maxTokens: 600 });
const model = new Scripted({});
const agent = createAgent({ model, tools: [read], middleware: [context.middleware], checkpointer: new MemorySaver() });

const config = { configurable: { thread_id: "t1" }, recursionLimit: 50 };
const { messages } = await agent.invoke({ messages: [new HumanMessage("Why does checkout fail?")] }, config);
console.log(`the state has ${messages.length} messages, the longest request had ${Math.max(...model.requests)}`);
const versions = await context.conversation("t1").versions();
console.log(versions.find(({ operation }) => operation === "FIT").description);
