import type { RunnableConfig } from "@langchain/core/runnables";
import type {
  BaseCheckpointSaver,
  ChannelVersions,
  Checkpoint,
  CheckpointListOptions,
  CheckpointMetadata,
  CheckpointPendingWrite,
  CheckpointTuple,
  DeltaChannelHistory,
  PendingWrite,
  SerializerProtocol,
} from "@langchain/langgraph-checkpoint";

import { asObjectWith } from "../checks.js";
import type { Conversation } from "../conversation.js";
import { ConversationNotFound, InvalidRequest } from "../errors.js";
import { namePart } from "../names.js";
import type { Store } from "../store.js";
import type { CounterName } from "../types.js";
import { isMessage, type LangChainMessage } from "../langchain/messages.js";
import { MessageLog, type Reference } from "./message-log.js";

/** The key of a reference that takes the place of messages: `{"__recto__": [conversation, version, count?]}`. */
const REFERENCE = "__recto__";
/** The channel with the tasks of the next step. A task of `createAgent` has all messages of the state. */
const TASKS = "__pregel_tasks";

export interface SaverOptions {
  /** The channel with the messages. Default: `messages`. */
  channel?: string;
  /** The start of the names of conversations. Default: `langgraph/`. */
  prefix?: string;
  /** The token counter of new conversations. Default: `o200k_base`. */
  counter?: CounterName;
}

/**
 * A checkpointer that wraps another one. It takes the messages out of each checkpoint, stores them as a
 * conversation, and leaves a reference to its version: a checkpoint then takes the space of what is new in it.
 *
 * Everything but the channel of messages stays in `inner`. Messages stay there too if its serializer does not write
 * them in LangChain's own form of JSON, for example because it encrypts.
 *
 * The class does not extend `BaseCheckpointSaver`, so that it works with every copy of that package.
 */
export class RectoSaver<V extends string | number = number> implements BaseCheckpointSaver<V> {
  readonly inner: BaseCheckpointSaver<V>;
  readonly store: Store;
  readonly #channel: string;
  readonly #prefix: string;
  readonly #log: MessageLog;

  constructor(inner: BaseCheckpointSaver<V>, store: Store, options: SaverOptions = {}) {
    this.inner = asObjectWith(inner, "inner", "a checkpointer", "put", "putWrites", "getTuple", "list");
    this.store = asObjectWith(store, "store", "a store", "request");
    this.#channel = options.channel ?? "messages";
    this.#prefix = options.prefix ?? "langgraph/";
    this.#log = new MessageLog(store, inner.serde, options.counter ? { counter: options.counter } : {});
  }

  get serde(): SerializerProtocol {
    return this.inner.serde;
  }

  /** As in `BaseCheckpointSaver`: a checkpointer in a configuration is not written as JSON. */
  toJSON(): string {
    return "[RectoSaver]";
  }

