// The service's limits. The page contains them: svc/routes/pages.py reads them from the request
// shapes.

/**
 * Attributes of an input element.
 * @typedef {{minlength?: number, maxlength?: number, min?: number, max?: number}} Bounds
 * @typedef {"sign_up" | "key" | "project" | "provider" | "run" | "artifact" | "support" | "conversation" |
 *   "summary" | "message" | "image" | "settings" | "booking" | "prompt"} Form
 */

/**
 * @type {Record<Form, Record<string, Bounds>> & {
 *   provider_name_pattern: string,
 *   search: Bounds,
 *   memory: Bounds,
 *   session_hours: number,
 *   chats_per_minute: {free: number, pro: number},
 *   least_dollars: number,
 *   passwords: boolean, // whether people sign in with passwords
 *   sign_up_open: boolean, // whether everybody can create an account
 *   languages: Array<string>,
 *   sends_mail: boolean, // whether the service sends links by mail
 *   output_tokens: number,
 *   least_output_tokens: number,
 *   bytes_per_token: number, // of an estimate
 *   frame_tokens: number, // of a message or a part of one, beside its bytes
 *   media_tokens: number, // of a picture
 *   fitted_bytes_per_token: number, // of a text that no model server has counted
 *   unknown_context_tokens: number, // of a model whose context length is unknown
 * }}
 */
export const limits = JSON.parse(document.getElementById("limits").textContent);
