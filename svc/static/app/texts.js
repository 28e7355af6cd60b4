// The texts of the first view, in the page's language. Modules that are loaded later import those in
// texts/en/ instead.
import { texts } from "./texts/en/first.js";
export { texts };
