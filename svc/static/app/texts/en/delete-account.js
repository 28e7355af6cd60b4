// English texts of the dialog that deletes the account.
import { texts as first } from "./settings.js";

export const texts = {
  ...first,
  settings: {
    ...first.settings,
    endTitle: "Delete your account?",
    endWhat:
      "Your keys stop working, running agents stop, and your conversations, artifacts, projects and " +
      "providers are deleted. The balance of your wallet is lost. Ledger entries stay without " +
      "your name. This cannot be undone.",
    endConfirm: (email) => `Type ${email} to confirm`,
    endDiffers: "This is not the email address of this account.",
  },
};
