#!/usr/bin/env python3
"""Plants bugs, one at a time, and says which the tests catch (README.md here has the format of the lists).

    mutants.py BUILD_DIR [--json] [--jobs N] [PART...] [--only NAME...]   # the parts are the .mut files here, without suffix
    mutants.py BUILD_DIR --make NAME OUT.so                               # only a machine's model with this bug, with waveforms

BUILD_DIR is a built tree. Nothing is written there or to the sources. All bugs of a part are built at once: a copy of each
source has `(on(17) ? new : old)` where it had `old`, and the variable DLC_MUTANT of the environment says which is on.
The tests must pass with none. Exit status: 0 when at least 97 % are caught and each survivor is explained in its list.
"""
import argparse
import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.abspath(os.path.join(HERE, '..', '..'))
ENOUGH = 0.97

# Machines with RTL: folder, package of constants, model, the variable with the folder where the tests find it, and what
# must lie beside it there.
MACHINES = {
    'nx16': ('simulators/asic', 'nx_cfg', 'nx16_8x8', 'DLC_RTL_DIR', ['nx16_16x16.so']),
    'os8': ('simulators/os8', 'os_cfg', 'os8', 'DLC_RTL_PATH', []),
}

CPP_SWITCH = '''#pragma once
#include <cstdlib>
inline const int dlc_mutant_on = [] { const char* on = std::getenv("DLC_MUTANT"); return on ? std::atoi(on) : 0; }();
inline bool dlc_mutant(int n) { return dlc_mutant_on == n; }
'''
SV_SWITCH = '''
package dlc_mutant;
  int on = $c32("(std::getenv(\\"DLC_MUTANT\\") ? std::atoi(std::getenv(\\"DLC_MUTANT\\")) : 0)");
endpackage
'''


class Mutant:
    def __init__(self, name, where):
        self.name, self.where, self.number = name, where, 0
        self.file, self.why, self.survives, self.tests, self.old, self.new = '', '', '', [], [], []

    def wrong(self, what):
        raise SystemExit(f'{self.where}: "{self.name}": {what}')

    def spot(self, text):
        """Where the text to replace begins and ends; its surroundings make it the only one."""
        old = '\n'.join(self.old)
        whole = old.replace('`', '')
        count = text.count(whole)
        if count != 1:
            self.wrong(f'its old text is {count} times in {self.file}, not once')
        begin = text.index(whole)
        if old.count('`') == 2:
            before, inner, _ = old.split('`')
            return begin + len(before), begin + len(before) + len(inner)
        return begin, begin + len(whole)

    def guarded(self, old):
        new, verilog = '\n'.join(self.new), self.file.endswith('.sv')
        on = f'dlc_mutant::on == {self.number}' if verilog else f'dlc_mutant({self.number})'
        if not old.endswith(';'):
            return f'({on} ? ({new}) : ({old}))'
        if verilog:
            return f'begin if ({on}) begin {new} end else begin {old} end end'
        return f'{{ if ({on}) {{ {new} }} else {{ {old} }} }}'


class Part:
    """A .mut file."""

    def __init__(self, path):
        self.name = os.path.basename(path)[:-len('.mut')]
        self.rtl, self.tests, self.mutants = None, [], []
        mutant = None
        with open(path) as f:
            for number, line in enumerate(f, 1):
                line, where = line.rstrip('\n'), f'{path}:{number}'
                if not line.strip() or line.startswith('#'):
                    continue
                if line.startswith('== '):
                    mutant = Mutant(line[3:], where)
                    self.mutants.append(mutant)
                elif mutant and line[:2] in ('- ', '+ ', '+'):
                    (mutant.old if line[0] == '-' else mutant.new).append(line[2:])
                else:
                    key, colon, value = line.partition(': ')
                    value = value.strip()
                    if not colon or key not in ('rtl', 'tests', 'file', 'why', 'survives') or not (mutant or key in ('rtl', 'tests')):
                        raise SystemExit(f'{where}: neither a key nor a text')
                    if key == 'tests':
                        value = [shlex.split(t) for t in value.split(';')]
                    setattr(mutant or self, key, value)
        for i, m in enumerate(self.mutants, 1):
            m.number = i
            m.tests = m.tests or self.tests
            if not (m.file and m.why and m.old and m.tests):
                m.wrong('it needs file, why, an old text and tests')

    def files(self):
        return sorted({m.file for m in self.mutants})

    def planted(self, file):
        """The text of the file with every bug of it behind its switch."""
        with open(f'{SOURCES}/{file}') as f:
            text = f.read()
        spots = sorted((*m.spot(text), m) for m in self.mutants if m.file == file)
        out, at = '', 0
        for begin, end, m in spots:
            if begin < at:
                m.wrong('its old text overlaps another\'s')
            out += text[at:begin] + m.guarded(text[begin:end])
            at = end
        return out + text[at:]


