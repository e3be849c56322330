#!/usr/bin/env python3
"""Test images of Fashion-MNIST for the command line, and the score of what came back.

    images.py export 1000 images.npz          the first 1,000 test images as `image` f32[1000,1,28,28]
    images.py score logits.npz                top-1 of `logits` against the labels
"""
import sys

import numpy as np

import dataset


def export(count, path):
    images, _ = dataset.load("t10k")
    np.savez(path, image=images[:count])


def score(path):
    logits = np.load(path)["logits"]
    _, labels = dataset.load("t10k")
    logits = logits.reshape(-1, len(dataset.CLASSES))
    right = int((logits.argmax(1) == labels[: len(logits)]).sum())
    print(f"{right} of {len(logits)} right, {100 * right / len(logits):.2f} %")


if __name__ == "__main__":
    if sys.argv[1:2] == ["export"] and len(sys.argv) == 4 and sys.argv[2].isdigit():
        export(int(sys.argv[2]), sys.argv[3])
    elif sys.argv[1:2] == ["score"] and len(sys.argv) == 3:
        score(sys.argv[2])
    else:
        sys.exit(__doc__)
