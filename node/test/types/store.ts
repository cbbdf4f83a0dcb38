// Compiled only: the types of the package, as a program uses them.

import { Conversation, RectoError, Store, VersionConflict, type Message, type Operation, type Outcome } from "recto-context";

async function use(): Promise<void> {
  const store: Store = await Store.open("sqlite:talks.db", { search: false, tenant: "t" });
  const talk: Conversation = await store.create("talk", { counter: "approx", messages: [{ role: "user", content: "hi" }] });
  const outcome: Outcome = await talk.append({ role: "user", content: [{ type: "text", text: "x" }], extra: 1 });
  const added: number[] = outcome.added;
  const operations: Operation[] = [
    { operation: "TRUNCATE", keepLast: 2, description: "short" },
    { operation: "ROLLBACK", targetVersion: 3 },
  ];
  await talk.apply(operations, { expectedVersion: 3, idempotencyKey: "k" });
  await talk.apply({ operation: "truncate", truncate: { keepLast: 3 } });
  const messages: Message[] = await talk.messages({ at: 1 });
  const any = await store.request({ list: true });
  const typed = await talk.request<{ count: number }>({ count: { role: "user" } });
  const text: string = store.requestJsonSync("{}");
  for await (const info of store.conversations()) info.name.toUpperCase();
  // @ts-expect-error an operation that does not exist
  await talk.apply({ operation: "SHUFFLE" });
  // @ts-expect-error a role that does not exist
  await talk.append({ role: "robot", content: "x" });
  // @ts-expect-error an option that does not exist
  await Store.open("memory:", { serch: true });
  // @ts-expect-error a provider that does not exist
  await talk.render("nobody");
  try {
    await talk.undo();
  } catch (error) {
    if (error instanceof VersionConflict) error.currentVersion?.toFixed();
    if (error instanceof RectoError) [error.code, error.field, error.details].toString();
  }
  [added, messages, any, typed.count, text].toString();
}

void use;
