#!/usr/bin/env python3
"""Whole networks on the CPU beside onnxruntime, in one run.

    python3 -m venv build/bench && build/bench/bin/pip install -r tools/requirements.txt
    build/bench/bin/python tools/bench/networks.py --dlc build/bin/dlc [--json out.json] resnet50 mobilenet_v2 bert_base

One thread, batch 1. Rounds of dlc and onnxruntime alternate, so that both see the same clock and the same neighbours; the
ratio is that of the medians. The networks are built by tests/models/make_models.py.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime as ort

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/models"))
import make_io


def dlc_ms(dlc, path, feeds):
    r = subprocess.run([dlc, "bench", path, "--hw=native", "--threads", "1", "--input", feeds, "--json"], check=True,
                       capture_output=True, text=True)
    return json.loads(r.stdout)


def ort_ms(session, feeds, runs):
    for _ in range(2):
        session.run(None, feeds)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--dlc", required=True)
    ap.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/models"))
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--json")
    ap.add_argument("models", nargs="*", default=["resnet50", "mobilenet_v2", "bert_base"])
    o = ap.parse_args()
    o.work.mkdir(parents=True, exist_ok=True)
    results = {}
    for name in o.models:
        path = o.work / f"{name}.onnx"
        if not path.exists():
            subprocess.run([sys.executable, ROOT / "tests/models/make_models.py", "-o", o.work, "--no-check", name], check=True,
                           stdout=subprocess.DEVNULL)
        feeds = make_io.make_inputs(onnx.load(path), 0)
        file = o.work / f"{name}_bench.npz"
        np.savez(file, **feeds)
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(str(path), options)
        ours, theirs, load = [], [], None
        for _ in range(o.rounds):
            r = dlc_ms(o.dlc, path, file)
            ours.append(r["p50_ms"])
            load = r.get("load_ms", load)
            theirs.append(ort_ms(session, feeds, 10))
        results[name] = {"dlc_p50_ms": float(np.median(ours)), "onnxruntime_p50_ms": float(np.median(theirs)),
                         "onnxruntime_over_dlc": float(np.median(theirs) / np.median(ours)), "dlc_load_ms": load}
        print(name, json.dumps(results[name]), flush=True)
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
