#!/usr/bin/env python3
"""Runs the networks of make_models.py through `dlc run` and compares with the checked-in results of onnxruntime.

    check_models.py --dlc build/bin/dlc --device cpu: --work build/models mlp resnet8 ...
    check_models.py --dlc build/bin/dlc --device cpu: --work build/models --batches 1,3 mlp resnet8 ...

With `--batches` the network has a symbolic batch (and sequence and cache lengths), is compiled once, and runs for each batch:
as many times the same sample, so that every one of them has the same checked-in result; then once with shorter sequences.
A result is right when no sampled element is off by more than 1e-5 of the largest one, and the largest element of every row
is where onnxruntime has it. What is built is kept in the work folder, unless it is large.
Needs numpy and onnx (Debian's python3-onnx). Exit status 1 when a network is wrong.
"""
import argparse
import pathlib
import subprocess
import sys

import numpy as np
import onnx

import make_io

HERE = pathlib.Path(__file__).resolve().parent
TOLERANCE = 1e-5
KEPT_BYTES = 1 << 27


def build(name, folder, *options):
    path = folder / f"{name}.onnx"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, HERE / "make_models.py", "-o", folder, "--no-check", *options, name], check=True,
                       stdout=subprocess.DEVNULL)
    return path


def check(name, o):
    path = build(name, o.work / "symbolic", "--dynamic") if o.batches else build(name, o.work)
    built = [path]
    try:
        network = onnx.load(path)
        if o.artifact or o.batches:
            model = path.with_suffix(".dlca")
            compiled = subprocess.run([o.dlc, path, "-o", model], capture_output=True, text=True)
            if compiled.returncode != 0:
                return f"dlc failed: {compiled.stderr.strip()}"
            path = model
            built.append(model)
        runs = [(name, batch, {}) for batch in o.batches or [1]]
        if o.batches and make_io.short_dims(network):
            runs.append((name + "_short", 1, make_io.short_dims(network)))
        for reference, batch, dims in runs:
            problem = check_run(reference, path, make_io.make_inputs(network, 0, dims), batch, o)
            if problem:
                return f"{reference}, batch {batch}: {problem}"
        return None
    finally:
        for file in built:
            if file.stat().st_size > KEPT_BYTES:
                file.unlink()


def check_run(name, path, inputs, batch, o):
    feeds, result = path.with_name(f"{name}_in.npz"), path.with_name(f"{name}_out.npz")
    np.savez(feeds, **{k: np.concatenate([v] * batch) for k, v in inputs.items()})
    run = subprocess.run([o.dlc, "run", path, "--device", o.device, "--input", feeds, "--output", result],
                         capture_output=True, text=True)
    if run.returncode != 0:
        return f"dlc failed: {run.stderr.strip()}"
    outputs, reference = np.load(result), np.load(HERE / f"references/{name}.npz")
    worst = 0.0
    for key in {k.rsplit(":", 1)[0] for k in reference.files}:
        index, value, shape = (reference[f"{key}:{part}"] for part in ("index", "value", "shape"))
        if list(outputs[key].shape) != [batch * shape[0], *shape[1:]]:
            return f"{key} has shape {outputs[key].shape}, not {batch} times {tuple(shape)}"
        for sample, y in enumerate(np.split(outputs[key], batch)):
            if key == "selected":  # of NonMaxSuppression: its rows begin with the number of the sample
                y = y - np.array([sample, 0, 0])
            error = np.abs(y.reshape(-1)[index].astype(np.float64) - value).max() / np.abs(value).max()
            worst = max(worst, error)
            if error > (TOLERANCE if value.dtype.kind == "f" else 0):
                return f"{key} is off by {error:.2e} of its largest element"
            if len(index) == y.size and (y.reshape(-1, shape[-1]).argmax(1) != value.reshape(-1, shape[-1]).argmax(1)).any():
                return f"{key} has its largest element elsewhere"
    print(f"{name} on {o.device}, batch {batch}: right, largest difference {worst:.1e}", flush=True)
    return None


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--dlc", required=True)
    ap.add_argument("--device", default="cpu:")
    ap.add_argument("--artifact", action="store_true", help="compile to a .dlca and run that")
    ap.add_argument("--batches", type=lambda s: [int(n) for n in s.split(",")], help="symbolic batch; run with each of these")
    ap.add_argument("--work", type=pathlib.Path, required=True)
    ap.add_argument("models", nargs="+")
    o = ap.parse_args()
    o.work.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for name in o.models:
        problem = check(name, o)
        if problem:
            wrong += 1
            print(f"{name} on {o.device}: WRONG: {problem}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