  /** The conversation with the messages of a thread. */
  conversation(threadId: string, checkpointNs = ""): Conversation {
    return this.store.conversation(this.#name(threadId, checkpointNs));
  }

  async get(config: RunnableConfig): Promise<Checkpoint | undefined> {
    return (await this.getTuple(config))?.checkpoint;
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const found = await this.inner.getTuple(config);
    return found && this.#withMessages(found);
  }

  async *list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple> {
    for await (const found of this.inner.list(config, options)) yield this.#withMessages(found);
  }

  /** Messages are stored first: a crash in between leaves a version without a reference. */
  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    return this.inner.put(config, await this.#withoutMessages(config, checkpoint), metadata, newVersions);
  }

  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const stored = writes.map(async ([channel, value]): Promise<PendingWrite> => {
      return [channel, channel === TASKS ? await this.#tasksWithout(config, value) : value];
    });
    return this.inner.putWrites(config, await Promise.all(stored), taskId);
  }

  /** Deletes the checkpoints of a thread, and its conversations in all namespaces. */
  async deleteThread(threadId: string): Promise<void> {
    await this.inner.deleteThread(threadId);
    const start = `${this.#base(threadId)}/`;
    for (let after = start.slice(0, -1); ; ) {
      const page = await this.store.list({ after, limit: 100 });
      const names = page.map(({ name }) => name);
      for (const name of names.filter((name) => name.startsWith(start))) await this.#remove(name);
      const last = names.at(-1);
      if (last === undefined || names.length < 100 || (last > start && !last.startsWith(start))) return;
      after = last;
    }
  }

  async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const found = await this.inner.getDeltaChannelHistory(options);
    const history = found[this.#channel];
    const reference = history && referenceOf((history as { seed?: unknown }).seed);
    if (!reference) return found;
    const seed = await this.#log.read(reference);
    return { ...found, [this.#channel]: { ...history, seed } as DeltaChannelHistory };
  }

  getNextVersion(current: V | undefined): V {
    return this.inner.getNextVersion(current);
  }

  async #withoutMessages(config: RunnableConfig, checkpoint: Checkpoint): Promise<Checkpoint> {
    const values: Record<string, unknown> = { ...checkpoint.channel_values };
    if (this.#channel in values) values[this.#channel] = await this.#reference(config, values[this.#channel], "write");
    if (TASKS in values) values[TASKS] = await this.#tasksWithout(config, values[TASKS]);
    return { ...checkpoint, channel_values: values };
  }

  /** A reference to a list of messages. Any other value is returned as it is. */
  async #reference(config: RunnableConfig, messages: unknown, method: "write" | "append"): Promise<unknown> {
    const threadId: unknown = config.configurable?.["thread_id"];
    const isList = Array.isArray(messages) && messages.length > 0 && messages.every(isMessage);
    if (!isList || typeof threadId !== "string") return messages;
    const name = this.#name(threadId, config.configurable?.["checkpoint_ns"] ?? "");
    try {
      const reference = await this.#log[method](name, messages as LangChainMessage[]);
      return reference === undefined ? messages : { [REFERENCE]: reference };
    } catch (error) {
      // The message is not JSON or is too large, so it stays in the inner checkpointer.
      if (error instanceof InvalidRequest) return messages;
      throw error;
    }
  }

  /** Tasks with references in the place of messages that begin with those of the thread. */
  async #tasksWithout(config: RunnableConfig, tasks: unknown): Promise<unknown> {
    return this.#inTasks(tasks, (messages) => this.#reference(config, messages, "append"));
  }

  /** Changes the messages of tasks: of one, or of all in a list. */
  async #inTasks(tasks: unknown, change: (messages: unknown) => Promise<unknown>): Promise<unknown> {
    if (Array.isArray(tasks)) return Promise.all(tasks.map((task) => this.#inTasks(task, change)));
    const { args } = (tasks ?? {}) as { args?: Record<string, unknown> | null };
    if (typeof args !== "object" || args === null || !(this.#channel in args)) return tasks;
    const before = args[this.#channel];
    const messages = await change(before);
    return messages === before ? tasks : { ...(tasks as object), args: { ...args, [this.#channel]: messages } };
  }

  async #withMessages(found: CheckpointTuple): Promise<CheckpointTuple> {
    const read = async (value: unknown) => {
      const reference = referenceOf(value);
      return reference ? this.#log.read(reference) : value;
    };
    const values: Record<string, unknown> = { ...found.checkpoint.channel_values };
    if (this.#channel in values) values[this.#channel] = await read(values[this.#channel]);
    if (TASKS in values) values[TASKS] = await this.#inTasks(values[TASKS], read);
    const changed: CheckpointTuple = { ...found, checkpoint: { ...found.checkpoint, channel_values: values } };
    if (found.pendingWrites === undefined) return changed;
    const writes = found.pendingWrites.map(async ([task, channel, value]): Promise<CheckpointPendingWrite> => {
      return [task, channel, channel === TASKS ? await this.#inTasks(value, read) : value];
    });
    return { ...changed, pendingWrites: await Promise.all(writes) };
  }

  async #remove(name: string): Promise<void> {
    this.#log.forget(name);
    try {
      await this.store.conversation(name).remove();
    } catch (error) {
      // Another process may have removed it.
      if (!(error instanceof ConversationNotFound)) throw error;
    }
  }

  #name(threadId: string, checkpointNs: string): string {
    return `${this.#base(threadId)}/${namePart(checkpointNs)}`;
  }

  #base(threadId: string): string {
    return this.#prefix + namePart(threadId);
  }
}

function referenceOf(value: unknown): Reference | undefined {
  const reference: unknown = (value as Record<string, unknown> | null | undefined)?.[REFERENCE];
  return Array.isArray(reference) ? (reference as Reference) : undefined;
}
