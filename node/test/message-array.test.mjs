// The API of the seeds. Code and configurations are those of the five documents.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { ConversationExists, RectoError as RootError, Store } from "recto-context";
import * as seeds from "recto-context/message-array";

const {
  contextProcessorHandler,
  ContextProcessorNodeHandler,
  ConversationManager,
  getRecentMessages,
  handleTruncateOperation,
  LLMExecutionCoordinator,
  MessageArrayManagerImpl,
  RectoError,
  transformContextProcessorNodeConfig,
  TypeIndexManager,
  validateContextProcessorNodeConfig,
  validateOperation,
  ValidationError,
} = seeds;

const place = mkdtempSync(join(tmpdir(), "recto-"));
after(() => rmSync(place, { recursive: true, force: true }));

const texts = (messages) => messages.map((message) => message.content);
const user = (content) => ({ role: "user", content });
/** A conversation with messages m0, m1 …, of a user and an assistant in turn. */
function chat(length = 8, options = {}) {
  const conversation = new ConversationManager({ counter: "approx", ...options });
  for (let n = 0; n < length; n++) conversation.addMessage({ role: n % 2 ? "assistant" : "user", content: `m${n}` });
  return conversation;
}

test("the message array: operations, batches, snapshots, statistics", () => {
  const manager = new MessageArrayManagerImpl([{ role: "system", content: "s" }, user("u")]);
  assert.deepEqual(manager.getStats(), {
    totalMessages: 2, currentBatchMessages: 2, totalBatches: 1, currentBatchIndex: 0, tokens: 8,
  });
  const appended = manager.execute({ operation: "APPEND", messages: [user("v")] });
  assert.equal(appended.affectedBatchIndex, 0);
  const inserted = manager.execute({ operation: "INSERT", position: 1, messages: [user("w")] });
  assert.equal(inserted.affectedBatchIndex, 1);
  const replaced = manager.execute({ operation: "REPLACE", index: 0, message: { role: "system", content: "t" } });
  const truncated = manager.execute({ operation: "TRUNCATE", keepLast: 3 });
  const filtered = manager.execute({ operation: "FILTER", roles: ["user"], contentExcludes: ["w"] });
  const cleared = manager.execute({ operation: "CLEAR", keepSystemMessage: false });
  assert.equal(cleared.affectedBatchIndex, 5);
  // The state of a result is the state after its operation, also if it is read later.
  assert.deepEqual(texts(appended.state.messages), ["s", "u", "v"]);
  assert.deepEqual(texts(inserted.state.messages), ["s", "w", "u", "v"]);
  assert.deepEqual(texts(replaced.state.messages), ["t", "w", "u", "v"]);
  assert.deepEqual(texts(truncated.state.messages), ["w", "u", "v"]);
  assert.deepEqual(texts(filtered.state.messages), ["u", "v"]);
  assert.deepEqual(texts(cleared.state.messages), []);
  assert.equal(inserted.state.currentBatchIndex, 1);
  assert.equal(inserted.state.totalMessageCount, 4);
  assert.deepEqual(inserted.state.batchSnapshots.map((one) => texts(one.messages)), [["s", "u", "v"]]);
  assert.equal(inserted.state, inserted.state);
  assert.deepEqual(manager.getState(), cleared.state);

  const snapshot = manager.getBatchSnapshot(1);
  assert.equal(snapshot.batchIndex, 1);
  assert.equal(snapshot.messageCount, 4);
  assert.equal(typeof snapshot.timestamp, "number");
  assert.equal(manager.getBatchSnapshot(9), null);
  assert.equal(manager.getBatchSnapshot(-1), null);

  const back = manager.rollback(1);
  assert.equal(back.affectedBatchIndex, 1);
  assert.deepEqual(texts(manager.getCurrentMessages()), ["s", "w", "u", "v"]);
  assert.throws(() => manager.rollback(7), (error) => error.code === "batch_not_found");
  assert.throws(() => manager.execute({ operation: "SHUFFLE" }), ValidationError);
  assert.throws(() => manager.execute({ operation: "INSERT", position: -1, messages: [user("x")] }), ValidationError);
  assert.deepEqual(Object.keys(JSON.parse(JSON.stringify(back))).includes("state"), true);
});

