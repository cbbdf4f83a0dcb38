import type { RunnableConfig } from "@langchain/core/runnables";
import type {
  BaseCheckpointSaver,
  ChannelVersions,
  Checkpoint,
  CheckpointListOptions,
  CheckpointMetadata,
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
import { MessageLog } from "./message-log.js";

/** The key of a reference that takes the place of messages: `{"__recto__": [conversation, version]}`. */
const REFERENCE = "__recto__";

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

  putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    return this.inner.putWrites(config, writes, taskId);
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
    const seed = await this.#log.read(...reference);
    return { ...found, [this.#channel]: { ...history, seed } as DeltaChannelHistory };
  }

  getNextVersion(current: V | undefined): V {
    return this.inner.getNextVersion(current);
  }

  async #withoutMessages(config: RunnableConfig, checkpoint: Checkpoint): Promise<Checkpoint> {
    const values = checkpoint.channel_values;
    const messages: unknown = values[this.#channel];
    const threadId: unknown = config.configurable?.["thread_id"];
    const isList = Array.isArray(messages) && messages.length > 0 && messages.every(isMessage);
    if (!isList || typeof threadId !== "string") return checkpoint;
    const name = this.#name(threadId, config.configurable?.["checkpoint_ns"] ?? "");
    let version: number | undefined;
    try {
      version = await this.#log.write(name, messages as LangChainMessage[]);
    } catch (error) {
      // The message is not JSON or is too large, so it stays in the inner checkpointer.
      if (!(error instanceof InvalidRequest)) throw error;
    }
    if (version === undefined) return checkpoint;
    return { ...checkpoint, channel_values: { ...values, [this.#channel]: { [REFERENCE]: [name, version] } } };
  }

  async #withMessages(found: CheckpointTuple): Promise<CheckpointTuple> {
    const values = found.checkpoint.channel_values;
    const reference = referenceOf(values[this.#channel]);
    if (!reference) return found;
    const messages = await this.#log.read(...reference);
    return { ...found, checkpoint: { ...found.checkpoint, channel_values: { ...values, [this.#channel]: messages } } };
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

function referenceOf(value: unknown): [name: string, version: number] | undefined {
  const reference: unknown = (value as Record<string, unknown> | null | undefined)?.[REFERENCE];
  return Array.isArray(reference) ? (reference as [string, number]) : undefined;
}