def run(command, **kw):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)


def must(command, what, **kw):
    made = run(command, **kw)
    if made.returncode != 0:
        raise SystemExit(f'{what}: does not build\n{made.stdout}')


def make_model(machine, build, work, texts, out, *options):
    """The verilated model of the machine with these texts instead of its files; SV_SWITCH joins its package."""
    folder, package, model, *_ = MACHINES[machine]
    shutil.copytree(f'{SOURCES}/simulators', f'{work}/simulators')
    for file, text in texts.items():
        with open(f'{work}/{file}', 'w') as f:
            f.write(text)
    os.makedirs(f'{work}/config', exist_ok=True)
    for suffix in ('svh', 'h'):
        shutil.copy(f'{build}/simulators/{os.path.basename(folder)}/{model}/{package}.{suffix}', f'{work}/config')
    with open(f'{work}/config/{package}.svh', 'a') as f:
        f.write(SV_SWITCH)
    must([f'{work}/{folder}/build_model.sh', f'{work}/config', out, *options], machine,
         env=dict(os.environ, CXXFLAGS='-O1 -include cstdlib'))


def build_rtl(part, build, work):
    """Gives the environment in which the tests see the model, and the folder of the tests."""
    _, _, model, variable, beside = MACHINES[part.rtl]
    lib, bin_dir = f'{work}/lib', f'{work}/bin'
    os.mkdir(lib)
    os.mkdir(bin_dir)
    for program in {t[0] for m in part.mutants for t in m.tests}:
        shutil.copy(f'{build}/bin/{program}', bin_dir)  # the build may go on meanwhile
    built = f'{build}/lib/dlc/rtl'
    for other in beside:
        os.symlink(f'{built}/{other}', f'{lib}/{other}')
    for link in os.listdir(built):  # its name by arch_hash
        if os.path.islink(f'{built}/{link}') and os.readlink(f'{built}/{link}') == f'{model}.so':
            os.symlink(f'{model}.so', f'{lib}/{link}')
    make_model(part.rtl, build, work, {f: part.planted(f) for f in part.files()}, f'{lib}/{model}.so')
    return {variable: lib}, bin_dir


def build_code(part, build, work, jobs):
    """The test programs, linked with the planted sources before the libraries that have them."""
    with open(f'{work}/mutant.h', 'w') as f:
        f.write(CPP_SWITCH)
    with open(f'{build}/compile_commands.json') as f:
        commands = {os.path.relpath(c['file'], SOURCES): c['command'] for c in json.load(f)}
    compiles, objects = [], {}  # object: the library that has it
    for i, file in enumerate(part.files()):
        if file not in commands:
            raise SystemExit(f'{file} is not compiled')
        copy, words = f'{work}/{i}_{os.path.basename(file)}', shlex.split(commands[file])
        with open(copy, 'w') as f:
            f.write(part.planted(file))
        at = words.index('-o')
        target = words[at + 1].split('/CMakeFiles/')
        objects[f'{copy}.o'] = f'{target[0]}/lib{target[1].split(".dir/")[0]}.a'
        words = [w for w in words[:at] if w != '-Werror'] + ['-w', '-O1', '-include', f'{work}/mutant.h', '-iquote',
                                                            os.path.dirname(f'{SOURCES}/{file}'), '-o', f'{copy}.o', '-c', copy]
        compiles.append((words, file))
    bin_dir = f'{work}/bin'
    os.mkdir(bin_dir)
    links = []
    for program in sorted({t[0] for m in part.mutants for t in m.tests}):
        link = run(['ninja', '-C', build, '-t', 'commands', '-s', f'bin/{program}']).stdout.splitlines()[-1]
        words = shlex.split(link)
        mine = [o for o, library in objects.items() if library in words]
        at = words.index('-o')
        words[at + 1:at + 2] = [f'{bin_dir}/{program}', *mine]
        links.append(([w for w in words if w not in (':', '&&')], program))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(lambda c: must(*c, cwd=build), compiles):
            pass
        for _ in pool.map(lambda c: must(*c, cwd=build), links):
            pass
    return {}, bin_dir


