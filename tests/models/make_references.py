#!/usr/bin/env python3
"""Writes the checked-in reference outputs of onnxruntime (optimisation off): references/<model>.npz.

    pip install onnx onnxruntime numpy
    python3 make_references.py [gpt2 ...]

For the Fashion-MNIST networks: the first 32 test images as bytes, and the logits. For the networks of make_models.py: the
outputs on the seeded inputs of make_io.py; of those with a sequence length or a cache also on shorter ones, as <model>_short.npz.
Long outputs are represented by a fixed sample of their elements.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

import make_io
from networks import REG

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "fashion_mnist"))
import dataset


def session(path):
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), o)


def fashion():
    images, _ = dataset.load("t10k")
    images = images[:32]
    out = {"images_u8": np.rint(images * 255).astype(np.uint8)}
    for form in ("float", "int8"):
        out["logits_" + form] = session(HERE / f"fashion_mnist/fashion_{form}.onnx").run(None, {"image": images})[0]
    np.savez_compressed(HERE / "references/fashion.npz", **out)


def sampled(outputs):
    """Each output's shape, and of its elements at most as many as leave the file small."""
    most = 4096 // max(1, len(outputs) // 2)
    sample = {}
    for k, v in outputs.items():
        flat = v.reshape(-1)
        index = np.arange(flat.size) if flat.size <= most else np.linspace(0, flat.size - 1, most).astype(np.int64)
        sample[k + ":index"], sample[k + ":value"] = index, flat[index]
        sample[k + ":shape"] = np.array(v.shape, np.int64)
    return sample


def generated(name):
    for variant, options in (("", []), ("_short", ["--dynamic"])):
        with tempfile.TemporaryDirectory() as d:
            subprocess.run([sys.executable, HERE / "make_models.py", "-o", d, "--no-check", *options, name], check=True)
            path = pathlib.Path(d) / f"{name}.onnx"
            model = onnx.load(path)
            dims = make_io.short_dims(model) if variant else {}
            if variant and not dims:
                return
            s = session(path)
            outputs = dict(zip([o.name for o in s.get_outputs()], s.run(None, make_io.make_inputs(model, 0, dims))))
            np.savez_compressed(HERE / f"references/{name}{variant}.npz", **sampled(outputs))
            print(name + variant, {k: v.shape for k, v in outputs.items()})


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("models", nargs="*", help="networks of make_models.py, or fashion; all of them by default")
    wanted = ap.parse_args().models or ["fashion", *REG]
    (HERE / "references").mkdir(exist_ok=True)
    for name in wanted:
        fashion() if name == "fashion" else generated(name)
