"""`dlc export-vectors`: the example test bench reads the files, finds that the RTL does as they say, and says so when one
digit of them is another. `dlc addr2op`: what it says of an instruction it says of the words that this one touches.
vectors_test.py BUILD SOURCE WORK"""
import pathlib
import re
import subprocess
import sys

from dlc import Dlc, check, same

build, source, work = sys.argv[1:4]
source = pathlib.Path(source).resolve()
dlc = Dlc(build, work)
model = source / "tests/models/fashion_mnist/fashion_int8.onnx"
dlc.run(f"--hw={source}/hwdesc/asic.yaml,R=8", "--dim", "N=1", model, "-o", "m.dlca")
said = dlc.json("export-vectors", "m.dlca", "-o", "vectors")["partitions"]
same("instruction streams", len(said), 1)
folder = dlc.work / "vectors/partition1"
for queue, n in said[0]["writes"].items():
    same(f"lines of {queue}", len((folder / f"writes_{queue}.hex").read_text().split()), n)
same("all writes", sum(said[0]["writes"].values()), dlc.json("cosim", "m.dlca")["writes"])
again = dlc.json("export-vectors", "m.dlca", "-o", "again")
for file in folder.iterdir():
    check(f"{file.name} is the same again", file.read_bytes() == (dlc.work / "again/partition1" / file.name).read_bytes())

# Every write of the vectors belongs to the instruction that addr2op names.
line = (folder / "writes_vec.hex").read_text().split()[1234].split("_")
instruction, memory, address = int(line[0], 16), int(line[1], 16), int(line[2], 16)
name = re.search(rf"MEMORY_(\w+) = {memory};", (folder / "vectors.svh").read_text()).group(1).lower()
found = dlc.json("addr2op", "m.dlca", f"{name}:{address}")["found"]
same("partitions", len(found), 1)
writer = [i for i in found[0]["instructions"] if i["instruction"] == instruction]
check(f"instruction {instruction} writes {name}:{address}", len(writer) == 1 and "write" in [t["access"] for t in writer[0]["touches"]])
alone = dlc.json("addr2op", "m.dlca", hex(instruction))["found"][0]["instructions"]
same("the instruction by its number", [alone[0][k] for k in ("queue", "layer", "op", "tile", "text")],
     [writer[0][k] for k in ("queue", "layer", "op", "tile", "text")])
same("its text", alone[0]["text"], (folder / "program.txt").read_text().split("\n")[instruction])
check("it writes a range around the word", any(t["access"] == "write" and t["memory"] == name and t["low"] <= address <= t["high"]
                                               for t in alone[0]["touches"]))
result = (folder / "results.hex").read_text().split()[0].split("_")[0]
check("what lies at a result", dlc.json("addr2op", "m.dlca", f"dram:0x{result}")["found"][0]["buffer"].startswith("output "))
for place, message in [("99999", "instructions, there is no 99999"), ("acc:2048", "acc has 2048 words"), ("cache:1", "has no memory cache"),
                       ("dram:0xfffffffff", "no segment of the program"), ("acc:x", "is no place"),
                       ("dram:0xffffffffffffffff", "is beyond every memory"), ("dram.foo:0", "dram.arena")]:
    done = subprocess.run([dlc.program, "addr2op", "m.dlca", place], cwd=dlc.work, text=True, capture_output=True)
    check(f"addr2op {place}: {done.stderr}", done.returncode == 1 and message in done.stderr)
    check(f"addr2op {place} names the file: {done.stderr}", done.stderr.startswith("m.dlca: ") == (place not in ("acc:x", "dram:0xffffffffffffffff")))
dlc.run("addr2op", "m.dlca", "1", "--partition", "-1", code=2)
dlc.run("addr2op", "m.dlca", "1", "--partition", "99", code=1)

# A folder of vectors is replaced as a whole, and nothing else is.
(dlc.work / "older" / "partition7").mkdir(parents=True)
(dlc.work / "older" / "partition7" / "vectors.svh").write_text("// of another model")
dlc.run("export-vectors", "m.dlca", "-o", "older")
same("no partition of another model", sorted(p.name for p in (dlc.work / "older").iterdir()), sorted(p.name for p in (dlc.work / "vectors").iterdir()))
(dlc.work / "older" / "tb.sv").write_text("// mine")
done = subprocess.run([dlc.program, "export-vectors", "m.dlca", "-o", "older"], cwd=dlc.work, text=True, capture_output=True)
check(f"somebody's file: {done.stderr}", done.returncode == 1 and "it holds 'tb.sv'" in done.stderr)

# The test bench of the repository on them.
(dlc.work / "nx_cfg.svh").write_text(dlc.run("hw", "emit", f"{source}/hwdesc/asic.yaml,R=8", "--as", "sv"))
rtl = source / "simulators/asic/rtl"
subprocess.run(["verilator", "--binary", "--timing", "-Wno-lint", "-Wno-fatal", "--x-initial", "unique", "--top-module", "vectors_tb", "-Mdir", "obj",
                f"-I{folder}", "nx_cfg.svh", *[rtl / f for f in (rtl / "nx.f").read_text().split()],
                source / "simulators/asic/bench/vectors_tb.sv"], cwd=dlc.work, check=True, capture_output=True)


def bench():
    done = subprocess.run(["obj/Vvectors_tb", "+vectors=vectors/partition1"], cwd=dlc.work, text=True, capture_output=True)
    return done.returncode, done.stdout + done.stderr


code, out = bench()
check(f"the bench passes: {out}", code == 0 and f"PASS: {sum(said[0]['writes'].values())} writes" in out)
for name in ("writes_mac.hex", "results.hex"):
    text = (folder / name).read_text()
    at = text.index("\n", len(text) // 2) - 1
    (folder / name).write_text(text[:at] + ("1" if text[at] == "0" else "0") + text[at + 1:])
    code, wrong = bench()
    check(f"another digit in {name} is found: {wrong}", code != 0 and "FAIL: 1 words are wrong" in wrong)
    (folder / name).write_text(text)
print(out.strip())
