"""`dlc report`: the page needs nothing but itself, and shows the numbers of `dlc cosim`. How it looks to a browser is
checked where there is one: report_test.py BUILD SOURCE WORK"""
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys

from dlc import Dlc, check, kSkipped, same

build, source, work = sys.argv[1:4]
dlc = Dlc(build, work)
dlc.run(f"--hw={source}/hwdesc/asic.yaml,R=8", "--dim", "N=1", f"{source}/tests/models/fashion_mnist/fashion_int8.onnx", "-o", "m.dlca")
(dlc.work / "small.json").write_text(json.dumps({"design": {"num_cells": 1234, "num_cells_by_type": {"$dff": 1000, "$mul": 234}}}))
want = dlc.json("cosim", "m.dlca")
layers = [l for l in want["layers"] if "measured_cycles" in l]

predicted = dlc.json("report", "m.dlca", "-o", "predicted.html")
said = dlc.json("report", "m.dlca", "--device", "asic:rtl", "--cells", "nx16_8x8=small.json", "-o", "measured.html")
same("predicted cycles", predicted["totals"]["predicted_cycles"], sum(l["predicted_cycles"] for l in layers))
check("nothing was measured", "measured_cycles" not in predicted["totals"])
same("measured cycles", said["totals"]["measured_cycles"], want["cycles"])
same("layers", [(l["name"], l["predicted_cycles"], l["measured_cycles"]) for l in said["layers"]],
     [(l["name"], l["predicted_cycles"], l["measured_cycles"]) for l in layers])

# Counts that lie beside the verilated model are shown without being named.
arch_hash = re.search(r"arch_hash (0x[0-9a-f]+)", dlc.run("hw", "check", f"{source}/hwdesc/asic.yaml,R=8"))[1]
(dlc.work / "rtl").mkdir()
shutil.copy(dlc.work / "small.json", dlc.work / "rtl" / f"{arch_hash}.cells.json")
dlc.run("report", "m.dlca", "-o", "known.html", env={**os.environ, "DLC_RTL_PATH": str(dlc.work / "rtl")})
known = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', (dlc.work / "known.html").read_text(), re.S)[1])
same("cells beside the model", known["cells"], [{"configuration": "asic.yaml,R=8", "total": 1234, "by_type": {"$dff": 1000, "$mul": 234}}])

(dlc.work / "negative.json").write_text(json.dumps({"design": {"num_cells": -5, "num_cells_by_type": {}}}))
(dlc.work / "words.json").write_text(json.dumps({"design": {"num_cells": 5, "num_cells_by_type": {"$dff": "y"}}}))
for arguments in (["-o", "x.html", "--cells", "negative.json"], ["-o", "x.html", "--cells", "words.json"], ["-o", "x.json", "--cells", "small.json"],
                  ["-o", "x.html", "--input", "none.npz"], ["-o", "m.txt"], ["-o", "x.html", "--cells", "m.dlca"], ["-o", "x.html", "--device", "tpu:"]):
    dlc.run("report", "m.dlca", *arguments, code=1)
check("what fails writes nothing", not (dlc.work / "x.html").exists())

page = (dlc.work / "measured.html").read_text()
links = re.findall(r"""(?:src|href)\s*=\s*["'][^"'#]|url\(\s*["']?(?!#)|@import|fetch\(|XMLHttpRequest""", page)
same("what the page would load", links, [])
data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
times = data["instructions"]
same("columns", {len(c) for c in times.values()}, {said["totals"]["instructions"]})
check("instructions end behind their start", all(a <= b for a, b in zip(times["start"], times["retire"])))
check("the last one retires at the end, but for the interrupt", want["cycles"] - 20 < max(times["retire"]) <= want["cycles"])
for memory in data["memories"]:
    for low, high, begin, end, _ in memory["regions"]:
        check(f"a region of {memory['name']} lies in it", 0 <= low < high <= memory["words"] and 0 <= begin < end <= want["cycles"])
# A region lives as long as addr2op says that its word is used: until the last touch before another tile writes there.
tile_of = lambda i: (times["layer"][i], times["tile"][i])
looked_at = 0
for memory in data["memories"]:
    for low, _, begin, end, i in memory["regions"][::23] if memory["name"] in ("acc", "w", "par") else []:
        touching = dlc.json("addr2op", "m.dlca", f"{memory['name']}:{low}")["found"][0]["instructions"]
        others = [times["start"][t["instruction"]] for t in touching
                  if t["touches"][0]["access"] == "write" and tile_of(t["instruction"]) != tile_of(i)]
        over = min((start for start in others if start > begin), default=want["cycles"])
        used = [times["retire"][t["instruction"]] for t in touching if begin <= times["start"][t["instruction"]] < over]
        same(f"the end of what instruction {i} wrote to {memory['name']}:{low}", end, max(used))
        looked_at += 1
check(f"regions are looked at: {looked_at}", looked_at >= 5)
same("memories", [m["name"] for m in data["memories"]], ["dram.arena", "dram.io1", "in", "w", "acc", "out", "par"])
calls = [n for n in data["graph"]["nodes"] if "layer" in n]
same("calls of the machine", [n["name"] for n in calls], [l["name"] for l in layers])
check("edges go forward", all(a < b for a, b in data["graph"]["edges"]))

browser = next(filter(None, map(shutil.which, ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"])), None)
if browser is None:
    print("SKIPPED: there is no Chromium (apt-get install chromium-headless-shell)")
    sys.exit(kSkipped)
dom = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={work}/profile", "--dump-dom",
                      f"file://{dlc.work.resolve()}/measured.html"], text=True, capture_output=True, timeout=300)
same("the browser's exit code", dom.returncode, 0)


class Page(html.parser.HTMLParser):
    """Text of elements by class, and how many there are of each class."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.count = [], {}, {}

    def handle_starttag(self, tag, attributes):
        classes = (dict(attributes).get("class") or "").split()
        for c in classes:
            self.count[c] = self.count.get(c, 0) + 1
        if tag not in ("meta", "input", "br", "img", "link"):
            self.open.append((tag, classes))
            for c in classes:
                self.text.setdefault(c, []).append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, text):
        for _, classes in self.open:
            for c in classes:
                self.text[c][-1] += text


shown = Page()
shown.feed(dom.stdout)
number = lambda text: int(text.replace(",", ""))
column = lambda kind: [number(t) for t in shown.text[kind] if t != kind]
same("predicted column", column("predicted"), [l["predicted_cycles"] for l in layers])
same("measured column", column("measured"), [l["measured_cycles"] for l in layers])
same("utilisation column", shown.text["utilization"], [f"{100 * l['mac_utilization']:.1f} %" for l in layers if l["macs"]])
same("cards", shown.text["value"][:2], [f"{want['cycles']:,}", f"{100 * want['mac_utilization']:.1f} %"])
same("layers in the timeline", shown.count["layer"], len(layers))
same("nodes of the graph", shown.count["node"], len(data["graph"]["nodes"]))
same("edges of the graph", shown.count["edge"], len(data["graph"]["edges"]))
check("instructions are drawn", shown.count["instruction"] > 50)
check("memories are drawn", shown.count["region"] > 50)
check("cells are shown", "1,234" in dom.stdout and "$mul" in dom.stdout)
print(f"{browser}: {shown.count['instruction']} boxes of instructions, {shown.count['region']} of memories")
