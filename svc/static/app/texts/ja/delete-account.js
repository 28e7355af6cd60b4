// Japanese texts of the dialog that deletes the account.
import { texts as first } from "./settings.js";

export const texts = {
  ...first,
  settings: {
    ...first.settings,
    endTitle: "アカウントを削除しますか？",
    endWhat:
      "キーは使えなくなり、実行中のエージェントは停止し、会話、アーティファクト、プロジェクト、プロバイダーは削除されます。ウォレットの残高は失われます。明細は名前なしで残ります。この操作は取り消せません。",
    endConfirm: (email) => `確認のため ${email} と入力してください`,
    endDiffers: "このアカウントのメールアドレスではありません。",
  },
};
