import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";

import { ConversationNotFound, VersionConflict } from "../errors.js";
import { textOf, toRecto, type LangChainMessage } from "../langchain/messages.js";
import type { Store } from "../store.js";
import type { Entry, Message, Operation, Settings } from "../types.js";

/** The field of `metadata` with the message, as the serializer of the checkpointer writes it. */
const KEY = "langgraph";
/** Number of conversations whose newest view stays in memory. */
const MAX_VIEWS = 256;
/** Maximum attempts after version conflicts. */
const MAX_ATTEMPTS = 100;

/** The messages of a version. */
interface View {
  version: number;
  items: Item[];
}

/** A message of a view. */
interface Item {
  /** Its log index. */
  index: number;
  /** The message, as the serializer writes it. */
  json: string;
  /**
   * The message object and the values of its fields when it was written, because an application may assign to it
   * afterwards. Missing in a loaded view.
   */
  fields?: Fields;
}

interface Fields {
  message: LangChainMessage;
  content: unknown;
  length: number;
  id: string | undefined;
  calls: unknown;
}

/** Messages of threads in conversations. */
export class MessageLog {
  readonly #store: Store;
  readonly #serde: SerializerProtocol;
  readonly #settings: Settings;
  readonly #views = new Map<string, View>();
  /** The last write of each conversation: writes of one conversation run one after the other. */
  readonly #writes = new Map<string, Promise<unknown>>();

  constructor(store: Store, serde: SerializerProtocol, settings: Settings) {
    this.#store = store;
    this.#serde = serde;
    this.#settings = settings;
  }

  /** The messages of a version. */
  async read(name: string, version: number): Promise<unknown[]> {
    const { items } = await this.#load(name, version);
    return this.#serde.loadsTyped("json", `[${items.map((item) => item.json).join(",")}]`);
  }

  /**
   * Makes the messages the view of a conversation, and returns the version that shows them. `undefined` if the
   * serializer does not write JSON.
   */
  write(name: string, messages: readonly LangChainMessage[]): Promise<number | undefined> {
    const given = [...messages]; // the application may change its list meanwhile
    const before = this.#writes.get(name) ?? Promise.resolve();
    const write = before.then(() => this.#write(name, given), () => this.#write(name, given));
    this.#writes.set(name, write);
    const done = () => {
      if (this.#writes.get(name) === write) this.#writes.delete(name);
    };
    write.then(done, done);
    return write;
  }

  forget(name: string): void {
    this.#views.delete(name);
  }

  async #write(name: string, messages: readonly LangChainMessage[]): Promise<number | undefined> {
    for (let attempt = 1; ; attempt++) {
      const view = this.#views.get(name) ?? (await this.#loadNewest(name));
      const items = await this.#compare(view, messages);
      if (items === undefined) return undefined;
      const { operations, added } = changes(view.items, items);
      let { version } = view;
      if (operations.length > 0) {
        try {
          const outcome = await this.#store
            .conversation(name)
            .apply(operations, { expectedVersion: version });
          version = outcome.version;
          added.forEach((item, at) => (item.index = outcome.added[at]!));
        } catch (error) {
          this.#views.delete(name);
          const isRetried = error instanceof VersionConflict || error instanceof ConversationNotFound;
          if (!isRetried || attempt === MAX_ATTEMPTS) throw error;
          continue;
        }
      }
      this.#keep(name, { version, items });
      return version;
    }
  }

  /** The messages as items: those of the view where nothing differs, and new ones with the index -1. */
  async #compare(view: View, messages: readonly LangChainMessage[]): Promise<Item[] | undefined> {
    const known = new Map(view.items.map((item) => [item.fields?.message, item] as const));
    const items: Item[] = [];
    let byJson: Map<string, Item[]> | undefined;
    const used = new Set<Item>();
    for (const message of messages) {
      const same = known.get(message);
      if (same?.fields && !used.has(same) && isUnchanged(same.fields)) {
        used.add(same);
        items.push(same);
        continue;
      }
      // The fields are copied before the message is written, so that the next comparison detects an assignment in between.
      const fields = fieldsOf(message);
      const [type, bytes] = await this.#serde.dumpsTyped(message);
      if (type !== "json") return undefined;
      const json = new TextDecoder().decode(bytes);
      byJson ??= grouped(view.items);
      const equal = byJson.get(json)?.find((item) => !used.has(item));
      if (equal) used.add(equal);
      items.push({ index: equal?.index ?? -1, json, fields });
    }
    return items;
  }

