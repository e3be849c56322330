"""Golden cycle counts: golden_cycles.txt says how long each network takes on each configuration of the RTL, and holds
both ways: another number, a network that is not listed, and a line of no network are all errors.

    golden_cycles.py BUILD SOURCE WORK            compare
    golden_cycles.py BUILD SOURCE WORK --renew    write the list anew
"""
import pathlib
import sys

from dlc import Dlc, same

build, source, work = sys.argv[1:4]
renew = sys.argv[4:] == ["--renew"]
source = pathlib.Path(source).resolve()
listed = pathlib.Path(__file__).resolve().with_name("golden_cycles.txt")
others = source.parent / "shared/models/real/mlperf_onnx"
dlc = Dlc(build, work)
fashion = source / "tests/models/fashion_mnist/fashion_int8.onnx"
networks = [(fashion, ["--dim", "N=1"], r) for r in (8, 16)]
networks += [(others / f"{n}_qdq.onnx", [], r) for n in ("resnet8", "kws", "vww", "ad") for r in (8, 16)]
keys = {f"{model.stem} asic.yaml,R={r}" for model, _, r in networks}
if renew:
    if others.exists() or not listed.exists():  # networks that are not here keep their lines
        listed.write_text("")
else:
    lines = [l.rsplit(" ", 1)[0] for l in listed.read_text().splitlines() if not l.startswith("#")]
    same("networks in the list", sorted(lines), sorted(keys))
absent = 0
for model, options, r in networks:
    if not model.exists():
        absent += 1
        continue
    dlc.run(f"--hw={source}/hwdesc/asic.yaml,R={r}", *options, model, "-o", f"{model.stem}.dlca")
    dlc.run("cosim", f"{model.stem}.dlca", "--write-cycles" if renew else "--cycles", listed)
print(f"{len(networks) - absent} of {len(networks)} networks" + (f"; there is no {others}" if absent else ""))
