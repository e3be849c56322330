#!/usr/bin/env python3
"""nx16 at 8x8 as gates runs programs as its description says, write by write: gates.py BUILD SOURCE WORK

The netlist of simulators/port/synth.sh takes the place of the RTL in a verilated model; its memories stay as they are.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from synthesis import find_yosys, synthesise

build, source, work = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
yosys, _ = find_yosys(build)
shutil.rmtree(work, ignore_errors=True)
(work / 'config').mkdir(parents=True)
synthesise(build, source, 'nx16_8x8', yosys, work / 'cells.json', [work / 'netlist.v'])
# The eight lanes and columns share the code of one; the two modules above the probes stay as the port knows them.
netlist = (work / 'netlist.v').read_text()
netlist = re.sub(r'^(module (?!nx_top\b|nx_core\b)[^;]*;)', r'\1 /*verilator no_inline_module*/', netlist, flags=re.M)
(work / 'netlist.v').write_text(netlist)
for file in ('nx_cfg.svh', 'nx_cfg.h'):
    shutil.copy(build / 'simulators/asic/nx16_8x8' / file, work / 'config')
shutil.copy(source / 'simulators/lib/dlc_sram.sv', work)
(work / 'netlist.vlt').write_text('`verilator_config\nlint_off -file "*/netlist.v"\n')
(work / 'netlist.f').write_text('netlist.vlt\ndlc_sram.sv\nnetlist.v\n')
subprocess.run([source / 'simulators/port/build_model.sh', 'nx_top', work / 'netlist.f', work / 'config', work / 'gates.so'], check=True,
               env={**os.environ, 'CXXFLAGS': '-O0'}, stdout=subprocess.DEVNULL)


def dlc(*arguments):
    done = subprocess.run([build / 'bin/dlc', *arguments], cwd=work, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f'dlc {" ".join(map(str, arguments))}: exit code {done.returncode}\n{done.stdout}{done.stderr}')
    return done.stdout


dlc(f'--hw={source}/hwdesc/asic.yaml,R=8', '--dim', 'N=1', source / 'tests/models/fashion_mnist/fashion_int8.onnx', '-o', 'm.dlca')
rtl = json.loads(dlc('cosim', 'm.dlca', '--json'))
gates = json.loads(dlc('cosim', 'm.dlca', '--device', f'asic:cosim?library={work}/gates.so', '--json'))
for key in ('bit_exact', 'writes', 'cycles'):
    if gates[key] != rtl[key]:
        sys.exit(f'{key}: {gates[key]} as gates, {rtl[key]} as RTL')
print(f'{gates["writes"]} writes and {gates["cycles"]} cycles are the same, {gates["cycles"]/gates["sim_seconds"]:.0f} cycles a second')
