"""Fashion-MNIST as Debian's package dataset-fashion-mnist installs it: 60,000 training and 10,000 test images, 28 x 28."""
import gzip
import pathlib

import numpy as np

FOLDER = pathlib.Path("/usr/share/datasets/fashion-mnist")
CLASSES = ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]


def load(split):
    """split: "train" or "t10k". Returns images as float32 [n, 1, 28, 28] in 0..1 and labels as int64 [n]."""
    with gzip.open(FOLDER / f"{split}-images-idx3-ubyte.gz") as f:
        images = np.frombuffer(f.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(FOLDER / f"{split}-labels-idx1-ubyte.gz") as f:
        labels = np.frombuffer(f.read(), np.uint8, offset=8).astype(np.int64)
    return images.astype(np.float32) / 255, labels
