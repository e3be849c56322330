// The machine without its registers: fetch, four queues with their engines, semaphores, memories, AXI, counters.
module nx_core (
    input  logic clk, rst, start, drain,              // drain: finish what is open on the bus and start nothing
    input  logic [31:0] count, watchdog, input logic [nx_cfg::CSR_SEG_N-1:0][39:0] seg,
    output logic done, err, bus_idle, output logic [2:0] err_cause, err_queue,
    output logic [nx_cfg::CSR_EPC_N-1:0][31:0] epc, output logic [nx_cfg::CSR_CNT_N-1:0][31:0] cnt,
    input  logic [3:0] tb_stall,
    output logic arvalid, input logic arready, output logic arid, output logic [39:0] araddr, output logic [7:0] arlen,
    input  logic rvalid, output logic rready, input logic rid, input logic [nx_cfg::AXI_B*8-1:0] rdata,
    input  logic rlast, input logic [1:0] rresp,
    output logic awvalid, input logic awready, output logic [39:0] awaddr, output logic [7:0] awlen,
    output logic wvalid, input logic wready, output logic [nx_cfg::AXI_B*8-1:0] wdata,
    output logic [nx_cfg::AXI_B-1:0] wstrb, output logic wlast,
    input  logic bvalid, output logic bready, input logic [1:0] bresp);
  localparam int R = nx_cfg::R;
  localparam int C = nx_cfg::C;
  localparam int W = nx_cfg::WORD;
  localparam int LD = nx_cfg::Q_LD, MAC = nx_cfg::Q_MAC, VEC = nx_cfg::Q_VEC, ST = nx_cfg::Q_ST;
  localparam int FETCH = nx_cfg::CSR_EPC_N - 1;      // reported like a queue, behind the others
  localparam int AI = $clog2(nx_cfg::IN_W), AW = $clog2(nx_cfg::W_W), AA = $clog2(nx_cfg::ACC_W) - 1;
  localparam int AO = $clog2(nx_cfg::OUT_W), AP = $clog2(nx_cfg::PAR_W), AT = $clog2(nx_cfg::TAB_WORDS);
  logic run, halt, stop;
  assign stop = halt || drain;
  // ---- fetch and queues
  logic f_req, f_ack, f_beat, ended, illegal;
  logic [39:0] f_addr;
  logic [7:0] f_len;
  logic [3:0] push, full, head_v, look, sem_ok, sem_conflict, sem_over, ready, go, retire, q_idle, waiting;
  logic [W-1:0] insn;
  logic [31:0] index;
  logic [3:0][W-1:0] head;
  logic [3:0][nx_cfg::NSEM-1:0] wai, give;
  logic [3:0][31:0] retire_index;
  logic [3:0][2:0] bad, fault;
  logic [3:0] busy;
  nx_fetch fetch (.clk, .rst, .halt(stop), .start, .count, .base(seg[nx_cfg::LD_SEG_E_CODE]), .req_v(f_req), .req_addr(f_addr),
      .req_len(f_len), .req_ack(f_ack), .beat_v(f_beat), .beat(rdata), .push, .insn, .index, .full, .ended, .illegal);
  logic [3:0][31:0] live, kept;         // oldest instruction that has not retired
  for (genvar i = 0; i < 4; i++) begin : g_q
    nx_issue issue (.clk, .rst, .halt(stop), .push(push[i]), .push_insn(insn), .push_index(index), .full(full[i]),
        .head_v(head_v[i]), .look(look[i]), .head(head[i]), .wai(wai[i]), .sems_ok(sem_ok[i]), .sem_conflict(sem_conflict[i]),
        .ready(ready[i]), .bad(bad[i]), .start(go[i]), .retire(retire[i]), .give(give[i]), .retire_index(retire_index[i]),
        .idle(q_idle[i]), .waiting(waiting[i]), .epc(live[i]), .fault(fault[i]), .next_index(index));
  end
  // an instruction whose signal overflows a semaphore does not count as retired
  logic [3:0] keep, retired;
  assign retired = retire & ~sem_over;
  for (genvar i = 0; i < 4; i++) begin : g_epc
    assign epc[i] = keep[i] ? kept[i] : live[i];
  end
  assign epc[FETCH] = index;
  always_ff @(posedge clk)
    if (rst) keep <= '0;
    else if (!halt)
      for (int i = 0; i < 4; i++)
        if (sem_over[i]) begin
          keep[i] <= 1'b1;
          kept[i] <= live[i];
        end
  nx_sem sems (.clk, .rst(rst || start), .wai, .give, .start(go), .ok(sem_ok), .conflict(sem_conflict), .overflow(sem_over));
  // ---- bus
  logic l_req, l_ack, l_beat, l_ready, rd_idle, wr_idle, wr_error, s_req, s_ack, s_v, s_take, b_done;
  logic [39:0] l_addr, s_addr;
  logic [7:0] l_len, s_len;
  logic [1:0] rd_error;
  logic [C*8-1:0] s_data;
  nx_rd rd (.clk, .rst, .flush(stop), .f_v(f_req), .f_addr, .f_len, .f_ack, .f_beat, .l_v(l_req), .l_addr, .l_len, .l_ack, .l_beat,
      .l_ready, .idle(rd_idle), .error(rd_error), .arvalid, .arready, .arid, .araddr, .arlen, .rvalid, .rready, .rid, .rlast, .rresp);
  nx_wr wr (.clk, .rst, .flush(stop), .a_v(s_req), .a_addr(s_addr), .a_len(s_len), .a_ack(s_ack), .d_v(s_v), .d(s_data),
      .d_ack(s_take), .idle(wr_idle), .b_done, .error(wr_error), .awvalid, .awready, .awaddr, .awlen, .wvalid, .wready, .wdata,
      .wstrb, .wlast, .bvalid, .bready, .bresp);
  assign bus_idle = rd_idle && wr_idle;
  // ---- engines
  logic [2:0] l_seg, s_seg, l_to;
  logic l_we;
  logic [13:0] l_wa;
  logic [R*8-1:0] l_wd;
  nx_ld ld (.clk, .rst, .halt(stop), .stall(tb_stall[LD]), .look(look[LD]), .head(head[LD]), .ready(ready[LD]), .bad(bad[LD]),
      .start(go[LD]), .retire(retire[LD]), .seg(l_seg), .seg_base(seg[l_seg]), .req_v(l_req), .req_addr(l_addr), .req_len(l_len),
      .req_ack(l_ack), .beat_v(l_beat), .beat(rdata), .beat_ready(l_ready), .we(l_we), .to(l_to), .wa(l_wa), .wd(l_wd),
      .busy(busy[LD]));
  logic m_in_re, m_w_re, m_acc_re, m_acc_we, m_acc_last, m_useful;
  logic [13:0] m_in_ra, m_w_ra;
  logic [10:0] m_acc_ra, m_acc_wa;
  logic [R*8-1:0] in_q;
  logic [C*8-1:0] w_q;
  logic [C*32-1:0] acc_q, acc_wd;
  nx_mac mac (.clk, .rst, .halt(stop), .stall(tb_stall[MAC]), .look(look[MAC]), .head(head[MAC]), .ready(ready[MAC]),
      .bad(bad[MAC]), .start(go[MAC]), .retire(retire[MAC]), .in_re(m_in_re), .in_ra(m_in_ra), .in_q, .w_re(m_w_re),
      .w_ra(m_w_ra), .w_q, .acc_re(m_acc_re), .acc_ra(m_acc_ra), .acc_q, .acc_we(m_acc_we), .acc_wa(m_acc_wa), .acc_wd,
      .acc_last(m_acc_last), .busy(busy[MAC]), .useful(m_useful));
  logic v_acc, v_in, v_out0, v_out1, v_wr, v_wr_in, v_wr_acc, v_conflict, v_step, v_par_re, t_we;
  logic [13:0] v_a, v_b, v_c, v_wa;
  logic [9:0] v_par_ra;
  logic [C*8-1:0] out0_q, out1_q, par_q, v_wd;
  logic [C*32-1:0] v_acc_q;
  logic [31:0] v_var;
  nx_vec vec (.clk, .rst, .halt(stop), .stall(tb_stall[VEC]), .look(look[VEC]), .head(head[VEC]), .ready(ready[VEC]), .bad(bad[VEC]),
      .start(go[VEC]), .retire(retire[VEC]), .acc_want(v_acc), .in_want(v_in), .out0_want(v_out0), .out1_want(v_out1),
      .wr_want(v_wr), .wr_in(v_wr_in), .wr_acc(v_wr_acc), .a_ra(v_a), .b_ra(v_b), .acc_ra(v_c), .wa(v_wa), .conflict(v_conflict), .step(v_step),
      .acc_q(v_acc_q), .in_q, .out0_q, .out1_q, .par_re(v_par_re), .par_ra(v_par_ra), .par_q, .t_we, .t_wa(l_wa[AT-1:0]),
      .t_wd(l_wd), .wd(v_wd), .var_wd(v_var), .busy(busy[VEC]));
  logic s_re, st_ended;
  logic [13:0] s_ra;
  nx_st st (.clk, .rst, .halt(stop), .stall(tb_stall[ST]), .look(look[ST]), .head(head[ST]),
      .others_idle(ended && q_idle[LD] && q_idle[MAC] && q_idle[VEC]), .ready(ready[ST]), .bad(bad[ST]), .start(go[ST]),
      .retire(retire[ST]), .ended(st_ended), .seg(s_seg), .seg_base(seg[s_seg]), .req_v(s_req), .req_addr(s_addr), .req_len(s_len),
      .req_ack(s_ack), .d_v(s_v), .d(s_data), .d_ack(s_take), .b_done, .re(s_re), .ra(s_ra), .rd(out1_q), .busy(busy[ST]));
  // ---- memories; vec yields to everyone
  logic l_in, l_w, l_par, l_out;
  assign l_in = l_we && 32'(l_to) == nx_cfg::LD_TO_E_IN;
  assign l_w = l_we && 32'(l_to) == nx_cfg::LD_TO_E_W;
  assign l_par = l_we && 32'(l_to) == nx_cfg::LD_TO_E_PAR;
  assign l_out = l_we && 32'(l_to) == nx_cfg::LD_TO_E_OUT;
  assign t_we = l_we && 32'(l_to) == nx_cfg::LD_TO_E_TAB;
  logic v_bank, m_bank, v_in_we, v_out_we;
  assign v_bank = v_c[AA];
  assign m_bank = m_acc_ra[AA];
  assign v_conflict = (v_acc && m_acc_re && v_bank == m_bank) || (v_in && m_in_re) || (v_out1 && s_re)
                   || (v_wr && (v_wr_acc ? m_acc_we && m_acc_wa[AA] == v_wa[AA] : v_wr_in ? l_in : l_out));
  assign v_in_we = v_wr && v_wr_in && !v_wr_acc && v_step;
  assign v_out_we = v_wr && !v_wr_in && !v_wr_acc && v_step;
  logic v_in_b;                        // which operand of vec is in `in`
  assign v_in_b = v_out0;
  dlc_sram #(.D(nx_cfg::IN_W), .W(R*8)) m_in (.clk, .we(l_in || v_in_we), .wa(l_in ? l_wa[AI-1:0] : v_wa[AI-1:0]),
      .wd(l_in ? l_wd : v_wd), .re(m_in_re || (v_in && v_step)), .ra(m_in_re ? m_in_ra[AI-1:0] : v_in_b ? v_b[AI-1:0] : v_a[AI-1:0]),
      .rd(in_q));
  dlc_sram #(.D(nx_cfg::W_W), .W(C*8)) m_w (.clk, .we(l_w), .wa(l_wa[AW-1:0]), .wd(l_wd), .re(m_w_re), .ra(m_w_ra[AW-1:0]), .rd(w_q));
  dlc_sram #(.D(nx_cfg::PAR_W), .W(C*8)) m_par (.clk, .we(l_par), .wa(l_wa[AP-1:0]), .wd(l_wd), .re(v_par_re), .ra(v_par_ra[AP-1:0]),
      .rd(par_q));
  dlc_sram #(.D(nx_cfg::OUT_W), .W(C*8)) m_out0 (.clk, .we(l_out || v_out_we), .wa(l_out ? l_wa[AO-1:0] : v_wa[AO-1:0]),
      .wd(l_out ? l_wd : v_wd), .re(v_out0 && v_step), .ra(v_a[AO-1:0]), .rd(out0_q));
  dlc_sram #(.D(nx_cfg::OUT_W), .W(C*8)) m_out1 (.clk, .we(l_out || v_out_we), .wa(l_out ? l_wa[AO-1:0] : v_wa[AO-1:0]),
      .wd(l_out ? l_wd : v_wd), .re(s_re || (v_out1 && v_step)), .ra(s_re ? s_ra[AO-1:0] : v_b[AO-1:0]), .rd(out1_q));
  logic [1:0][C*32-1:0] bank_q;
  logic m_from, v_from;
  for (genvar b = 0; b < 2; b++) begin : g_acc
    logic m_re, v_re, m_we, v_we;
    assign m_re = m_acc_re && m_bank == 1'(b);
    assign v_re = v_acc && v_step && v_bank == 1'(b);
    assign m_we = m_acc_we && m_acc_wa[AA] == 1'(b);
    assign v_we = v_wr && v_wr_acc && v_step && v_wa[AA] == 1'(b);
    dlc_sram #(.D(nx_cfg::ACC_W/2), .W(C*32)) bank (.clk, .we(m_we || v_we), .wa(m_we ? m_acc_wa[AA-1:0] : v_wa[AA-1:0]),
        .wd(m_we ? acc_wd : {C{v_var}}),
        .re(m_re || v_re), .ra(m_re ? m_acc_ra[AA-1:0] : v_c[AA-1:0]), .rd(bank_q[b]));
  end
  assign acc_q = bank_q[m_from];
  assign v_acc_q = bank_q[v_from];
  always_ff @(posedge clk) begin
    m_from <= m_bank;
    v_from <= v_bank;
  end
  // ---- faults, end, watchdog; the first fault stops everything
  logic [31:0] idle_cycles;
  logic late;
  assign late = run && watchdog != '0 && idle_cycles >= watchdog;
  always_comb begin
    err = run && !halt;
    err_cause = 3'(nx_cfg::FAULT_ILLEGAL);
    err_queue = 3'(FETCH);
    if (illegal) err_cause = 3'(nx_cfg::FAULT_ILLEGAL);
    else if (rd_error[0]) err_cause = 3'(nx_cfg::FAULT_AXI);
    else if (rd_error[1]) {err_cause, err_queue} = {3'(nx_cfg::FAULT_AXI), 3'(LD)};
    else if (wr_error) {err_cause, err_queue} = {3'(nx_cfg::FAULT_AXI), 3'(ST)};
    else if (fault[LD] != '0) {err_cause, err_queue} = {fault[LD], 3'(LD)};
    else if (fault[MAC] != '0) {err_cause, err_queue} = {fault[MAC], 3'(MAC)};
    else if (fault[VEC] != '0) {err_cause, err_queue} = {fault[VEC], 3'(VEC)};
    else if (fault[ST] != '0) {err_cause, err_queue} = {fault[ST], 3'(ST)};
    else if (sem_over[LD]) {err_cause, err_queue} = {3'(nx_cfg::FAULT_SEM), 3'(LD)};
    else if (sem_over[MAC]) {err_cause, err_queue} = {3'(nx_cfg::FAULT_SEM), 3'(MAC)};
    else if (sem_over[VEC]) {err_cause, err_queue} = {3'(nx_cfg::FAULT_SEM), 3'(VEC)};
    else if (sem_over[ST]) {err_cause, err_queue} = {3'(nx_cfg::FAULT_SEM), 3'(ST)};
    else if (late) err_cause = 3'(nx_cfg::FAULT_WATCHDOG);
    else err = 1'b0;
  end
  assign done = st_ended;
  always_ff @(posedge clk)
    if (rst) begin
      run <= 1'b0;
      halt <= 1'b0;
      idle_cycles <= '0;
    end else begin
      if (start) run <= 1'b1;
      else if (st_ended) run <= 1'b0;
      if (err) halt <= 1'b1;
      idle_cycles <= start || retire != '0 ? '0 : idle_cycles + 32'(run && !late);
    end
  // ---- counters
  logic [nx_cfg::CSR_CNT_N-1:0] tick;
  always_comb begin
    tick[nx_cfg::CNT_CYCLES] = run && !halt;
    tick[nx_cfg::CNT_MAC] = m_useful;
    tick[nx_cfg::CNT_VEC] = busy[VEC];
    tick[nx_cfg::CNT_LD] = busy[LD];
    tick[nx_cfg::CNT_ST] = busy[ST];
    tick[nx_cfg::CNT_WAIT_LD] = waiting[LD];
    tick[nx_cfg::CNT_WAIT_MAC] = waiting[MAC];
    tick[nx_cfg::CNT_WAIT_VEC] = waiting[VEC];
    tick[nx_cfg::CNT_WAIT_ST] = waiting[ST];
    tick[nx_cfg::CNT_CONFLICT] = v_conflict;
    tick[nx_cfg::CNT_RD_BEATS] = rvalid && rready;
    tick[nx_cfg::CNT_WR_BEATS] = wvalid && wready;
  end
  always_ff @(posedge clk)
    for (int i = 0; i < nx_cfg::CSR_CNT_N; i++)
      if (rst || start) cnt[i] <= '0;
      else if (tick[i]) cnt[i] <= cnt[i] + 1'b1;
  logic unused;
  assign unused = &{1'b0, head_v, retired, busy[MAC], m_acc_last, retire_index, s_ra, l_wa, m_in_ra, m_w_ra, v_a, v_b, v_c, v_wa, v_par_ra};
`ifdef DLC_PROBE
  // ---- what simulators/port reads
  logic [7:0] l_memory;
  always_comb
    case (32'(l_to))
      nx_cfg::LD_TO_E_IN:  l_memory = 8'(nx_cfg::M_IN);
      nx_cfg::LD_TO_E_W:   l_memory = 8'(nx_cfg::M_W);
      nx_cfg::LD_TO_E_PAR: l_memory = 8'(nx_cfg::M_PAR);
      nx_cfg::LD_TO_E_OUT: l_memory = 8'(nx_cfg::M_OUT);
      default:             l_memory = 8'(nx_cfg::M_TAB);
    endcase
  dlc_probe #(.BITS(R*8)) probe_0 (.start(go[LD]), .retire(retired[LD]), .index(retire_index[LD]), .we(l_we), .memory(l_memory),
      .at(32'(l_wa)), .data(l_wd));
  dlc_probe #(.BITS(C*32)) probe_1 (.start(go[MAC]), .retire(retired[MAC]), .index(retire_index[MAC]),
      .we(m_acc_we && m_acc_last), .memory(8'(nx_cfg::M_ACC)), .at(32'(m_acc_wa)), .data(acc_wd));
  dlc_probe #(.BITS(C*32)) probe_2 (.start(go[VEC]), .retire(retired[VEC]), .index(retire_index[VEC]), .we(v_wr && v_step),
      .memory(v_wr_acc ? 8'(nx_cfg::M_ACC) : v_wr_in ? 8'(nx_cfg::M_IN) : 8'(nx_cfg::M_OUT)), .at(32'(v_wa)),
      .data(v_wr_acc ? {C{v_var}} : (C*32)'(v_wd)));
  dlc_probe #(.BITS(8)) probe_3 (.start(go[ST]), .retire(retired[ST]), .index(retire_index[ST]), .we(1'b0), .memory('0), .at('0),
      .data('0));
`endif
endmodule
