"""What `dlc cosim` writes beside its verdict: the timeline of the queues, JUnit XML, golden cycles, and the matrix of the
last green and the new RTL and stream. MUTANT is an RTL with a bug in `vec2`: cosim_test.py BUILD SOURCE WORK MUTANT"""
import itertools
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from dlc import Dlc, check, same

build, source, work, mutant = sys.argv[1:5]
dlc = Dlc(build, work)
hw = f"--hw={source}/hwdesc/asic.yaml,R=8"
dlc.run(hw, "--dim", "N=1", f"{source}/tests/models/fashion_mnist/fashion_int8.onnx", "-o", "m.dlca")


def conv():
    """A quantised convolution: nothing of it is a vec2."""
    graph, initial = [], []

    def constant(name, value):
        initial.append(numpy_helper.from_array(numpy.asarray(value), name))
        return name

    scale, zero = constant("scale", numpy.float32(0.25)), constant("zero", numpy.int8(0))
    weight = constant("w", (numpy.arange(8 * 8 * 9) % 15 - 7).astype(numpy.int8).reshape(8, 8, 3, 3))
    for op, inputs, output in [("QuantizeLinear", ["x", scale, zero], "q"), ("DequantizeLinear", ["q", scale, zero], "d"),
                               ("DequantizeLinear", [weight, scale, zero], "dw"), ("Conv", ["d", "dw"], "c"),
                               ("QuantizeLinear", ["c", scale, zero], "cq"), ("DequantizeLinear", ["cq", scale, zero], "y")]:
        graph.append(helper.make_node(op, inputs, [output], name=output))
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    g = helper.make_graph(graph, "conv", [value("x", [1, 8, 9, 9])], [value("y", [1, 8, 7, 7])], initial)
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), dlc.work / "conv.onnx")


def two_programs():
    """Sums of two scales on both sides of an op that stays on the host; their operands need 9 bits."""
    graph, initial = [], []

    def constant(name, value):
        initial.append(numpy_helper.from_array(numpy.asarray(value), name))
        return name

    def node(op, inputs, output):
        graph.append(helper.make_node(op, inputs, [output], name=output))
        return output

    def quantized(x, scale, name):
        scale, zero = constant(name + "_scale", numpy.float32(scale)), constant(name + "_zero", numpy.int8(100))
        return node("DequantizeLinear", [node("QuantizeLinear", [x, scale, zero], name + "_q"), scale, zero], name)

    def total(a, b, name):
        return quantized(node("Add", [quantized(a, 0.004, name + "_a"), quantized(b, 0.005, name + "_b")], name + "_sum"), 0.01, name)

    axis = constant("axis", numpy.int64(3))
    node("Identity", [total(node("CumSum", [total("x0", "x1", "first"), axis], "host"), "x1", "second")], "y")
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 9, 9])
    g = helper.make_graph(graph, "two", [value("x0"), value("x1")], [value("y")], initial)
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), dlc.work / "two.onnx")


conv()
dlc.run(hw, "conv.onnx", "-o", "conv.dlca")

# ---- the timeline: slices of a track do not overlap, layers sum to the run, every instruction is there once
result = dlc.json("cosim", "m.dlca", "--timeline", "t.json", "--junit", "good.xml")
layers = [l for l in result["layers"] if "measured_cycles" in l]
events = json.loads((dlc.work / "t.json").read_text())["traceEvents"]
slices = [e for e in events if e["ph"] == "X"]
same("layers", [(e["name"], e["dur"]) for e in slices if e["cat"] == "layer"], [(l["name"], l["measured_cycles"]) for l in layers])
instructions = [e for e in slices if e["cat"] != "layer"]
same("instructions", sorted(e["args"]["instruction"] for e in instructions), list(range(len(instructions))))
same("names", {e["name"] for e in instructions}, {l["name"] for l in layers} | {"end"})
same("queues", {e["cat"] for e in instructions}, {"ld", "mac", "vec", "st"})
for track in {e["tid"] for e in slices}:
    end = 0
    for e in sorted((e for e in slices if e["tid"] == track), key=lambda e: (e["ts"], e["dur"])):
        check(f"slices of track {track} overlap at {e['ts']}", e["ts"] >= end)
        end = e["ts"] + e["dur"]
check("nothing is behind the run's end", max(e["ts"] + e["dur"] for e in slices) <= result["cycles"])
check("times do not stay in the counters", all("times" not in p["counters"] for p in result["partitions"]))
dlc.run("report", "m.dlca", "-o", "p.json")
predicted = [e for e in json.loads((dlc.work / "p.json").read_text())["traceEvents"] if e["ph"] == "X"]
same("predicted layers", [e["dur"] for e in predicted if e["cat"] == "layer"], [l["predicted_cycles"] for l in layers])