  async #loadNewest(name: string): Promise<View> {
    try {
      return await this.#load(name);
    } catch (error) {
      if (!(error instanceof ConversationNotFound)) throw error;
      await this.#store.conversationOrCreate(name, this.#settings);
      return this.#load(name);
    }
  }

  async #load(name: string, at?: number): Promise<View> {
    const request = { conversation: name, show: true, at };
    const { version, messages } = await this.#store.request<{ version: number; messages: Entry[] }>(request);
    return { version, items: messages.map(({ index, message }) => ({ index, json: jsonOf(message) })) };
  }

  #keep(name: string, view: View): void {
    this.#views.delete(name);
    this.#views.set(name, view);
    const [oldest] = this.#views.keys();
    if (this.#views.size > MAX_VIEWS) this.#views.delete(oldest!);
  }
}

function grouped(items: readonly Item[]): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(item.json);
    if (group) group.push(item);
    else groups.set(item.json, [item]);
  }
  return groups;
}

/** The operations that turn a view into other items, and the items that they add. */
function changes(view: readonly Item[], items: readonly Item[]): { operations: Operation[]; added: Item[] } {
  let front = 0;
  while (front < view.length && front < items.length && view[front]!.index === items[front]!.index) front++;
  let back = 0;
  const most = Math.min(view.length, items.length) - front;
  while (back < most && view.at(-1 - back)!.index === items.at(-1 - back)!.index) back++;
  const gone = view.slice(front, view.length - back).map((item) => item.index);
  const added = items.slice(front, items.length - back);
  const messages = added.map(messageOf);
  if (gone.length === 1 && added.length === 1) {
    return { operations: [{ operation: "REPLACE", index: front, message: messages[0]! }], added };
  }
  const operations: Operation[] = [];
  if (gone.length > 0) operations.push({ operation: "DELETE", indices: gone, description: "left by the graph" });
  if (added.length > 0 && back === 0) operations.push({ operation: "APPEND", messages });
  else if (added.length > 0) operations.push({ operation: "INSERT", position: front, messages });
  return { operations, added };
}

/** The message to store. Its text is stored only once: the dump has no copy of it. */
function messageOf({ json, fields }: Item): Message {
  const dump = JSON.parse(json);
  const message = toRecto(fields!.message);
  const [first] = Object.keys(dump.kwargs ?? {});
  if (first === "content" && textOf(message) === dump.kwargs.content) delete dump.kwargs.content;
  return { ...message, metadata: { [KEY]: dump } } as Message;
}

function jsonOf(message: Message): string {
  const dump = (message["metadata"] as Record<string, any> | undefined)?.[KEY];
  if (dump === undefined) return JSON.stringify(dumpOf(message));
  if (dump.kwargs !== undefined && !("content" in dump.kwargs)) {
    // `content` was the first field.
    return JSON.stringify({ ...dump, kwargs: { content: textOf(message), ...dump.kwargs } });
  }
  return JSON.stringify(dump);
}

/** The dump of a message that LangGraph did not write, such as a summary. */
function dumpOf(message: Message): unknown {
  const classes = { system: "SystemMessage", user: "HumanMessage", assistant: "AIMessage", tool: "HumanMessage" };
  const kwargs = { content: textOf(message), ...(message.id && { id: message.id }) };
  const name = classes[message.role as keyof typeof classes];
  return { lc: 1, type: "constructor", id: ["langchain_core", "messages", name], kwargs };
}

function fieldsOf(message: LangChainMessage): Fields {
  const { content, id } = message;
  const calls = (message as { tool_calls?: unknown }).tool_calls;
  return { message, content, length: Array.isArray(content) ? content.length : -1, id, calls };
}

/** Whether the fields of a message are unchanged since it was stored. */
function isUnchanged({ message, content, length, id, calls }: Fields): boolean {
  const now = fieldsOf(message);
  return now.content === content && now.length === length && now.id === id && now.calls === calls;
}
