// An agent of LangChain.js whose state LangGraph.js stores in files.

import { trimMessages } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { createAgent, createMiddleware, summarizationMiddleware } from "langchain";
import { z } from "zod";

import { countTokens, Store } from "recto-context";
import { rectoMiddleware } from "recto-context/langchain";
import { RectoSaver } from "recto-context/langgraph";

import { FileSaver } from "../test/langgraph-process/file-saver.mjs";
import { BUDGET, INSTRUCTIONS, KEPT_MESSAGES, TARGET } from "./scenario.mjs";

export const langchain = {
  name: "LangChain.js, LangGraph.js",
  variants: ["nothing", "trimMessages, countTokens of recto-context", "summarizationMiddleware", "rectoMiddleware, RectoSaver"],
  run,
};

const CONFIG = { configurable: { thread_id: "t" }, recursionLimit: 1_000 };

/** The example of LangChain's documentation of `trimMessages`, for each model call. */
const trimming = createMiddleware({
  name: "Trimming",
  wrapModelCall: async (request, handler) => {
    const messages = await trimMessages(request.messages, {
      strategy: "last",
      tokenCounter: (list) => countTokens(list.map((message) => message.toDict()), { format: "langchain" }),
      maxTokens: BUDGET,
      startOn: "human",
      endOn: ["human", "tool"],
    });
    return handler({ ...request, messages });
  },
});

async function run(variant, scenario, folder, { ChatOpenAI }) {
  const model = new ChatOpenAI({
    model: "scripted",
    apiKey: "none",
    maxRetries: 0,
    useResponsesApi: true, // for chat completions, the client sends names of tools that OpenAI does not describe
    configuration: { baseURL: `${scenario.url}/v1` },
  });
  const schema = z.object({ path: z.string() });
  let abort;
  // The user stops the answer: an exception of a tool alone would be a result.
  const read = tool(async ({ path }) => scenario.read(path, () => abort.abort()), { name: "read", description: "Reads a file.", schema });
  let checkpointer = new FileSaver(`${folder}/state`);
  let store;
  const middleware = [];
  if (variant.startsWith("trimMessages")) middleware.push(trimming);
  if (variant === "summarizationMiddleware") {
    middleware.push(summarizationMiddleware({ model, trigger: { tokens: BUDGET }, keep: { messages: KEPT_MESSAGES } }));
  }
  if (variant.startsWith("recto")) {
    store = await Store.open(`sqlite:${folder}/recto.db`, { search: false });
    const context = await rectoMiddleware(store, { maxTokens: BUDGET, targetTokens: TARGET });
    middleware.push(context.middleware);
    checkpointer = new RectoSaver(checkpointer, store);
  }
  const agent = createAgent({ model, tools: [read], systemPrompt: INSTRUCTIONS, middleware, checkpointer });
  await scenario.ask((question) => {
    abort = new AbortController();
    return agent.invoke({ messages: [{ role: "user", content: question }] }, { ...CONFIG, signal: abort.signal });
  });
  const { messages } = (await agent.graph.getState(CONFIG)).values;
  store?.close();
  // A summary is a message that the middleware has marked.
  return messages.filter(({ additional_kwargs }) => additional_kwargs.lc_source === undefined).length;
}