test("the lists of a result are those of its operation, however late they are read", () => {
  const store = Store.openSync("memory:");
  const manager = new MessageArrayManagerImpl([0, 1, 2, 3].map((n) => user(`m${n}`)), { store, name: "lists" });
  const appended = manager.execute({ operation: "APPEND", messages: [user("m4")] });
  const truncated = manager.execute({ operation: "TRUNCATE", keepLast: 2 });
  const back = manager.rollback(0);
  const nothing = manager.execute({ operation: "TRUNCATE", keepLast: 9 });
  store.conversation("lists").requestSync({ remove: true });
  const lists = ({ hidden, shown, added }) => ({ hidden, shown, added });
  assert.deepEqual(lists(appended), { hidden: [], shown: [], added: [4] });
  assert.deepEqual(lists(truncated), { hidden: [0, 1, 2], shown: [], added: [] });
  assert.deepEqual(lists(back), { hidden: [], shown: [0, 1, 2], added: [] });
  assert.deepEqual(lists(nothing), { hidden: [], shown: [], added: [] });
  assert.equal(truncated.hidden, truncated.hidden);
  truncated.hidden = [7];
  assert.deepEqual(truncated.hidden, [7]);
});

test("a result has the fields of the response, and the same values", () => {
  const messages = [0, 1, 2].map((n) => user(`m${n}`));
  const store = Store.openSync("memory:");
  const manager = new MessageArrayManagerImpl(messages, { store, name: "a" });
  store.requestSync({ create: "b", messages });
  for (const op of [{ operation: "TRUNCATE", keepLast: 1 }, { operation: "INSERT", position: 0, messages }]) {
    const { state, ...result } = manager.execute(op);
    assert.deepEqual(result, store.conversation("b").requestSync({ op }));
    assert.deepEqual(state.messages, manager.getCurrentMessages());
  }
  store.close();
  assert.throws(() => manager.execute({ operation: "CLEAR" }), (error) => error.code === "storage");
});

test("content parts of seed 004 come back as they were given", () => {
  const messages = [
    { role: "assistant", content: [{ type: "tool_use", tool_use: { id: "t", name: "g", input: { a: 1 } } }] },
    { role: "tool", content: [{ type: "tool_result", tool_result: { tool_use_id: "t", content: "ok" } }] },
    { role: "user", content: [{ type: "image", image_url: { url: "https://x/y.png" } }], id: "i", metadata: { k: [1] } },
  ];
  assert.deepEqual(new MessageArrayManagerImpl(messages).getCurrentMessages(), messages);
});

test("the message array is kept in a store", () => {
  const store = `sqlite:${place}/array.db`;
  const first = new MessageArrayManagerImpl([user("a")], { store, name: "talk" });
  first.execute({ operation: "APPEND", messages: [user("b")] });
  const second = new MessageArrayManagerImpl([], { store, name: "talk" });
  assert.deepEqual(texts(second.getCurrentMessages()), ["a", "b"]);
  assert.throws(() => new MessageArrayManagerImpl([user("c")], { store, name: "talk" }), ConversationExists);
  const opened = Store.openSync("memory:");
  new ConversationManager({ store: opened, name: "c" }).addMessage(user("hi"));
  assert.equal(opened.requestSync({ conversation: "c", stats: true }).totalMessages, 1);
});

test("seed 000: scenarios 1 to 4", () => {
  const one = chat();
  contextProcessorHandler(one, { operation: "truncate", truncate: { keepLast: 5 } });
  assert.deepEqual(texts(one.getMessages()), ["m3", "m4", "m5", "m6", "m7"]);
  assert.equal(one.getAllMessages().length, 8);
  contextProcessorHandler(one, {
    operation: "insert",
    insert: { position: 0, messages: [{ role: "system", content: "新指令" }] },
  });
  assert.equal(one.getMessages()[0].content, "新指令");
  contextProcessorHandler(one, { operation: "clear", clear: { keepSystemMessage: true } });
  assert.deepEqual(texts(one.getMessages()), ["新指令"]);
  const four = chat(3);
  four.addMessage([{ role: "system", content: "s" }, { role: "tool", content: "t" }]);
  contextProcessorHandler(four, { operation: "filter", filter: { roles: ["user", "assistant"] } });
  assert.deepEqual(texts(four.getMessages()), ["m0", "m1", "m2"]);
  contextProcessorHandler(four, { operation: "insert", insert: { position: -1, messages: [user("end")] } });
  contextProcessorHandler(four, { operation: "replace", replace: { index: 0, message: user("new") } });
  assert.deepEqual(texts(four.getMessages()), ["new", "m1", "m2", "end"]);
});

