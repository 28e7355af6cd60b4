import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  signIn: {
    ...first.signIn,
    lead: "Your own AI platform, on your own machine.",
    about:
      "Chat, agents, images and audio with any model server, in one account. Your wallet shows every " +
      "cost, and the API is OpenAI-compatible.",
    points: [
      ["chat", "Chat with all your models and keep your conversations."],
      ["agents", "Give an agent a goal and follow each step."],
      ["key", "Use the same account from curl, Python or JavaScript."],
    ],
    signUp: "Create your account",
    toSignIn: "Already have an account? Sign in",
    toSignUp: "Create an account",
    signUpAction: "Create account",
    show: "Show password",
    hide: "Hide password",
    forgot: "Forgot your password?",
    forgotTitle: "Reset your password",
    forgotText: "We will email you a link. It is valid for one hour.",
    forgotAction: "Send link",
    forgotDone:
      "If an account with this email address exists, we have sent a link. No email? Ask the operator " +
      "of this service for a link.",
    forgotNoMail: "This service sends no email. Ask its operator for a link.",
    back: "Back to sign-in",
    closed: "Sign-up is closed. Ask the operator for an account.",
    again: "Your session has expired",
    againText: (email) =>
      `Sessions last ${limits.session_hours} hours. Enter the password of ${email} to continue. ` +
      "Your work is saved.",
    againAction: "Continue",
    otherAccount: "Use another account",
    linked: "Linked. You can now sign in this way too.",
    trouble: {
      access_denied: "Sign-in was cancelled or rejected by the provider.",
      domain_not_allowed:
        "Sign-up is closed for the domain of your email address. Ask the operator for an account.",
      email_missing: "The provider did not share your email address. An account needs one.",
      email_not_verified:
        "The provider does not say that your email address is verified. Tell the operator, " +
        "or sign in as before and link this sign-in method in your settings.",
      email_taken:
        "An account with this email address already exists. Sign in as before, or reset your password. " +
        "Then link this sign-in method in your settings.",
      identity_taken: "This identity is linked to another account.",
      invalid_token: "This sign-in has expired or started in another browser. Try again.",
      shutting_down: "The service is restarting. Try again in a moment.",
      signup_closed: "Sign-up is closed and you have no account. Ask the operator for one.",
      storage_unavailable: "The service cannot save data right now. Try again later.",
      other: "The provider could not be reached. Try again in a moment.",
    },
  },
};
