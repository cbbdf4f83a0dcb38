/** The fields of an error of the contract. */
export interface ErrorFields {
  code: string;
  message: string;
  field?: string | undefined;
  details?: Record<string, unknown> | undefined;
}

/**
 * A request that was refused. It has changed nothing, unless the message says that the outcome is unknown.
 * Frequent codes have a class.
 */
export class RectoError extends Error {
  /** The code of the contract, such as `version_conflict`. */
  readonly code: string;
  /** The field of the request that is wrong, such as `op.maxTokens`. */
  readonly field?: string | undefined;
  /** Values that belong to the code. Empty if there are none. */
  readonly details: Record<string, any>;

  constructor({ code, message, field, details }: ErrorFields) {
    super(message);
    this.name = new.target.name;
    this.code = code;
    this.field = field;
    this.details = details ?? {};
  }
}

/** The request is malformed, or names something that it must not name. */
export class InvalidRequest extends RectoError {}

/** The request names something that does not exist. */
export class NotFound extends RectoError {}

/** No conversation has this name or id. */
export class ConversationNotFound extends NotFound {}

/** The conversation does not have this version. */
export class VersionNotFound extends NotFound {}

/** The live path does not have this batch. */
export class BatchNotFound extends NotFound {}

/** A conversation has this name already. */
export class ConversationExists extends RectoError {}

/** The newest version is not the expected one. `details` has both. */
export class VersionConflict extends RectoError {
  /** The newest version of the conversation. */
  get currentVersion(): number | undefined {
    const version: unknown = this.details["currentVersion"];
    return typeof version === "number" ? version : undefined;
  }
}

/** The request would hide or replace a pinned entry. */
export class PinnedEntry extends RectoError {}

/** There is nothing to undo or to redo. */
export class NothingToRevert extends RectoError {}

/** FIT cannot keep anything within the budget. */
export class BudgetTooSmall extends RectoError {
  /** The smallest budget with which the request succeeds. */
  get needed(): number | undefined {
    const needed: unknown = this.details["needed"];
    return typeof needed === "number" ? needed : undefined;
  }
}

/** The store failed, is damaged, or is closed. */
export class StorageError extends RectoError {}

const CLASSES = new Map<string, new (fields: ErrorFields) => RectoError>([
  ["invalid_json", InvalidRequest],
  ["invalid_operation", InvalidRequest],
  ["invalid_message", InvalidRequest],
  ["empty_content", InvalidRequest],
  ["position_out_of_range", InvalidRequest],
  ["index_out_of_range", InvalidRequest],
  ["not_visible", InvalidRequest],
  ["invalid_range", InvalidRequest],
  ["nothing_to_compress", InvalidRequest],
  ["too_large", InvalidRequest],
  ["batch_not_found", BatchNotFound],
  ["version_not_found", VersionNotFound],
  ["conversation_not_found", ConversationNotFound],
  ["conversation_exists", ConversationExists],
  ["version_conflict", VersionConflict],
  ["pinned", PinnedEntry],
  ["nothing_to_undo", NothingToRevert],
  ["nothing_to_redo", NothingToRevert],
  ["budget_too_small", BudgetTooSmall],
  ["storage", StorageError],
]);

/** The exception for an error of the contract. */
export function errorOf(fields: ErrorFields): RectoError {
  const kind = CLASSES.get(fields.code) ?? RectoError;
  return new kind(fields);
}
