#!/usr/bin/env python3
"""Random programs, legal and damaged ones, on the RTL: streams.py BUILD_DIR NUMBER [--all] [--jobs N] [--first SEED]

NUMBER programs in all, half of them damaged, with stalls, jitter, backpressure and initial state from their seeds: on nx16 at 8x8
and 16x16 and on os8, as built; with --all also on machines with other parameters, whose models are made first. A failing
seed is printed with the command that repeats it.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile

SOURCES = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
STEP = 50  # seeds of one process

# Parts of NUMBER, and parameters of nx16; none: 8x8 and, for one seed of six, 16x16.
SETS = {
    'built': (4, None),
    'small': (3, 'R=8,IN_W=2048,W_W=2048,ACC_W=512,OUT_W=1024,PAR_W=256,SLOTS=2,QD=2'),  # memories and queues
    'large': (1, 'R=32'),
    'os8': (2, None),
}


def run(command, **kw):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)


def make_model(build, work, name, params):
    folder, out = f'{work}/{name}', f'{work}/{name}.so'
    os.mkdir(folder)
    for kind, file in (('sv', 'nx_cfg.svh'), ('cpp', 'nx_cfg.h')):
        subprocess.run([f'{build}/bin/dlc-hw-gen', f'{SOURCES}/hwdesc/asic.yaml,{params}', kind, f'{folder}/{file}'], check=True)
    made = run([f'{SOURCES}/simulators/asic/build_model.sh', folder, out])
    if made.returncode != 0:
        raise SystemExit(f'{name}: does not build\n{made.stdout}')
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('number', type=int)
    parser.add_argument('--all', action='store_true')
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--first', type=int, default=0)
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    sets = {n: s for n, s in SETS.items() if options.all or s[1] is None}
    parts = sum(part for part, _ in sets.values())
    with tempfile.TemporaryDirectory() as work:
        jobs = []
        for name, (part, params) in sets.items():
            env = {'DLC_COSIM_PARAMS': params, 'DLC_COSIM_MODEL': make_model(build, work, name, params)} if params else {}
            program = 'test_cosim_os8' if name == 'os8' else 'test_cosim'
            seeds = -(-options.number * part // parts // 2)  # of each kind of program
            for first in range(options.first, options.first + seeds, STEP):
                count = min(STEP, options.first + seeds - first)
                jobs.append((name, program, {**env, 'DLC_COSIM_FIRST': str(first), 'DLC_COSIM_SEEDS': str(count)}))

        def one(job):
            name, program, env = job
            done = run([f'{build}/bin/{program}', '[streams]'], env=dict(os.environ, **env))
            if done.returncode != 0:
                print(f'{name}: {" ".join(f"{k}={v}" for k, v in env.items())} {program} "[streams]"\n{done.stdout}', flush=True)
            return name, 2 * int(env['DLC_COSIM_SEEDS']), done.returncode != 0

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(one, jobs))
    for name in sets:
        print(f'{name}: {sum(n for of, n, _ in results if of == name)} programs')
    failed = sum(bad for _, _, bad in results)
    print(f'{sum(n for _, n, _ in results)} programs, {failed} groups of {STEP} seeds with a failure')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
