// Sentences in place of the service's messages, by the codes of its errors (svc/errors.py).
// The messages are English.
/** @type {Record<string, string>} */
export const errors = {};
