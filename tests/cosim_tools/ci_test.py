"""The examples of docs/ci are YAML, and their steps do what they promise: those from the description on are run here as a
CI server would. ci_test.py BUILD SOURCE WORK"""
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

from dlc import Dlc, check, kSkipped, same

try:
    import yaml
except ImportError:
    print("SKIPPED: this Python has no yaml (apt-get install python3-yaml)")
    sys.exit(kSkipped)

build, source, work = sys.argv[1:4]
source = pathlib.Path(source).resolve()
dlc = Dlc(build, work)
read = lambda name: yaml.safe_load((source / "docs/ci" / name).read_text())
github, gitlab = read("github-actions.yml"), read("gitlab-ci.yml")["cosim"]
steps = github["jobs"]["cosim"]["steps"]
names = [s.get("name") for s in steps]
github_run = [s["run"] for s in steps[names.index("Check the description"):] if "run" in s]
gitlab_run = gitlab["script"]
upload = next(s for s in steps if "upload-artifact" in s.get("uses", ""))
same("what is uploaded", (upload["with"]["path"], upload["if"], gitlab["artifacts"]["paths"], gitlab["artifacts"]["when"]), ("out", "always()", ["out"], "always"))
same("the variables", github["env"], gitlab["variables"])


def ci(name, scripts, variables, code):
    """A checkout of a hardware team: their description, RTL, a model, golden cycles."""
    folder = dlc.work / name
    if not folder.exists():
        (folder / "models").mkdir(parents=True)
        for file in ("asic.yaml", "asic.recipes"):
            shutil.copy(source / "hwdesc" / file, folder)
        shutil.copy(source / "tests/models/fashion_mnist/fashion_int8.onnx", folder / "models")
        (folder / "cycles.txt").write_text("\n".join(l for l in (source / "tests/cosim_tools/golden_cycles.txt").read_text().splitlines() if "fashion" in l) + "\n")
    env = {**os.environ, **variables, "HW": "asic.yaml,R=8", "PATH": f"{pathlib.Path(dlc.program).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-e", "-c", "\n".join(scripts)], cwd=folder, env=env, text=True, capture_output=True)
    if done.returncode != code:
        sys.exit(f"{name}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return folder


for name, scripts, variables in (("github", github_run, github["env"]), ("gitlab", gitlab_run, gitlab["variables"])):
    # The RTL is there: building it again takes minutes, and the test of the installed package does.
    kept = [s for s in scripts if "build-rtl" not in s]
    same(f"steps of {name} that build the RTL", len(scripts) - len(kept), 1)
    folder = ci(name, kept, variables, 0)
    suite = xml.parse(folder / "out/fashion_int8.xml").getroot().find("testsuite")
    same("failures", suite.get("failures"), "0")
    for file in ("out/fashion_int8.html", "out/fashion_int8.timeline.json", "green/fashion_int8/stream.dlca"):
        check(f"{name} wrote {file}", (folder / file).stat().st_size > 10000)
    text = (folder / "cycles.txt").read_text()
    (folder / "cycles.txt").write_text(text.replace("R=8 ", "R=8 1"))
    ci(name, kept, variables, 1)
    same("failures with other cycles", xml.parse(folder / "out/fashion_int8.xml").getroot().find("testsuite").get("failures"), "1")
