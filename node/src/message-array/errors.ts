import { InvalidRequest, RectoError } from "../errors.js";

/** The configuration or the message is not valid. `field` names what is wrong. */
export class ValidationError extends InvalidRequest {
  constructor(message: string, field?: string, code = "invalid_operation", details?: Record<string, unknown>) {
    super({ code, message, field, details });
  }
}

/** The error that a method of the seeds throws: a malformed request is a `ValidationError`. */
export function seedError(error: unknown): unknown {
  const isInvalid = error instanceof InvalidRequest && !(error instanceof ValidationError);
  return isInvalid ? new ValidationError(error.message, error.field, error.code, error.details) : error;
}

export { RectoError };
