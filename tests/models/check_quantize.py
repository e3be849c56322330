#!/usr/bin/env python3
"""Top-1 of fashion-mnist after `dlc quantize`, beside the float model's.

  check_quantize.py --dlc build/bin/dlc --work DIR [--images 1000] [--device interp:]

Calibrated with 256 training images. The integers are the accelerator's (--hw=asic), by default through the interpreter, which
gives the same bits as asic:func and is faster. Fails where they are more than half a point below the float model."""
import argparse
import pathlib
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "fashion_mnist"))
import dataset

MODEL = HERE / "fashion_mnist" / "fashion_float.onnx"


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--dlc", required=True)
    ap.add_argument("--work", required=True)
    ap.add_argument("--images", type=int, default=1000)
    ap.add_argument("--device", default="interp:")
    o = ap.parse_args()
    work = pathlib.Path(o.work)
    work.mkdir(parents=True, exist_ok=True)
    train, _ = dataset.load("train")
    np.savez(work / "calib.npz", image=train[:256])
    images, labels = dataset.load("t10k")
    np.savez(work / "test.npz", image=images[: o.images])

    def dlc(*arguments):
        subprocess.run([o.dlc, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)

    def top1(model, *arguments):
        out = work / "logits.npz"
        dlc("run", model, "--each", "--input", work / "test.npz", "-o", out, *arguments)
        logits = np.load(out)["logits"].reshape(o.images, -1)
        return 100 * (logits.argmax(1) == labels[: o.images]).mean()

    dlc("quantize", MODEL, "--data", work / "calib.npz", "-o", work / "int8.onnx", "--hw=asic")
    real = top1(MODEL, "--device", "cpu:", "--dim", "N=1")
    integers = top1(work / "int8.onnx", "--device", o.device, "--dim", "N=1", "--hw=asic")
    print(f"{o.images} images: float {real:.2f} %, int8 {integers:.2f} %")
    return 0 if integers > real - 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
