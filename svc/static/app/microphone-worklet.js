// Sends the samples of the microphone to the page, 2,048 at a time. It runs on the browser's audio thread.
const SAMPLES = 2048;

class Microphone extends AudioWorkletProcessor {
  #samples = new Float32Array(SAMPLES);
  #count = 0;

  process([[input]]) {
    for (const sample of input ?? []) {
      this.#samples[this.#count++] = sample;
      if (this.#count < SAMPLES) continue;
      this.port.postMessage(this.#samples.slice());
      this.#count = 0;
    }
    return true;
  }
}

registerProcessor("microphone", Microphone);
