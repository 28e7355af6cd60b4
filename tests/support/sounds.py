"""Audio files for tests: tones, speech of the built-in voice, and other containers of them."""

import io
import math
import struct
import wave

RATE = 16_000


def tone(seconds: float) -> bytes:
    """Return a WAV file with a tone."""
    count = round(seconds * RATE)
    wavelet = [round(3_000 * math.sin(n / 8)) for n in range(1_600)]
    samples = struct.pack("<1600h", *wavelet) * (count // 1_600 + 1)
    return wav(samples[: count * 2])


def wav(samples: bytes, rate: int = RATE) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(rate)
        written.writeframes(samples)
    return file.getvalue()


CONTAINERS = {"mp3": ("mp3", "libmp3lame"), "m4a": ("mp4", "aac"), "webm": ("webm", "libopus")}
CONTAINERS |= {"ogg": ("ogg", "libopus"), "flac": ("flac", "flac"), "wav": ("wav", "pcm_s16le")}


def encoded(content: bytes, name: str) -> bytes:
    """Return a WAV file in another container."""
    import av

    file, (container, codec) = io.BytesIO(), CONTAINERS[name]
    rate = 48_000 if codec == "libopus" else RATE
    with av.open(io.BytesIO(content), format="wav") as read, av.open(file, "w", format=container) as written:
        stream = written.add_stream(codec, rate=rate, layout="mono")
        resampler = av.AudioResampler(stream.format.name, "mono", rate)
        for frame in [*read.decode(read.streams.audio[0]), None]:
            for resampled in resampler.resample(frame):
                written.mux(stream.encode(resampled))
        written.mux(stream.encode(None))
    return file.getvalue()