# ---- JUnit
suite = good = xml.parse(dlc.work / "good.xml").getroot().find("testsuite")
same("tests", (suite.get("tests"), suite.get("failures"), suite.get("skipped")), (str(len(layers) + 2), "0", "0"))
same("cases", [c.get("name") for c in suite.iter("testcase")][1:-1], [l["name"] for l in layers])
properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
same("properties", (properties["cycles"], properties["seed"], properties["writes"]), (str(result["cycles"]), "1", str(result["writes"])))
bad = dlc.json("cosim", "m.dlca", "--device", f"asic:cosim?library={mutant}", "--junit", "bad.xml", code=1)
suite = xml.parse(dlc.work / "bad.xml").getroot().find("testsuite")
wrong = [c for c in suite.iter("testcase") if c.find("failure") is not None]
same("the layer that fails", [c.get("name") for c in wrong], [bad["first_difference"]["layer"]])
at = [l["name"] for l in layers].index(wrong[0].get("name"))
same("skipped behind it", [c.get("name") for c in suite.iter("testcase") if c.find("skipped") is not None], [l["name"] for l in layers[at + 1:]])
check("how to go on", "dlc cosim m.cosim" in wrong[0].find("failure").text)

# What cannot begin is an error of a test that every run has.
(dlc.work / "broken.dlca").write_bytes((dlc.work / "m.dlca").read_bytes()[:1000])
dlc.run("conv.onnx", "-o", "other.dlca")
for model, device, why in [("absent.dlca", "asic:cosim", "absent.dlca"), ("broken.dlca", "asic:cosim", "broken.dlca"),
                           ("other.dlca", "asic:cosim", "nothing in this model can be co-simulated"),
                           ("m.dlca", "asic:cosim?library=none.so", "none.so"), ("m.dlca", "asic:cosim?latency=x", "needs a number")]:
    (dlc.work / "error.xml").unlink(missing_ok=True)
    dlc.run("cosim", model, "--device", device, "--junit", "error.xml", code=1)
    suite = xml.parse(dlc.work / "error.xml").getroot().find("testsuite")
    same(f"{model} on {device}", [suite.get(k) for k in ("tests", "failures", "errors", "skipped")], ["1", "0", "1", "0"])
    test = next(suite.iter("testcase"))
    same("its name is that of the test which passes", test.get("name"), next(c.get("name") for c in good.iter("testcase")))
    check(f"why: {test.find('error').get('message')}", why in test.find("error").get("message"))

# ---- two programs of one model that differ: a replay bundle of each
two_programs()
dlc.run(hw, "two.onnx", "-o", "two.dlca")
dlc.run("cosim", "two.dlca")
bad = dlc.json("cosim", "two.dlca", "--device", f"asic:cosim?library={mutant}", code=1)
bundles = [p["counters"]["bundle"] for p in bad["partitions"] if "bundle" in p["counters"]]
same("bundles", (len(bundles), len(set(bundles)), {str(pathlib.Path(b).parent) for b in bundles}), (2, 2, {"two.cosim"}))
for p in bad["partitions"]:
    if "bundle" in p["counters"]:
        again = dlc.json("cosim", p["counters"]["bundle"], code=1)
        same("the replay", again["first_difference"], p["counters"]["first_difference"])
same("two lines say how to replay", dlc.run("cosim", "two.dlca", "--device", f"asic:cosim?library={mutant}", code=1).count("to replay it: dlc cosim two.cosim/"), 2)

# ---- golden cycles, exact in both directions
dlc.run("cosim", "m.dlca", "--write-cycles", "cycles.txt")
dlc.run("cosim", "conv.dlca", "--write-cycles", "cycles.txt")
listed = (dlc.work / "cycles.txt").read_text()
check(listed, f"fashion_int8 asic.yaml,R=8 {result['cycles']}\n" in listed and "conv asic.yaml,R=8 " in listed)
dlc.run("cosim", "m.dlca", "--cycles", "cycles.txt")
for other in (result["cycles"] + 1, result["cycles"] - 1):
    (dlc.work / "other.txt").write_text(listed.replace(str(result["cycles"]), str(other)))
    differs = dlc.json("cosim", "m.dlca", "--cycles", "other.txt", "--junit", "cycles.xml", code=1)["cycles_differ"]
    check(differs, f"{result['cycles']} cycles, the list has {other}" in differs)
    same("JUnit of other cycles", xml.parse(dlc.work / "cycles.xml").getroot().find("testsuite").get("failures"), "1")