def passes(test, env, bin_dir, number, timeout):
    env = dict(os.environ, **env, DLC_MUTANT=str(number))
    try:
        return run([f'{bin_dir}/{test[0]}', *test[1:], '--abort'], env=env, timeout=timeout).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def try_part(part, build, options):
    """{mutant: caught}"""
    with tempfile.TemporaryDirectory() as work:
        env, bin_dir = build_rtl(part, build, work) if part.rtl else build_code(part, build, work, options.jobs)
        wanted = [m for m in part.mutants if not options.only or m.name in options.only]
        limits = {}
        for test in sorted({tuple(t) for m in wanted for t in m.tests}):
            begin = time.monotonic()
            if not passes(test, env, bin_dir, 0, 1800):
                raise SystemExit(f'{part.name}: {shlex.join(test)} fails without any mutant')
            limits[test] = 60 + 5 * (time.monotonic() - begin)

        def caught(m):
            by = next((t for t in m.tests if not passes(t, env, bin_dir, m.number, limits[tuple(t)])), None)
            print(f'{part.name:10} {"caught  " if by else "SURVIVED"}  {m.name}', file=sys.stderr, flush=True)
            return by is not None

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            return dict(zip(wanted, pool.map(caught, wanted)))


def make_one(parts, build, name, out):
    for part in parts:
        for m in part.mutants:
            if m.name != name or not part.rtl:
                continue
            with open(f'{SOURCES}/{m.file}') as f:
                text = f.read()
            begin, end = m.spot(text)
            with tempfile.TemporaryDirectory() as work:
                make_model(part.rtl, build, work, {m.file: text[:begin] + '\n'.join(m.new) + text[end:]}, out, '--trace')
            return 0
    raise SystemExit(f'no RTL has a mutant "{name}"')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('parts', nargs='*')
    parser.add_argument('--json', action='store_true')
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--only', nargs='+', default=[])
    parser.add_argument('--make', nargs=2)
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    parts = [Part(f'{HERE}/{file}') for file in sorted(os.listdir(HERE)) if file.endswith('.mut')]
    if options.make:
        return make_one(parts, build, options.make[0], os.path.abspath(options.make[1]))
    known = {p.name for p in parts}
    for unknown in sorted(set(options.parts) - known):
        raise SystemExit(f'there is no part {unknown}; there are {", ".join(sorted(known))}')
    parts = [p for p in parts if not options.parts or p.name in options.parts]
    for name in options.only:
        if not any(m.name == name for p in parts for m in p.mutants):
            raise SystemExit(f'there is no mutant "{name}"')
    parts = [p for p in parts if not options.only or any(m.name in options.only for m in p.mutants)]
    results = {p.name: try_part(p, build, options) for p in parts}
    everything = {m: c for r in results.values() for m, c in r.items()}
    planted, caught = len(everything), sum(everything.values())
    survivors = [{'name': m.name, 'file': m.file, 'why': m.survives or 'not explained'} for m, c in everything.items() if not c]
    good = caught >= ENOUGH * planted
    for m, c in everything.items():
        if not c and not m.survives:
            good = False
            print(f'{m.where}: "{m.name}" survived', file=sys.stderr)
        if c and m.survives:
            good = False
            print(f'{m.where}: "{m.name}" is caught: take its `survives` away', file=sys.stderr)
    if options.json:
        by_part = {name: {'planted': len(r), 'caught': sum(r.values())} for name, r in results.items()}
        print(json.dumps({'planted': planted, 'caught': caught, 'parts': by_part, 'survivors': survivors}, indent=2))
    else:
        for s in survivors:
            print(f'survivor: {s["name"]} ({s["file"]}): {s["why"]}')
        print(f'mutation score: {caught} of {planted}')
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
