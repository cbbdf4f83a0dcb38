// Runs turns of a thread in a separate process: node turns.mjs FOLDER NAME TURNS [PUT]
//
// Before each checkpoint, its messages are written to FOLDER/expected. At the put with the number PUT, the process
// kills itself after the messages are stored and before the checkpoint is.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { AIMessage, HumanMessage, RemoveMessage } from "@langchain/core/messages";
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";

import { Store } from "recto-context";
import { RectoSaver } from "recto-context/langgraph";

import { FileSaver } from "./file-saver.mjs";

const [folder, name, turns, killed] = process.argv.slice(2);
mkdirSync(join(folder, "expected"), { recursive: true });

let puts = 0;
class Killed extends FileSaver {
  async put(...args) {
    if (++puts === Number(killed)) process.kill(process.pid, "SIGKILL");
    return super.put(...args);
  }
}
class Recorded extends RectoSaver {
  async put(config, checkpoint, ...rest) {
    const messages = (checkpoint.channel_values.messages ?? []).map((message) => message.toDict());
    writeFileSync(join(folder, "expected", checkpoint.id), JSON.stringify(messages));
    return super.put(config, checkpoint, ...rest);
  }
}

const store = await Store.open(`sqlite:${join(folder, "conversations.db")}`, { search: false });
const saver = new Recorded(new Killed(join(folder, "checkpoints")), store, { counter: "approx" });
const answer = ({ messages }) => ({ messages: [new AIMessage({ content: `${name}: answer ${messages.length}` })] });
const app = new StateGraph(MessagesAnnotation).addNode("n", answer).addEdge("__start__", "n").compile({ checkpointer: saver });
const config = { configurable: { thread_id: "t" } };
console.log("ready");
for (let turn = 0; turn < Number(turns); turn++) {
  const { messages = [] } = (await app.getState(config)).values;
  // Every fourth turn also removes a message, which is a change in the middle.
  const removed = turn % 4 === 3 && messages.length > 2 ? [new RemoveMessage({ id: messages[1].id })] : [];
  const question = new HumanMessage(`${name}: question ${turn}`);
  try {
    await app.invoke({ messages: [...removed, question] }, config);
  } catch (error) {
    // Another process may have removed the message since the state was read. LangGraph then refuses the input.
    if (removed.length === 0 || !error.message.includes("doesn't exist")) throw error;
    await app.invoke({ messages: [question] }, config);
  }
}
store.close();