(dlc.work / "none.txt").write_text("# nothing\n")
check("a network that is not listed", "is not in the list" in dlc.json("cosim", "m.dlca", "--cycles", "none.txt", code=1)["cycles_differ"])
(dlc.work / "none.txt").write_text("fashion_int8 asic.yaml,R=8 many\n")
dlc.run("cosim", "m.dlca", "--cycles", "none.txt", code=1)
dlc.run("cosim", "m.dlca", "--cycles", "cycles.txt", "--device", "asic:cosim?jitter=9", code=1)

# ---- which side broke. `vec2` is in m.dlca and not in conv.dlca.
folder = dlc.work / "rtl"
folder.mkdir()
broken = {**os.environ, "DLC_RTL_PATH": str(folder)}
shutil.copy(mutant, folder / "mutant.so")


def matrix(model, green, code=0, **options):
    return dlc.json("cosim", model, "--matrix", green, code=code, **options)


same("the first one", [c["result"] for c in matrix("m.dlca", "green")["matrix"]], ["bit exact"])
check("it is kept", (dlc.work / "green/stream.dlca").read_bytes() == (dlc.work / "m.dlca").read_bytes())
good = matrix("m.dlca", "green")
same("nothing broke", (good["broke"], [(c["rtl"], c["stream"], c["result"], c["cycles"]) for c in good["matrix"]]),
     ("nothing", [(r, s, "bit exact", result["cycles"]) for r in ("last green", "new") for s in ("last green", "new")]))
r = matrix("m.dlca", "green", code=1, env=broken)
same("the RTL broke", (r["broke"], [c["result"] for c in r["matrix"]]), ("RTL", ["bit exact", "bit exact", "differs", "differs"]))
matrix("conv.dlca", "old", env=broken)
r = matrix("m.dlca", "old", code=1, env=broken)
same("the stream broke", (r["broke"], [c["result"] for c in r["matrix"]]), ("stream", ["bit exact", "differs", "bit exact", "differs"]))
check("where", r["matrix"][1]["why"] == "layer " + r["first_difference"]["layer"])
check("what is not green is not kept", (dlc.work / "old/stream.dlca").read_bytes() == (dlc.work / "conv.dlca").read_bytes())
dlc.run(hw.replace("R=8", "R=16"), "conv.onnx", "-o", "wide.dlca")
r = matrix("wide.dlca", "green")
same("another architecture", (r["broke"], [c["result"] for c in r["matrix"]]), ("nothing", ["bit exact", "refused", "refused", "bit exact"]))
pathlib.Path(dlc.work / "m.cosim").exists() or sys.exit("no bundle")
dlc.run("cosim", "m.cosim", "--junit", "x.xml", code=1)
check("what is in the folder of the last green", sorted(os.listdir(dlc.work / "green")) == ["rtl.so", "stream.dlca"])


# ---- a difference is told whatever becomes of its bundle, which is whole or not there
def said(*arguments, code=1, **options):
    done = subprocess.run([dlc.program, *map(str, arguments)], cwd=dlc.work, text=True, capture_output=True, **options)
    same(f"exit code of {arguments}\n{done.stdout}{done.stderr}", done.returncode, code)
    return done.stdout + done.stderr


def failures(file):
    return xml.parse(dlc.work / file).getroot().find("testsuite").get("failures")


on_mutant = ("--device", f"asic:cosim?library={mutant}")
(dlc.work / "a_file").write_text("x")
(dlc.work / "mine").mkdir()
(dlc.work / "mine" / "notes.txt").write_text("x")
for bundle, why in (("a_file", "is no folder"), ("/dev/full", "is no folder"), ("m.dlca", "is no folder"), (".", "runs in"), ("mine", "notes.txt")):
    check(f"--bundle {bundle} is refused first", why in said("cosim", "m.dlca", "--bundle", bundle))
same("notes", os.listdir(dlc.work / "mine"), ["notes.txt"])
shutil.copy(dlc.work / "m.dlca", dlc.work / "other.dlca")
(dlc.work / "other.cosim").write_text("x")
text = said("cosim", "other.dlca", *on_mutant, "--junit", "other.xml")
check(text, "first difference: layer" in text and "no replay bundle: other.cosim: error: cannot write: is no folder" in text)
same("JUnit of it", failures("other.xml"), "1")
old = sorted((p.name, p.stat().st_mtime_ns) for p in (dlc.work / "m.cosim").iterdir())
small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))  # as a full disk: the executable does not fit
text = said("cosim", "m.dlca", *on_mutant, "--junit", "full.xml", preexec_fn=small)
check(text, "first difference: layer" in text and "no replay bundle: " in text and "File too large" in text)
same("JUnit without a bundle", failures("full.xml"), "1")
same("the old bundle stays", sorted((p.name, p.stat().st_mtime_ns) for p in (dlc.work / "m.cosim").iterdir()), old)
check("nothing is left beside it", not [p for p in dlc.work.iterdir() if p.name.startswith(".dlc-")])

