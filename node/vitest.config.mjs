export default { test: { globals: true, include: ["test/*-validation.mjs"], pool: "threads" } };