test("seed 000: the tool description", () => {
  const tools = [{ name: "echo", description: "Says it again." }];
  const conversation = chat(3, { availableTools: tools });
  const description = "可用工具:\n- echo: Says it again.";
  assert.deepEqual(conversation.getInitialToolDescriptionMessage(), { role: "system", content: description });
  assert.deepEqual(texts(conversation.getMessages()), [description, "m0", "m1", "m2"]);
  conversation.clearMessages(false);
  assert.deepEqual(texts(conversation.getMessages()), [description]);
  conversation.rollbackToBatch(0);
  conversation.startNewBatchWithInitialTools(3);
  assert.deepEqual(texts(conversation.getMessages()), [description, "m2"]);
  // The code of CLEAR in the seed: reset, then a batch with the tools.
  conversation.getIndexManager().reset();
  conversation.startNewBatchWithInitialTools(0);
  assert.deepEqual(texts(conversation.getMessages()), [description]);
  assert.equal(chat(1).getInitialToolDescriptionMessage(), null);
});

test("seed 001: the code of truncate, insert, filter and clear", () => {
  const conversationManager = chat();
  let newIndices = [...conversationManager.getMarkMap().originalIndices].slice(-3);
  const indexManager = conversationManager.getIndexManager();
  indexManager.setOriginalIndices(newIndices);
  indexManager.startNewBatch(Math.min(...newIndices));
  assert.deepEqual(texts(conversationManager.getMessages()), ["m5", "m6", "m7"]);
  assert.equal(conversationManager.getMarkMap().currentBatch, 1);
  assert.deepEqual(conversationManager.getMarkMap().batchBoundaries, [0, 5]);

  const currentIndices = conversationManager.getMarkMap().originalIndices;
  const insertedIndices = [conversationManager.addMessage(user("new")) - 1];
  newIndices = [...currentIndices];
  newIndices.splice(1, 0, ...insertedIndices);
  conversationManager.getIndexManager().setOriginalIndices(newIndices);
  assert.deepEqual(texts(conversationManager.getMessages()), ["m5", "new", "m6", "m7"]);

  const allMessages = conversationManager.getAllMessages();
  const filteredIndices = newIndices.filter((index) => allMessages[index].role === "user");
  conversationManager.getIndexManager().setOriginalIndices(filteredIndices);
  conversationManager.getIndexManager().startNewBatch(Math.min(...filteredIndices));
  assert.deepEqual(texts(conversationManager.getMessages()), ["new", "m6"]);

  conversationManager.getIndexManager().reset();
  assert.deepEqual(conversationManager.getMessages(), []);
  conversationManager.rollbackToBatch(0);
  assert.deepEqual(texts(conversationManager.getMessages()), ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"]);
  // A boundary that hides something opens another batch.
  indexManager.setOriginalIndices([1, 2, 3]);
  indexManager.startNewBatch(2);
  assert.deepEqual(indexManager.getCurrentBatchIndices(), [2, 3]);
});

test("seed 002: temporary prompt, replace, compress", async () => {
  const handler = new ContextProcessorNodeHandler();
  const conversation = chat(6);
  await handler.handleContextOperation(conversation, "batch_start", [5]);
  assert.deepEqual(conversation.getMarkMap().batchBoundaries, [0, 5]);
  assert.deepEqual(conversation.getMarkMap().boundaryToBatch, [0, 1]);
  await handler.handleContextOperation(conversation, "insert", [], { role: "system", content: "临时提示" });
  assert.deepEqual(texts(conversation.getUncompressedMessages()), ["m5", "临时提示"]);
  await handler.handleContextOperation(conversation, "batch_end", [0]);
  assert.deepEqual(conversation.getMarkMap().batchBoundaries, [0]);
  assert.equal(conversation.getMessages().length, 6);
  await handler.handleContextOperation(conversation, "replace", [3], user("修正后的消息"));
  assert.equal(conversation.getMessages()[3].content, "修正后的消息");
  await handler.handleContextOperation(conversation, "compress", [0, 1, 2]);
  assert.deepEqual(texts(conversation.getMessages()), ["修正后的消息", "m4", "m5"]);
  assert(conversation.indexManager.isModified(1));
  assert(!conversation.indexManager.isModified(4));
  assert(conversation.checkConsistency() && conversation["indexManager"].checkConsistency());
  assert.equal(conversation.indexManager.findBoundaryIndex(2), 2);
  assert.equal(conversation.indexManager.findBoundaryIndex(9), -1);
  conversation.indexManager.addIndex(0);
  conversation.indexManager.addIndex(0);
  assert.deepEqual(texts(conversation.getMessages()), ["修正后的消息", "m4", "m5", "m0"]);
  conversation.indexManager.markCompressed([0]);
  conversation.indexManager.rollbackToBatch(0);
  assert.equal(conversation.getMessages().length, 6);
  await assert.rejects(handler.handleContextOperation(conversation, "batch_end", [7]), (e) => e.code === "batch_not_found");
});

test("seed 002: the complete workflow and a list of operations", async () => {
  const handler = new ContextProcessorNodeHandler();
  const conversationManager = new ConversationManager({
    tokenLimit: 8000,
    compressionConfig: { enabled: true, threshold: 6000, targetTokens: 4000 },
  });
  conversationManager.addMessage({ role: "user", content: "Hello" });
  conversationManager.addMessage({ role: "assistant", content: "Hi there!" });
  await handler.handleContextOperation(conversationManager, "batch_start", [2]);
  await handler.handleContextOperation(conversationManager, "insert", [], { role: "system", content: "请专注于当前任务" });
  await handler.handleContextOperation(conversationManager, "batch_end", [0]);
  await handler.handleContextOperation(conversationManager, "compress", [0, 1]);
  assert.deepEqual(conversationManager.getMessages(), []);
  handler.rollbackContextOperation(conversationManager, 0);
  assert.deepEqual(texts(conversationManager.getMessages()), ["Hello", "Hi there!"]);

  const conversation = chat(6);
  const operations = [
    { operation: "batch_start", indices: [5] },
    { operation: "insert", indices: [], data: { role: "system", content: "临时提示" } },
    { operation: "compress", indices: [0, 1, 2] },
    { operation: "batch_end", indices: [0] },
  ];
  await handler.handleBatchOperations(conversation, operations);
  await handler.handleBatchOperations(conversation, []);
  assert.equal(conversation.getMessages().length, 6);
  // All operations are applied, or none.
  await assert.rejects(handler.handleBatchOperations(conversation, [operations[0], { operation: "delete", indices: [99] }]));
  assert.equal(conversation.getMarkMap().currentBatch, 0);
});

test("batches where the seeds contradict each other", async () => {
  const handler = new ContextProcessorNodeHandler();
  const conversation = new ConversationManager({ availableTools: [{ name: "search", description: "Searches." }] });
  assert.equal(conversation.getMarkMap().currentBatch, 0);
  for (const text of ["m1", "m2", "m3", "m4"]) conversation.addMessage(user(text));
  assert.equal(conversation.getMarkMap().currentBatch, 0);
  conversation.execute({ operation: "DELETE", indices: [2, 3] });
  await handler.handleContextOperation(conversation, "batch_start", [2]);
  assert.deepEqual(conversation.getMarkMap().batchBoundaries, [0, 0, 4]);
  conversation.addMessage(user("temporary"));
  await handler.handleContextOperation(conversation, "batch_end", [0]);
  assert.deepEqual(texts(conversation.getMessages()).slice(1), ["m1", "m2", "m3", "m4"]);
  assert.equal(conversation.getAllMessages().at(-1).content, "temporary");
  await handler.handleContextOperation(conversation, "batch_start", [6]);
  assert.deepEqual(conversation.getMessages(), []);
});

test("seed 002: cleanup keeps indices", () => {
  const conversation = chat(4);
  conversation.execute({ operation: "TRUNCATE", keepLast: 2 });
  conversation.cleanupCompressedMessages();
  assert.deepEqual(texts(conversation.getAllMessages()).slice(2), ["m2", "m3"]);
  assert.deepEqual(conversation.getMarkMap().originalIndices, [2, 3]);
  assert(!texts(conversation.getAllMessages()).includes("m0"));
});

test("seed 002: validation", () => {
  validateOperation("insert", [], user("x"));
  validateOperation("batch_end", [0]);
  for (const [args, field] of [
    [["shuffle", []], "operation"],
    [[Object.create(null), []], "operation"],
    [["delete", [-1]], "indices"],
    [["delete", ["1"]], "indices"],
    [["insert", []], "data"],
    [["batch_start", []], "indices"],
  ]) {
    assert.throws(() => validateOperation(...args), (error) => error instanceof ValidationError && error.field === field);
  }
});

test("wrong types are refused with the name of the field", async () => {
  assert.throws(() => new ConversationManager({ store: true }), /^TypeError: store must be a store or an address/);
  const handler = new ContextProcessorNodeHandler();
  const batch = handler.handleBatchOperations(new ConversationManager(), undefined);
  await assert.rejects(batch, /^TypeError: operations must be a list, not undefined/);
});

test("seed 003: queries by role, range, time and mark", () => {
  const conversation = new ConversationManager();
  conversation.addMessage({ role: "system", content: "s", timestamp: 1 });
  for (let n = 0; n < 6; n++) {
    conversation.addMessage({ role: n % 2 ? "assistant" : "user", content: `m${n}`, timestamp: 1000 + n });
  }
  assert.deepEqual(texts(conversation.getRecentMessagesByRole("user", 2)), ["m2", "m4"]);
  assert.deepEqual(texts(conversation.getMessagesByRole("system")), ["s"]);
  assert.deepEqual(texts(conversation.getMessagesByRoleRange("assistant", 1, 5)), ["m3", "m5"]);
  assert.equal(conversation.getMessageCountByRole("user"), 3);
  assert.deepEqual(texts(getRecentMessages(conversation, 2)), ["m4", "m5"]);
  assert.deepEqual(texts(getRecentMessages(conversation, 1, "user")), ["m4"]);
  assert.deepEqual(getRecentMessages(conversation, 0), []);
  assert.deepEqual(texts(conversation.getMessagesByRange(1, 3)), ["m0", "m1"]);
  assert.deepEqual(texts(conversation.getRecentMessagesByRoles(["user", "system"], 2)), ["m2", "m4"]);
  assert.deepEqual(texts(conversation.getMessagesByRoleAndTimeRange("user", 1000, 1003)), ["m0", "m2"]);
  conversation.markMessage(3, "important");
  assert.deepEqual(texts(conversation.getMarkedMessagesByRole("user", "important")), ["m2"]);
  handleTruncateOperation(conversation, { role: "user", keepLast: 2 });
  assert.deepEqual(texts(conversation.getMessages()), ["m2", "m4"]);
  assert.equal(conversation.filterMessagesByRole("user").length, 3);
  assert.throws(() => handleTruncateOperation(conversation), (e) => e instanceof ValidationError && e.field === "config");
});

test("seed 003: the index by role", () => {
  const conversation = chat(4);
  const types = conversation.getTypeIndexManager();
  assert.deepEqual(types.getIndicesByRole("user"), [0, 2]);
  conversation.addMessage(user("m4"));
  assert.deepEqual(types.getRecentIndicesByRole("user", 2), [2, 4]);
  assert.deepEqual(types.getRecentIndicesByRole("user", 0), []);
  assert.deepEqual(types.getRangeIndicesByRole("user", 1, 3), [2, 4]);
  assert.deepEqual(types.getAllTypeIndices().get("assistant"), [1, 3]);
  assert.throws(() => types.addIndex("user", 9), RectoError);
  const copy = types.clone();
  copy.addIndex("tool", 9);
  copy.removeIndices([0]);
  assert.deepEqual([copy.getIndicesByRole("tool"), copy.getIndicesByRole("user")], [[9], [2, 4]]);
  copy.reset();
  assert.deepEqual(copy.getIndicesByRole("user"), []);
  const own = new TypeIndexManager();
  own.addIndex("user", 3);
  assert.deepEqual(own.getAllTypeIndices(), new Map([["user", [3]]]));
});

test("seed 003: a message without role or content is a ValidationError", () => {
  const conversation = new ConversationManager();
  for (const message of [{ role: "user" }, { content: "x" }, { role: "user", content: "" }, 7, null]) {
    assert.throws(() => conversation.addMessage(message), (error) => {
      return error instanceof ValidationError && error.name === "ValidationError" && error.field.startsWith("messages[0]");
    });
  }
  assert.equal(conversation.addMessage(user("x")), 1);
  assert.equal(RectoError, RootError);
  assert.equal(new ValidationError("m", "f").field, "f");
});

test("seed 001: configurations of nodes are validated and transformed", () => {
  const nodes = [
    [{ operation: "truncate", truncate: { keepLast: 5 } }, { operation: "TRUNCATE", keepLast: 5 }],
    [{ operation: "clear" }, { operation: "CLEAR" }],
    [{ operation: "replace", replace: { index: 7, message: user("x") } }, { operation: "REPLACE", index: 7, message: user("x") }],
    [{ operation: "insert", insert: { position: -1, messages: [user("x")] } }, { operation: "APPEND", messages: [user("x")] }],
    [{ operation: "filter", filter: { roles: ["user"] }, clear: null }, { operation: "FILTER", roles: ["user"] }],
  ];
  for (const [node, operation] of nodes) assert.deepEqual(transformContextProcessorNodeConfig(node), operation);
  for (const node of [
    undefined, null, 7, {}, { operation: "append" }, { operation: "truncate" }, { operation: "truncate", truncate: {} },
    { operation: "filter", filter: { roles: [] } }, { operation: "truncate", truncate: { keepLast: -1 } },
    { operation: "truncate", truncate: { range: { start: 3, end: 1 } } },
    { operation: "insert", insert: { position: 0, messages: [{ role: "user" }] } },
  ]) {
    assert.throws(() => validateContextProcessorNodeConfig(node), ValidationError, JSON.stringify(node));
  }
});

test("the token check compresses, and the batch before brings everything back", async () => {
  const compressionConfig = { enabled: true, threshold: 60, targetTokens: 30 };
  const conversation = chat(5, { tokenLimit: 100, compressionConfig });
  conversation.addMessage({ role: "system", content: "s" });
  assert.deepEqual(await conversation.checkTokenUsage(), { tokens: 24, limit: 100, compressed: false });
  for (let n = 0; n < 20; n++) conversation.addMessage(user("more"));
  const check = await conversation.checkTokenUsage();
  assert(check.compressed && check.tokens <= 30);
  assert(texts(conversation.getMessages()).includes("s"));
  conversation.rollbackToBatch(0);
  assert.equal(conversation.getMessages().length, 26);
  assert.deepEqual(await chat(1).checkTokenUsage(), { tokens: 4, compressed: false });
  const summarise = { ...compressionConfig, strategy: "summarise" };
  const isNamed = (error) => error.field === "compressionConfig.strategy";
  assert.throws(() => new ConversationManager({ compressionConfig: summarise }), isNamed);
});

test("the model loop sends visible messages, runs tools and keeps failures", async () => {
  const sent = [];
  const answers = [
    { role: "assistant", content: [{ type: "tool_use", id: "1", name: "add", input: { a: 1 } }] },
    { role: "assistant", content: "calls", toolCalls: [{ id: "2", function: { name: "fail", arguments: "{oops" } }] },
    { role: "assistant", content: "done" },
  ];
  const executor = { executeLLMCall: async (messages) => (sent.push(texts(messages)), answers[sent.length - 1]) };
  const called = [];
  const runTool = async (call) => {
    called.push(call);
    if (call.name === "fail") throw new Error("no such file");
    return { role: "tool", content: [{ type: "tool_result", tool_use_id: call.id, content: "2" }] };
  };
  const conversation = chat(4);
  conversation.execute({ operation: "TRUNCATE", keepLast: 1 });
  const answer = await new LLMExecutionCoordinator(executor, runTool).executeLLMLoop(conversation, user("go"));
  assert.equal(answer.content, "done");
  assert.deepEqual(sent[0], ["m3", "go"]);
  assert.deepEqual(called.map((call) => call.input), [{ a: 1 }, "{oops"]);
  assert.equal(conversation.getMessages().at(-2).content[0].content, "no such file");
  const endless = { executeLLMCall: async () => answers[0] };
  const limited = new LLMExecutionCoordinator(endless, runTool, { maxTurns: 3 });
  await assert.rejects(limited.executeLLMLoop(conversation), /3 turns/);
});
