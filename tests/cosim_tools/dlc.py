"""Runs the `dlc` of a build for the tests in this folder."""
import json
import pathlib
import shutil
import subprocess
import sys

kSkipped = 77


class Dlc:
    def __init__(self, build, work):
        self.program = str(pathlib.Path(build).resolve() / "bin" / "dlc")
        self.work = pathlib.Path(work).resolve()
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)

    def run(self, *arguments, code=0, env=None):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.work, env=env, text=True, capture_output=True)
        if done.returncode != code:
            sys.exit(f"dlc {' '.join(map(str, arguments))}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *arguments, **options):
        return json.loads(self.run(*arguments, "--json", **options))


def same(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got!r} is not {want!r}")


def check(what, holds):
    if not holds:
        sys.exit(f"wrong: {what}")
