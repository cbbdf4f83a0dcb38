import { InvalidRequest } from "./errors.js";

/** The text, or a `TypeError` with the name of the argument. */
export function asText(value: unknown, name = "text"): string {
  if (typeof value !== "string") throw wrongType(name, "a string", value);
  return value;
}

export function asFlag(value: unknown, name: string): boolean {
  if (typeof value !== "boolean") throw wrongType(name, "a boolean", value);
  return value;
}

export function asObject<T extends object>(value: T, name: string): T {
  if (typeof value !== "object" || value === null) throw wrongType(name, "an object", value);
  return value;
}

export function asList<T>(value: readonly T[], name: string): readonly T[] {
  if (!Array.isArray(value)) throw wrongType(name, "a list", value);
  return value;
}

/** A whole number from `min` to `max`, or an error with the name of the field. */
export function asCount(value: unknown, name: string, { min = 1, max = Number.MAX_SAFE_INTEGER } = {}): number {
  if (typeof value !== "number") throw wrongType(name, "a number", value);
  if (!Number.isInteger(value) || value < min || value > max) {
    const message = `${name} is ${value}; allowed are whole numbers from ${min} to ${max}`;
    throw new InvalidRequest({ code: "invalid_operation", message, field: name });
  }
  return value;
}

/** An object with these methods. Its class may come from another copy of a package. */
export function asObjectWith<T extends object>(value: T, name: string, kind: string, ...methods: (keyof T)[]): T {
  const has = (method: keyof T) => typeof value?.[method] === "function";
  if (!methods.every(has)) throw wrongType(name, kind, value);
  return value;
}

/** Checks the options of a token budget. */
export function checkBudget(options: { maxTokens: number; targetTokens?: number }): void {
  const { maxTokens, targetTokens } = asObject(options, "options");
  asCount(maxTokens, "maxTokens");
  if (targetTokens !== undefined) asCount(targetTokens, "targetTokens");
}

function wrongType(name: string, wanted: string, value: unknown): TypeError {
  const found = value === null ? "null" : Array.isArray(value) ? "a list" : typeof value;
  return new TypeError(`${name} must be ${wanted}, not ${found}`);
}
