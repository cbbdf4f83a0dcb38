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

/** Messages of a conversation: all that a version shows, or the first `count` of them. */
export type Reference = [name: string, version: number, count?: number];

/** The messages of a version. */
interface View {
  version: number;
  items: Item[];
  /** The number of items that a checkpoint has. Tasks of later checkpoints may be ahead of it. */
  written: number;
}

/** A message of a view. */
interface Item {
  /** Its log index. */
  index: number;
  /** The message, as the serializer writes it. */
  json: string;
  /** What was given. Missing in a loaded view. */
  source?: Source;
}

/** A message object at the time when it was given. An application may assign to its fields afterwards. */
interface Source {
  message: LangChainMessage;
  /** The values of all fields. Lists are copied. */
  fields: Map<string, unknown>;
  /** The message, as the serializer writes it. `undefined` if that is not LangChain's own form of JSON. */
  json: Promise<string | undefined>;
}

/** A message, as LangChain's own serializer writes it. */
interface Dump {
  lc: 1;
  type: "constructor";
  id: string[];
  kwargs: Record<string, unknown>;
}

/** Messages of threads in conversations. */
export class MessageLog {
  readonly #store: Store;
  readonly #serde: SerializerProtocol;
  readonly #settings: Settings;
  readonly #views = new Map<string, View>();
  /** The newest state of each message object. */
  readonly #sources = new WeakMap<LangChainMessage, Source>();
  /** The last write of each conversation: writes of one conversation run one after the other. */
  readonly #writes = new Map<string, Promise<unknown>>();

  constructor(store: Store, serde: SerializerProtocol, settings: Settings) {
    this.#store = store;
    this.#serde = serde;
    this.#settings = settings;
  }

  async read([name, version, count]: Reference): Promise<unknown[]> {
    const { items } = await this.#load(name, version);
    const json = items.slice(0, count).map((item) => item.json);
    return this.#serde.loadsTyped("json", `[${json.join(",")}]`);
  }

  /**
   * Stores the messages of a checkpoint: they become the view of a conversation. `undefined` if the serializer does
   * not write them in LangChain's own form of JSON, for example because it encrypts.
   */
  write(name: string, messages: readonly LangChainMessage[]): Promise<Reference | undefined> {
    return this.#inTurn(name, messages, true);
  }

  /**
   * Stores the messages of a task: those that the view of a conversation lacks are appended. `undefined` if the
   * messages do not begin with the view, or if the view is empty.
   */
  append(name: string, messages: readonly LangChainMessage[]): Promise<Reference | undefined> {
    return this.#inTurn(name, messages, false);
  }

  #inTurn(name: string, messages: readonly LangChainMessage[], isCheckpoint: boolean): Promise<Reference | undefined> {
    // Here and not later, because the application may change its messages meanwhile.
    const given = messages.map((message) => this.#sourceOf(message));
    const before = this.#writes.get(name) ?? Promise.resolve();
    const write = before.then(() => this.#write(name, given, isCheckpoint), () => this.#write(name, given, isCheckpoint));
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

  async #write(name: string, given: readonly Source[], isCheckpoint: boolean): Promise<Reference | undefined> {
    for (let attempt = 1; ; attempt++) {
      const view = this.#views.get(name) ?? (await this.#loadNewest(name));
      const items = await compare(view, given);
      if (items === undefined) return undefined;
      const count = items.length;
      if (count >= (isCheckpoint ? view.written : 1) && count < view.items.length && beginsWith(view.items, items)) {
        // Tasks are written at once, and checkpoints one after the other.
        this.#keep(name, isCheckpoint ? { ...view, written: count } : view);
        return [name, view.version, count];
      }
      if (!isCheckpoint && (view.items.length === 0 || !beginsWith(items, view.items))) return undefined;
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
          const isMissing = error instanceof ConversationNotFound;
          if (!(isMissing || error instanceof VersionConflict) || attempt === MAX_ATTEMPTS) throw error;
          if (isMissing) await this.#store.conversationOrCreate(name, this.#settings);
          continue;
        }
      }
      this.#keep(name, { version, items, written: isCheckpoint ? count : view.written });
      return [name, version];
    }
  }

  /** The state of a message object. It is written again only if a field was assigned. */
  #sourceOf(message: LangChainMessage): Source {
    const known = this.#sources.get(message);
    if (known && isUnchanged(known)) return known;
    const { content } = message;
    const json = this.#serde.dumpsTyped(message).then(([type, bytes]) => {
      const text = new TextDecoder().decode(bytes);
      return type === "json" && isDumpOf(text, content) ? text : undefined;
    });
    json.catch(() => undefined); // a failure is an error of the write that waits for it
    const source = { message, fields: fieldsOf(message), json };
    this.#sources.set(message, source);
    return source;
  }

  async #loadNewest(name: string): Promise<View> {
    try {
      return await this.#load(name);
    } catch (error) {
      if (!(error instanceof ConversationNotFound)) throw error;
      return { version: 0, items: [], written: 0 }; // created when there is something to store
    }
  }

  async #load(name: string, at?: number): Promise<View> {
    const request = { conversation: name, show: true, at };
    const { version, messages } = await this.#store.request<{ version: number; messages: Entry[] }>(request);
    const items = messages.map(({ index, message }) => ({ index, json: jsonOf(message) }));
    return { version, items, written: items.length };
  }

  #keep(name: string, view: View): void {
    this.#views.delete(name);
    this.#views.set(name, view);
    const [oldest] = this.#views.keys();
    if (this.#views.size > MAX_VIEWS) this.#views.delete(oldest!);
  }
}

