// Compiled only: the types of the package, as a program uses them.

import { Conversation, RectoError, Store, VersionConflict, type Appended, type Message, type Operation, type Outcome } from "recto-context";

async function use(): Promise<void> {
  const store: Store = await Store.open("sqlite:conversations.db", { search: false, tenant: "t" });
  const conversation: Conversation = await store.create("support", { counter: "approx", messages: [{ role: "user", content: "hi" }] });
  const outcome: Outcome = await conversation.append({ role: "user", content: [{ type: "text", text: "x" }], extra: 1 });
  const added: number[] = outcome.added;
  const operations: Operation[] = [
    { operation: "TRUNCATE", keepLast: 2, description: "short" },
    { operation: "ROLLBACK", targetVersion: 3 },
  ];
  const appended: Appended = await conversation.append({ role: "assistant", tool_calls: [] }, { format: "openai-chat", note: 1 });
  appended.remarks.map(({ line, field }) => [line.toFixed(), field]);
  await conversation.lint("anthropic", { at: 1, apiVersion: "2026-10-21", fields: { thinking: {} } });
  await store.import("b", {}, { select: "request.messages", return: ["state"] });
  // @ts-expect-error a message of a provider without its format
  await conversation.append({ role: "assistant", tool_calls: [] });
  await conversation.apply(operations, { expectedVersion: 3, idempotencyKey: "k" });
  await conversation.apply({ operation: "truncate", truncate: { keepLast: 3 } });
  const messages: Message[] = await conversation.messages({ at: 1 });
  const any = await store.request({ list: true });
  const typed = await conversation.request<{ count: number }>({ count: { role: "user" } });
  const text: string = store.requestJsonSync("{}");
  for await (const info of store.conversations()) info.name.toUpperCase();
  // @ts-expect-error an operation that does not exist
  await conversation.apply({ operation: "SHUFFLE" });
  // @ts-expect-error a role that does not exist
  await conversation.append({ role: "robot", content: "x" });
  // @ts-expect-error an option that does not exist
  await Store.open("memory:", { serch: true });
  const findings = await conversation.lint("anthropic", { model: "m", apiVersion: "2026-10-21", fields: { max_tokens: 9 } });
  // @ts-expect-error a provider that does not exist
  await conversation.render("nobody");
  try {
    await conversation.undo();
  } catch (error) {
    if (error instanceof VersionConflict) error.currentVersion?.toFixed();
    if (error instanceof RectoError) [error.code, error.field, error.details].toString();
  }
  [added, messages, any, typed.count, text, findings].toString();
}

void use;
