// Dictation: the microphone in pieces of some seconds, which are transcribed one after the other while one
// speaks. Each text goes to the cursor of the text area. It is loaded when it is first used.
import { signal } from "@preact/signals";
import { api, wasAborted } from "./api.js";
import { texts } from "./texts/en/dictation.js";

const RATE = 16_000; // of what is sent
const [LEAST_SECONDS, MOST_SECONDS] = [3, 12]; // of a piece: it ends at a pause
const PAUSE_SECONDS = 0.3;
const QUIET = 0.15; // of the loudest sound of a piece
const SILENT = 0.01; // of full scale
const MOST_SILENCE_SECONDS = 60;
const NO_SOUND_MS = 8_000; // Firefox records nothing on a computer without a device that plays sound
const PROMPT = 200; // characters before the cursor, so that a sentence goes on

const loudest = (samples) => samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);

/** Return samples at 16 kHz as a WAV file. */
async function wavOf(samples, rate) {
  const offline = new OfflineAudioContext(1, Math.ceil((samples.length * RATE) / rate), RATE);
  const buffer = offline.createBuffer(1, samples.length, rate);
  buffer.copyToChannel(samples, 0);
  const source = new AudioBufferSourceNode(offline, { buffer });
  source.connect(offline.destination);
  source.start();
  const resampled = (await offline.startRendering()).getChannelData(0);
  const data = Int16Array.from(resampled, (sample) => Math.max(-1, Math.min(1, sample)) * 32_767);
  const size = data.byteLength;
  // "RIFF", size, "WAVE", "fmt ", 16, PCM and mono, rate, bytes a second, 2 bytes and 16 bits, "data", size
  const head = [0x46464952, 36 + size, 0x45564157, 0x20746d66, 16, 0x10001, RATE, RATE * 2, 0x100002];
  return new Blob([Uint32Array.of(...head, 0x61746164, size), data], { type: "audio/wav" });
}

/**
 * A dictation into a text area. `level` (0 to 1), `seconds` and `finishing` are signals. `ended` resolves
 * after the last words, and rejects with an error that says what to do, or with the service's.
 */
export class Dictation {
  level = signal(0);
  seconds = signal(0);
  finishing = signal(false);
  #area;
  #model;
  #abort = new AbortController();
  #samples = []; // arrays that are not sent yet
  #count = 0; // samples in them
  #all = 0; // samples so far
  #heard = 0; // the last of them that was no silence
  #written = [];
  #sending = Promise.resolve();
  #context = null;
  #stream = null;
  #finish = () => {};
  #fail = (_) => {};

  constructor(area, model) {
    [this.#area, this.#model] = [area, model];
    this.ended = this.#run().catch((error) => {
      const problem = texts.dictation.problems[error.name];
      throw problem ? new Error(problem) : error;
    });
  }

  get hasText() {
    return this.#written.length > 0;
  }

  /** End the recording. The last words follow. */
  stop() {
    this.finishing.value = true;
    this.#finish();
  }

  /** End it, and remove the words. */
  cancel() {
    this.#abort.abort();
    this.#finish();
    this.undo();
  }

  /** Remove those words that nobody has changed. */
  undo() {
    for (const text of this.#written.splice(0).reverse()) {
      const at = this.#area.value.lastIndexOf(text);
      if (at < 0 || !this.#takeFocus()) continue;
      this.#area.setSelectionRange(at, at + text.length);
      document.execCommand("delete");
    }
  }

  async #run() {
    if (!navigator.mediaDevices?.getUserMedia) throw new DOMException("", "SecurityError");
    const onKey = (event) => {
      if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      event.stopPropagation();
      this.cancel();
    };
    addEventListener("keydown", onKey, true);
    try {
      /** @type {Promise<void>} */
      const ended = new Promise((resolve, reject) => {
        [this.#finish, this.#fail] = [resolve, reject];
      });
      await Promise.race([this.#record(), ended]);
      await ended;
      this.#close();
      if (!this.#abort.signal.aborted) this.#send(this.#count);
      await this.#sending;
    } catch (error) {
      if (!wasAborted(error)) throw error;
    } finally {
      this.#close();
      removeEventListener("keydown", onKey, true);
    }
  }

  async #record() {
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true },
    });
    this.#stream = stream;
    if (this.finishing.peek() || this.#abort.signal.aborted) return this.#close();
    this.#context = new AudioContext();
    await this.#context.audioWorklet.addModule(new URL("./microphone-worklet.js", import.meta.url));
    const microphone = new AudioWorkletNode(this.#context, "microphone", {
      numberOfOutputs: 0,
      channelCount: 1,
    });
    microphone.port.onmessage = ({ data }) => this.#take(data);
    this.#context.createMediaStreamSource(stream).connect(microphone);
    stream.getAudioTracks()[0].onended = () => this.stop(); // unplugged, or stopped by the browser
    setTimeout(() => this.#all || this.#fail(new DOMException("", "TimeoutError")), NO_SOUND_MS);
  }

  #close() {
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    if (this.#context && this.#context.state !== "closed") this.#context.close();
  }

  #take(samples) {
    if (this.finishing.peek() || this.#abort.signal.aborted) return;
    const { sampleRate: rate } = this.#context;
    const level = loudest(samples);
    this.#samples.push(samples);
    this.#count += samples.length;
    this.#all += samples.length;
    if (level > SILENT) this.#heard = this.#all;
    this.level.value = Math.sqrt(level);
    this.seconds.value = Math.floor(this.#all / rate);
    if (this.#all - this.#heard > MOST_SILENCE_SECONDS * rate) return this.stop();
    if (this.#count < LEAST_SECONDS * rate) return;
    const last = Math.ceil((PAUSE_SECONDS * rate) / samples.length);
    const most = Math.max(...this.#samples.map(loudest));
    const isPause = this.#samples
      .slice(-last)
      .every((some) => loudest(some) < Math.max(SILENT, most * QUIET));
    if (isPause || this.#count > MOST_SECONDS * rate) this.#send(this.#count);
  }

  /** Send the samples so far after the earlier pieces, unless they are silence. */
  #send(count) {
    const piece = new Float32Array(count);
    let at = 0;
    for (const some of this.#samples) {
      piece.set(some, at);
      at += some.length;
    }
    [this.#samples, this.#count] = [[], 0];
    if (loudest(piece) <= SILENT) return;
    const { sampleRate: rate } = this.#context;
    this.#sending = this.#sending.then(() => this.#transcribe(piece, rate));
    this.#sending.catch(() => this.#finish());
  }

  async #transcribe(piece, rate) {
    const area = this.#area,
      form = new FormData();
    form.set("file", await wavOf(piece, rate), "dictation.wav");
    form.set("model", this.#model);
    form.set("prompt", area.value.slice(0, area.selectionStart).slice(-PROMPT));
    const { text } = await api.media.transcribe(form, { signal: this.#abort.signal });
    if (text.trim()) this.#write(text.trim());
  }

  #write(text) {
    const area = this.#area;
    const before = area.value.slice(0, area.selectionStart);
    const written = before && !/\s$/.test(before) ? ` ${text}` : text;
    if (!this.#takeFocus()) return;
    document.execCommand("insertText", false, written); // as if it was typed, so that the browser can undo it
    this.#written.push(written);
  }

  /** Return whether the text area is still in the page, and now takes what is typed. */
  #takeFocus() {
    this.#area.focus();
    return document.activeElement === this.#area;
  }
}