/** The given messages as items: those of the view where nothing differs, and new ones with the index -1. */
async function compare(view: View, given: readonly Source[]): Promise<Item[] | undefined> {
  const known = new Map(view.items.map((item) => [item.source, item] as const));
  const items: Item[] = [];
  let byJson: Map<string, Item[]> | undefined;
  const used = new Set<Item>();
  for (const source of given) {
    const same = known.get(source);
    if (same && !used.has(same)) {
      used.add(same);
      items.push(same);
      continue;
    }
    const json = await source.json;
    if (json === undefined) return undefined;
    byJson ??= grouped(view.items);
    const equal = byJson.get(json)?.find((item) => !used.has(item));
    if (equal) used.add(equal);
    items.push({ index: equal?.index ?? -1, json, source });
  }
  return items;
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

function beginsWith(items: readonly Item[], front: readonly Item[]): boolean {
  return front.every((item, at) => item.index >= 0 && item.index === items[at]?.index);
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

/**
 * The message to store. It is made of what the serializer wrote, so a field that is encrypted is not stored in clear.
 * Its text is stored only once: the dump has no copy of it.
 */
function messageOf({ json, source }: Item): Message {
  const dump: Dump = JSON.parse(json);
  const { kwargs } = dump;
  const message = toRecto({ ...(kwargs as { content: unknown }), getType: () => source!.message.getType() });
  const [first] = Object.keys(kwargs);
  if (first === "content" && textOf(message) === kwargs["content"]) delete kwargs["content"];
  return { ...message, metadata: { [KEY]: dump } } as Message;
}

/** Whether a text is a message with this content in LangChain's own form. A serializer that encrypts may write JSON too. */
function isDumpOf(json: string, content: unknown): boolean {
  let dump: Partial<Dump> | null;
  try {
    dump = JSON.parse(json);
  } catch {
    return false;
  }
  if (dump?.lc !== 1 || dump.type !== "constructor") return false;
  const written = dump.kwargs?.["content"];
  return typeof content === "string" ? written === content : Array.isArray(written);
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

function fieldsOf(message: LangChainMessage): Map<string, unknown> {
  const fields = Object.entries(message);
  return new Map(fields.map(([name, value]) => [name, Array.isArray(value) ? [...value] : value]));
}

/** Whether no field of a message was assigned since it was stored. A change inside an object is not detected. */
function isUnchanged({ message, fields }: Source): boolean {
  const now = Object.entries(message);
  return now.length === fields.size && now.every(([name, value]) => isSame(value, fields.get(name)));
}

function isSame(value: unknown, before: unknown): boolean {
  if (!Array.isArray(value) || !Array.isArray(before)) return value === before;
  return value.length === before.length && value.every((item, at) => item === before[at]);
}
