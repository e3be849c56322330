#!/usr/bin/env python3
"""Line coverage of the RTL by test_cosim on the 8x8 machine: coverage.py BUILD_DIR OUT_DIR [PERCENT]

Prints the lines that no test reached, and the share that was; exit status 1 when it is below PERCENT (95).
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ASIC = os.path.abspath(os.path.join(HERE, '..', '..', 'simulators', 'asic'))


def run(command, **kw):
    subprocess.run(command, check=True, **kw)


def main(argv):
    build, out = os.path.abspath(argv[1]), os.path.abspath(argv[2])
    floor = float(argv[3]) if len(argv) > 3 else 95.0
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        os.makedirs(f'{work}/lib')
        os.makedirs(f'{work}/data')
        os.symlink(f'{build}/lib/dlc/rtl/nx16_16x16.so', f'{work}/lib/nx16_16x16.so')
        os.makedirs(f'{work}/config')
        for name in ('nx_cfg.svh', 'nx_cfg.h'):
            shutil.copy(f'{build}/simulators/asic/nx16_8x8/{name}', f'{work}/config')
        run([f'{ASIC}/build_model.sh', f'{work}/config', f'{work}/lib/nx16_8x8.so', '--coverage'],
            env=dict(os.environ, CXXFLAGS='-O1'))
        run([f'{build}/bin/test_cosim', '~a 3x3 layer*'],
            env=dict(os.environ, DLC_RTL_DIR=f'{work}/lib', DLC_RTL_COVERAGE=f'{work}/data'))
        data = [f'{work}/data/{name}' for name in sorted(os.listdir(f'{work}/data'))]
        run(['verilator_coverage', '--write-info', f'{out}/coverage.info', *data])
    lines, hit, at = 0, 0, ''
    with open(f'{out}/coverage.info') as f:
        for text in f:
            if text.startswith('SF:'):
                at = text[3:].strip()
            m = re.match(r'DA:(\d+),(\d+)', text)
            if m:
                lines += 1
                hit += int(m[2]) > 0
                if int(m[2]) == 0:
                    print(f'not reached: {os.path.basename(at)}:{m[1]}')
    share = 100 * hit / lines
    print(f'line coverage: {share:.1f} % ({hit} of {lines})')
    return 0 if share >= floor else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv))
