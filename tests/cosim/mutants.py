#!/usr/bin/env python3
"""Plants bugs in the RTL, one at a time, and says which the tests catch.

    mutants.py BUILD_DIR [NAME...]            # test_cosim against each; first against the RTL as it is, which must pass
    mutants.py BUILD_DIR --make NAME OUT.so   # only the model, with waveforms

BUILD_DIR is a built tree. Each mutant is verilated and compiled at 8x8. Exit status: 0 when every mutant is caught.
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ASIC = os.path.join(HERE, '..', '..', 'simulators', 'asic')

# name: (file, old text, new text)
MUTANTS = {
    'semaphores are not reset': ('nx_sem.sv', "      for (int s = 0; s < S; s++) count[s] <= '0;\n", ''),
    'semaphore 256 is no overflow': ('nx_sem.sv', "> N'(MOST)", "> N'(MOST + 1)"),
    'a start does not wait': ('nx_issue.sv', 'go && sems_ok && !sem_conflict', 'go && !sem_conflict'),
    'second waiting queue is not seen': ('nx_issue.sv', "sem_conflict ? 3'(nx_cfg::FAULT_SEM) :", ''),
    'reserved bits are not checked': ('nx_fetch.sv', "known && (insn & ~used) == '0", 'known'),
    'instructions after end stay in the buffer': ('nx_fetch.sv', "stopped && !q_empty", "1'b0"),
    'bursts cross 4 KiB': ('nx_split.sv', "N'(EDGE)", "N'(2*EDGE - 1)"),
    'AR changes while it waits': ('nx_rd.sv', '(!arvalid || arready) && !flush', '!flush'),
    'read errors are not seen': ('nx_rd.sv', "rvalid && rready && rid && rresp != '0", "1'b0"),
    'owed write beats carry strobes': ('nx_wr.sv', '{d_v && !flush}', "{1'b1}"),
    'left padding is one short': ('nx_ld.sv', 'x >= lo', 'x > lo'),
    'padding rows are read': ('nx_ld.sv', "yy >= 0 && yy < $signed({2'b0, y1}) && x", 'x'),
    'ld may leave its memory by a word': ('nx_ld.sv', "36'(h_sp) > 36'(limit)", "36'(h_sp) > 36'(limit) + 36'd1"),
    'st retires before its answers': ('nx_st.sv', '!b_empty && answered >= b_q', '!b_empty'),
    'weights loaded by column keep their zero point': ('nx_col.sv', "signed'(w_word[r*8 +: 8])) - 32'(signed'(zw))",
                                                       "signed'(w_word[r*8 +: 8]))"),
    'accum is ignored': ('nx_mac.sv', 'first <= !h_accum', "first <= 1'b1"),
    'depthwise keeps old weights': ('nx_mac.sv', 'w_clear(dw && ld1_first)', "w_clear(1'b0)"),
    'three-tap mode with stride 2 keeps every output': ('nx_mac.sv', '!(two && odd)', "1'b1"),
    'weights swap a vector early': ('nx_mac.sv', "(!pix || (last_pix && !last_tile))", '(!pix || (last_j && !last_tile))'),
    'negative spans are not checked': ('nx_mac.sv', 'lowest < 0 || ', ''),
    'half rounds up': ('nx_vlane.sv', "- 64'sd1 + $signed({63'b0, r[0]})", ''),
    'maximum in 32 bits': ('nx_vlane.sv', "d = 33'(v) - 33'(zero);", "d = 33'(signed'(v - 32'(zero)));"),
    'vec2 operand of 8 bits': ('nx_vlane.sv', "32'(signed'(fold[8:0]))", "32'(signed'(fold[7:0]))"),
    'the table slot is ignored': ('nx_vlane.sv', '{slot, r_q[7:LC]', "{8'b0, r_q[7:LC]"),
    'row takes lanes behind its end': ('nx_vec.sv', "left > 12'(c) && ", ''),
    'a reciprocal of 2**14 is half': ('nx_vlane.sv', "if (at < 5'd14) recip", "if (at == 5'd14) recip = 31'(rom[below]) >> 1;\n    else if (at < 5'd14) recip"),
    'vec retires after one row': ('nx_vec.sv', 'w_ow + 1\'b1 == n_ow && w_oh + 1\'b1 == n_oh', "w_ow + 1'b1 == n_ow"),
    'a stalled operand is lost': ('nx_hold.sv', 'fresh ? q : kept', 'q'),
    'accumulator port is not arbitrated': ('nx_core.sv', 'v_acc && m_acc_re && v_bank == m_bank', "1'b0"),
    'write port is not arbitrated': ('nx_core.sv', 'v_wr && (v_wr_in ? l_in : l_out)', "1'b0"),
    'read port of out is not arbitrated': ('nx_core.sv', '(v_out1 && s_re)', "1'b0"),
    'reset does not wait for the bus': ('nx_top.sv', 'reset_req && bus_idle', 'reset_req'),
    'a fault does not stop the queues': ('nx_core.sv', 'stop = halt || drain', 'stop = drain'),
}


def run(command, **kw):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)


def make(name, build, work, out, *options):
    """The 8x8 model with this bug in it; without a name the model as it is."""
    shutil.rmtree(f'{work}/rtl', ignore_errors=True)
    shutil.copytree(f'{ASIC}/rtl', f'{work}/rtl')
    if name:
        file, old, new = MUTANTS[name]
        with open(f'{work}/rtl/{file}') as f:
            text = f.read()
        if old not in text:
            raise SystemExit(f'{name}: {file} has changed, the text to mutate is not there')
        with open(f'{work}/rtl/{file}', 'w') as f:
            f.write(text.replace(old, new))
    os.makedirs(f'{work}/config', exist_ok=True)
    for header in ('nx_cfg.svh', 'nx_cfg.h'):
        shutil.copy(f'{build}/simulators/asic/nx16_8x8/{header}', f'{work}/config')
    made = run([f'{ASIC}/build_model.sh', f'{work}/config', out, *options],
               env=dict(os.environ, RTL=f'{work}/rtl', CXXFLAGS='-O1'))
    if made.returncode != 0:
        raise SystemExit(f'{name}: does not build\n{made.stdout}')


def passes(build, lib):
    env = dict(os.environ, DLC_RTL_DIR=lib)
    try:
        return run([f'{build}/bin/test_cosim', '~a 3x3 layer*', '--abort'], env=env, timeout=900).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main(argv):
    build = os.path.abspath(argv[1])
    with tempfile.TemporaryDirectory() as work:
        if argv[2:3] == ['--make']:
            make(argv[3], build, work, os.path.abspath(argv[4]), '--trace')
            return 0
        names = argv[2:] or list(MUTANTS)
        lib = f'{work}/lib'
        os.mkdir(lib)
        os.symlink(f'{build}/lib/dlc/rtl/nx16_16x16.so', f'{lib}/nx16_16x16.so')
        survivors = []
        for name in [None, *names]:
            make(name, build, work, f'{lib}/nx16_8x8.so')
            if name is None:
                if not passes(build, lib):
                    raise SystemExit('the tests fail without any mutant')
                continue
            caught = not passes(build, lib)
            print(f'{"caught  " if caught else "SURVIVED"}  {name}', flush=True)
            if not caught:
                survivors.append(name)
    print(f'mutation score: {len(names) - len(survivors)} of {len(names)}')
    return 1 if survivors else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
