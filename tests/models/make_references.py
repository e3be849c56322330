#!/usr/bin/env python3
"""Writes the checked-in reference outputs of onnxruntime (optimisation off): references/<model>.npz.

    pip install onnx onnxruntime numpy
    python3 make_references.py

For the Fashion-MNIST networks: the first 32 test images as bytes, and the logits. For the networks of make_models.py: the
outputs on the seeded inputs of make_io.py.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

import make_io

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "fashion_mnist"))
import dataset

SMALL = ["mlp", "resnet8", "ds_cnn", "mobilenet_v1_025", "autoencoder", "bert_tiny", "lstm_classifier"]
LARGE = ["resnet18", "resnet50", "mobilenet_v2", "bert_base", "vit_tiny"]


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


def generated():
    with tempfile.TemporaryDirectory() as d:
        subprocess.run([sys.executable, HERE / "make_models.py", "-o", d, "--no-check", *SMALL, *LARGE], check=True)
        for name in SMALL + LARGE:
            path = pathlib.Path(d) / f"{name}.onnx"
            feeds = make_io.make_inputs(onnx.load(path), 0)
            s = session(path)
            outputs = dict(zip([o.name for o in s.get_outputs()], s.run(None, feeds)))
            # Long outputs are represented by a fixed sample of their elements.
            sampled = {}
            for k, v in outputs.items():
                flat = v.reshape(-1)
                index = np.arange(flat.size) if flat.size <= 4096 else np.linspace(0, flat.size - 1, 4096).astype(np.int64)
                sampled[k + ":index"], sampled[k + ":value"] = index, flat[index]
                sampled[k + ":shape"] = np.array(v.shape, np.int64)
            np.savez_compressed(HERE / f"references/{name}.npz", **sampled)
            print(name, {k: v.shape for k, v in outputs.items()})


if __name__ == "__main__":
    (HERE / "references").mkdir(exist_ok=True)
    fashion()
    generated()
