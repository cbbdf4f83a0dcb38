// A LangGraph thread whose messages are a Recto conversation.

import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MemorySaver, MessagesAnnotation, StateGraph } from "@langchain/langgraph";

import { Store } from "recto-context";
import { RectoSaver } from "recto-context/langgraph";

const saver = new RectoSaver(new MemorySaver(), await Store.open("memory:"));
const answer = ({ messages }) => ({ messages: [new AIMessage(`answer ${messages.length}`)] });
const graph = new StateGraph(MessagesAnnotation).addNode("answer", answer).addEdge("__start__", "answer");
const app = graph.compile({ checkpointer: saver });

const config = { configurable: { thread_id: "t1" } };
await app.invoke({ messages: [new HumanMessage("Why does checkout fail?")] }, config);
await app.invoke({ messages: [new HumanMessage("And in June?")] }, config);

const state = await app.getState(config);
console.log(state.values.messages.map(({ content }) => content).join(" | "));
const conversation = saver.conversation("t1");
for (const { version, operation, messages } of await conversation.versions()) console.log(version, operation, messages);