# ---- a replay: its options do something or are refused, and it writes nothing into its bundle
for options in (("--input", "x.npz"), ("--seed", "3"), ("--seed", "1")):
    check(f"{options} of a replay", "has its own inputs" in said("cosim", "m.cosim", *options))
check("--bundle is not the bundle itself", "is the bundle that is replayed" in said("cosim", "m.cosim", "--bundle", "m.cosim/"))
check("another device", "is for asic:cosim, not for asic:rtl" in said("cosim", "m.cosim", "--device", "asic:rtl"))
for folder in (dlc.work / "m.cosim").rglob("*"):
    folder.chmod(0o444)
(dlc.work / "m.cosim").chmod(0o555)
left = json.loads((dlc.work / "m.cosim/bundle.json").read_text())["report"]["first_difference"]
same("the same difference", dlc.json("cosim", "m.cosim", code=1)["first_difference"], left)
(dlc.work / "m.cosim").chmod(0o755)
good_rtl = next(p["counters"]["library"] for p in dlc.json("cosim", "m.dlca")["partitions"] if "library" in p["counters"])
check("on RTL without the bug", dlc.json("cosim", "m.cosim", "--device", f"asic:cosim?library={good_rtl}")["bit_exact"])
check("no bundle", "no bundle.json" in said("cosim", "green") and "next:" in said("cosim", "green"))

# ---- one name for two outputs
for a, b in itertools.combinations(("--junit", "--timeline", "--write-cycles", "--matrix", "--bundle"), 2):
    check(f"{a} and {b}", "is written twice" in said("cosim", "m.dlca", a, "same", b, "./same"))
check("nothing was written", not (dlc.work / "same").exists())
check("a file in a folder that is replaced", "green/j.xml is written too" in said("cosim", "m.dlca", "--matrix", "green", "--junit", "green/j.xml"))

# ---- JUnit of any name
odd = b"odd \xff\xef\xbf\xbe\xef\xbf\xbf\xed\xa0\x80\x01 \xc3\xa9.dlca".decode(errors="surrogateescape")
shutil.copy(dlc.work / "conv.dlca", dlc.work / odd)
dlc.json("cosim", odd, "--junit", "odd.xml")
properties = {p.get("name"): p.get("value") for p in xml.parse(dlc.work / "odd.xml").getroot().iter("property")}
same("the artifact's name", properties["artifact"], "odd " + "?" * 11 + " é.dlca")

# ---- names in the list of cycles are words, and no two are one
for name in ("my net", "my_net", "my\nnet", "my%20net", "#"):
    shutil.copy(dlc.work / "conv.onnx", dlc.work / f"{name}.onnx")
    dlc.run(hw, f"{name}.onnx", "-o", "named.dlca")
    dlc.run("cosim", "named.dlca", "--write-cycles", "names.txt")
    dlc.run("cosim", "named.dlca", "--cycles", "names.txt")
words = [line.split()[0] for line in (dlc.work / "names.txt").read_text().splitlines()[1:]]
same("names", sorted(words), sorted(["my%20net", "my_net", "my%0anet", "my%2520net", "%23"]))
# Those who renew lines at once wait for each other.
both = [subprocess.Popen([dlc.program, "cosim", m, "--write-cycles", "both.txt"], cwd=dlc.work, stdout=subprocess.DEVNULL)
        for m in ("conv.dlca", "named.dlca", "m.dlca")]
same("all of them are done", [p.wait() for p in both], [0, 0, 0])
same("lines of all", len((dlc.work / "both.txt").read_text().splitlines()), 4)
(dlc.work / "broken.txt").write_text("one\n")
check("a list that is wrong is told first", "no line of cycles" in said("cosim", "m.dlca", *on_mutant, "--write-cycles", "broken.txt"))

# ---- a memory that is as slow as it may be is no difference
check("slow", dlc.json("cosim", "conv.dlca", "--device", "asic:cosim?latency=10000&jitter=10000&stall=50")["bit_exact"])
text = said("cosim", "conv.dlca", "--device", "asic:cosim?jitter=1000000", "--bundle", "b")
check(text, "'jitter' is at most 10000" in text and "bundle" not in text)
