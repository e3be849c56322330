#!/usr/bin/env python3
"""Plants bugs in the RTL of a machine, one at a time, and says which its tests catch.

    mutants.py BUILD_DIR [--os8] [NAME...]    # the tests against each; first against the RTL as it is, which must pass
    mutants.py BUILD_DIR --make NAME OUT.so   # only the model, with waveforms

BUILD_DIR is a built tree. Each mutant is verilated and compiled, of nx16 at 8x8. Exit status: 0 when every mutant is caught.
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SIMULATORS = os.path.join(HERE, '..', '..', 'simulators')

# name: (file, old text, new text)
NX16 = {
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

OS8 = {
    'tokens are not reset': ('os_tokens.sv', "if (rst) count", "if (1'b0) count"),
    'a token too many is no fault': ('os_tokens.sv', "(give[q] & most[q] & ~take[q]) != '0", "1'b0"),
    'a start does not wait': ('os_queue.sv', "start = settled && tokens_ok &&", "start = settled &&"),
    'reserved bits are not checked': ('os_fetch.sv', "if ((insn & ~used) != '0) legal = 1'b0;", ''),
    'bursts cross 4 KiB': ('os_burst.sv', "if ((L+1)'(beats) > room) beats = 8'(room);", ''),
    'AR changes while it waits': ('os_read.sv', '(!arvalid || arready) && !halt', '!halt'),
    'read errors are not seen': ('os_read.sv', "{2{rvalid && rready && rresp != '0}} & {rid, !rid}", "2'b0"),
    'left padding is one short': ('os_load.sv', "x >= 8'(px)", "x > 8'(px)"),
    'padding rows are read': ('os_load.sv', "row_inside = a_y >= 8'(py) &&", 'row_inside ='),
    'load may leave its memory by a word': ('os_load.sv', "words + 22'(sp) > limit", "words + 22'(sp) > limit + 22'd1"),
    'store retires before its answers': ('os_store.sv', 'run && !rows_left && idle', "run && !rows_left && owed == '0"),
    'half rounds up': ('os_lane.sv', " + 64'($signed({v[63]}))", ''),
    'the bias is left out': ('os_lane.sv', '(x + bias)', '(x)'),
    'the lower bound has the last word': ('os_lane.sv', "low > 64'($signed(hi)) ? hi", "r >= 64'($signed(lo)) && low > 64'($signed(hi)) ? hi"),
    'accumulators keep the block before': ('os_row.sv', "first ? '0 : acc[c]", 'acc[c]'),
    'a maximum begins at nothing': ('os_row.sv', 'first || a > old', 'a > old'),
    'vectors become live a pixel early': ('os_exec.sv', "conv ? p == 3'd7", "conv ? p == 3'd6"),
    'weights begin again at each tap': ('os_exec.sv', 'swap && first2 ? w_base', 'swap ? w_base'),
    'the last block has eight pixels': ('os_exec.sv', "left - 16'(n_p) < 16'd8 ? 4'(left - 16'(n_p)) : 4'd8", "4'd8"),
    'later taps read the first pixel': ('os_exec.sv', 'pix_ow : pix[p]', 'pix_ow : pix[0]'),
    'exec may leave res by a word': ('os_exec.sv', "17'(pixels) + 17'(d_base) > 17'(os_cfg::RES_W)", "17'(pixels) + 17'(d_base) > 17'(os_cfg::RES_W + 1)"),
    'the write port of res is not arbitrated': ('os_core.sv', 'blocked = l_res && x_we', "blocked = 1'b0"),
    'a fault does not stop the queues': ('os_core.sv', 'stop = halt || drain', 'stop = drain'),
    'reset does not wait for the bus': ('os_top.sv', 'reset_req && bus_idle', 'reset_req'),
}


class Machine:
    def __init__(self, mutants, folder, package, model, test, variable, beside=()):
        self.mutants, self.folder, self.package, self.model = mutants, f'{SIMULATORS}/{folder}', package, model
        self.config, self.test, self.variable, self.beside = f'simulators/{folder}/{model}', test, variable, beside


MACHINES = {
    'nx16': Machine(NX16, 'asic', 'nx_cfg', 'nx16_8x8', ['test_cosim', '~a 3x3 layer*'], 'DLC_RTL_DIR', ['nx16_16x16.so']),
    'os8': Machine(OS8, 'os8', 'os_cfg', 'os8', ['test_cosim_os8'], 'DLC_RTL_PATH'),
}


def run(command, **kw):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)


def make(m, name, build, work, out, *options):
    """The model with this bug in it; without a name the model as it is."""
    rtl = f'{work}/simulators/machine/rtl'
    shutil.rmtree(f'{work}/simulators', ignore_errors=True)
    shutil.copytree(f'{m.folder}/rtl', rtl)
    shutil.copytree(f'{SIMULATORS}/lib', f'{work}/simulators/lib')
    if name:
        file, old, new = m.mutants[name]
        with open(f'{rtl}/{file}') as f:
            text = f.read()
        if old not in text:
            raise SystemExit(f'{name}: {file} has changed, the text to mutate is not there')
        with open(f'{rtl}/{file}', 'w') as f:
            f.write(text.replace(old, new))
    os.makedirs(f'{work}/config', exist_ok=True)
    for suffix in ('svh', 'h'):
        shutil.copy(f'{build}/{m.config}/{m.package}.{suffix}', f'{work}/config')
    made = run([f'{m.folder}/build_model.sh', f'{work}/config', out, *options],
               env=dict(os.environ, RTL=rtl, CXXFLAGS='-O1'))
    if made.returncode != 0:
        raise SystemExit(f'{name}: does not build\n{made.stdout}')


def passes(m, build, lib):
    env = dict(os.environ, **{m.variable: lib})
    try:
        return run([f'{build}/bin/{m.test[0]}', *m.test[1:], '--abort'], env=env, timeout=900).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main(argv):
    build, argv = os.path.abspath(argv[1]), argv[2:]
    m = MACHINES['os8' if argv[:1] == ['--os8'] else 'nx16']
    argv = argv[argv[:1] == ['--os8']:]
    with tempfile.TemporaryDirectory() as work:
        if argv[:1] == ['--make']:
            make(m, argv[1], build, work, os.path.abspath(argv[2]), '--trace')
            return 0
        names = argv or list(m.mutants)
        lib = f'{work}/lib'
        os.mkdir(lib)
        for other in m.beside:
            os.symlink(f'{build}/lib/dlc/rtl/{other}', f'{lib}/{other}')
        survivors = []
        for name in [None, *names]:
            make(m, name, build, work, f'{lib}/{m.model}.so')
            if name is None:
                if not passes(m, build, lib):
                    raise SystemExit('the tests fail without any mutant')
                continue
            caught = not passes(m, build, lib)
            print(f'{"caught  " if caught else "SURVIVED"}  {name}', flush=True)
            if not caught:
                survivors.append(name)
    print(f'mutation score: {len(names) - len(survivors)} of {len(names)}')
    return 1 if survivors else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
