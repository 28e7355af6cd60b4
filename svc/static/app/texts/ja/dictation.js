// Japanese texts for what may keep a dictation from working.
import { texts as first } from "./first.js";

const dictation = {
  ...first.dictation,
  /** By the names of the browser's errors. */
  problems: {
    NotAllowedError:
      "ブラウザがマイクを許可していません。このサイトの設定で許可してから、もう一度お試しください。",
    NotFoundError: "マイクが見つかりません。接続してから、もう一度お試しください。",
    NotReadableError:
      "別のプログラムがマイクを使用しています。そのプログラムを閉じてから、もう一度お試しください。",
    SecurityError:
      "ブラウザは HTTPS でのみマイクを許可します。https:// のアドレスでこのページを開いてください。",
    TimeoutError:
      "音声が届いていません。このコンピューターのマイクとスピーカーを確認してから、もう一度お試しください。",
  },
};

export const texts = { ...first, dictation };
