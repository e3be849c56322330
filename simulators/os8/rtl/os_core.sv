// The machine without its registers: fetch, three queues with their engines, tokens, memories, bus, counters.
module os_core (
    input  logic clk, rst, start, drain,                   // drain: finish what is open on the bus and start nothing
    input  logic [31:0] count, watchdog, input logic [os_cfg::CSR_BASE_N-1:0][31:0] base,
    output logic done, err, bus_idle, output logic [2:0] err_cause, output logic [1:0] err_queue,
    output logic [os_cfg::CSR_EPC_N-1:0][31:0] epc, output logic [os_cfg::CSR_CNT_N-1:0][31:0] cnt,
    input  logic [os_cfg::NQ-1:0] tb_stall,
    output logic arvalid, input logic arready, output logic arid, output logic [39:0] araddr, output logic [7:0] arlen,
    input  logic rvalid, output logic rready, input logic rid, input logic [os_cfg::C*8-1:0] rdata, input logic rlast,
    input  logic [1:0] rresp,
    output logic awvalid, input logic awready, output logic [39:0] awaddr, output logic [7:0] awlen,
    output logic wvalid, input logic wready, output logic [os_cfg::C*8-1:0] wdata, output logic [os_cfg::C-1:0] wstrb,
    output logic wlast, input logic bvalid, output logic bready, input logic [1:0] bresp);
  localparam int C = os_cfg::C, W = os_cfg::WORD, NQ = os_cfg::NQ;
  localparam int LOAD = os_cfg::Q_LOAD, EXEC = os_cfg::Q_EXEC, STORE = os_cfg::Q_STORE, FETCH = NQ;
  localparam int AA = $clog2(os_cfg::ACT_W), AW = $clog2(os_cfg::WGT_W), AR = $clog2(os_cfg::RES_W);
  localparam int AP = $clog2(os_cfg::PAR_WORDS);
  logic run, halt, stop;
  assign stop = halt || drain;
  // ---- fetch, queues, tokens
  logic f_v, f_ack, f_beat, ended, illegal;
  logic [31:0] f_addr, index;
  logic [7:0] f_beats;
  logic [W-1:0] insn;
  logic [NQ-1:0] push, full, look, ok, over, ready, go, retire, q_idle, waiting, busy;
  logic [NQ-1:0][W-1:0] head;
  logic [NQ-1:0][NQ-1:0] pop, give;
  logic [NQ-1:0][31:0] running;
  logic [NQ-1:0][2:0] bad, fault;
  os_fetch fetch (.clk, .rst, .halt(stop), .start, .count, .base(base[0]), .req_v(f_v), .req_addr(f_addr), .req_beats(f_beats),
      .req_ack(f_ack), .beat_v(f_beat), .beat(rdata), .push, .insn, .index, .full, .ended, .illegal);
  for (genvar i = 0; i < NQ; i++) begin : g_q
    os_queue queue (.clk, .rst, .halt(stop), .push(push[i]), .push_insn(insn), .push_index(index), .full(full[i]),
        .look(look[i]), .head(head[i]), .pop(pop[i]), .tokens_ok(ok[i]), .ready(ready[i]), .bad(bad[i]), .start(go[i]),
        .retire(retire[i]), .give(give[i]), .running(running[i]), .idle(q_idle[i]), .waiting(waiting[i]), .epc(epc[i]),
        .fault(fault[i]), .next_index(index));
  end
  assign epc[FETCH] = index;
  os_tokens tokens (.clk, .rst(rst || start), .pop, .give, .start(go), .ok, .overflow(over));
  // ---- bus
  logic l_v, l_ack, l_beat, l_ready, rd_idle, wr_idle, wr_error;
  logic [31:0] l_addr;
  logic [7:0] l_beats;
  logic [1:0] rd_error;
  os_read read (.clk, .rst, .halt(stop), .f_v, .f_addr, .f_beats, .f_ack, .f_beat, .l_v, .l_addr, .l_beats, .l_ack, .l_beat,
      .l_ready, .idle(rd_idle), .error(rd_error), .arvalid, .arready, .arid, .araddr, .arlen, .rvalid, .rready, .rid, .rlast, .rresp);
  assign bus_idle = rd_idle && wr_idle;
  // ---- engines; a segment of a field is one of those behind `code`
  logic [2:0] l_seg, s_seg;
  logic l_we, l_res, blocked;
  logic [1:0] l_to;
  logic [12:0] l_wa, a_ra, w_ra;
  logic [C*8-1:0] l_wd, act_q, wgt_q, par_q, res0_q, res1_q, x_wd;
  logic a_re, w_re, p_re, r_re, s_re, x_we, useful;
  logic [10:0] p_ra;
  logic [11:0] r_ra, s_ra, x_wa;
  os_load load (.clk, .rst, .halt(stop), .stall(tb_stall[LOAD]), .look(look[LOAD]), .head(head[LOAD]), .ready(ready[LOAD]),
      .bad(bad[LOAD]), .start(go[LOAD]), .retire(retire[LOAD]), .busy(busy[LOAD]), .seg(l_seg), .base(base[3'(l_seg + 3'd1)]),
      .req_v(l_v), .req_addr(l_addr), .req_beats(l_beats), .req_ack(l_ack), .beat_v(l_beat), .beat(rdata),
      .beat_ready(l_ready), .we(l_we), .to(l_to), .wa(l_wa), .wd(l_wd), .blocked);
  os_exec exec (.clk, .rst, .halt(stop), .stall(tb_stall[EXEC]), .look(look[EXEC]), .head(head[EXEC]), .ready(ready[EXEC]),
      .bad(bad[EXEC]), .start(go[EXEC]), .retire(retire[EXEC]), .busy(busy[EXEC]), .useful, .act_re(a_re), .act_ra(a_ra),
      .act_q, .wgt_re(w_re), .wgt_ra(w_ra), .wgt_q, .par_re(p_re), .par_ra(p_ra), .par_q, .res_re(r_re), .res_ra(r_ra),
      .res_q(res0_q), .we(x_we), .wa(x_wa), .wd(x_wd));
  os_store store (.clk, .rst, .halt(stop), .stall(tb_stall[STORE]), .look(look[STORE]), .head(head[STORE]),
      .others_idle(ended && q_idle[LOAD] && q_idle[EXEC]), .ready(ready[STORE]), .bad(bad[STORE]), .start(go[STORE]),
      .retire(retire[STORE]), .ended(done), .busy(busy[STORE]), .idle(wr_idle), .error(wr_error), .seg(s_seg),
      .base(base[3'(s_seg + 3'd1)]), .re(s_re), .ra(s_ra), .rd(res1_q), .awvalid, .awready, .awaddr, .awlen, .wvalid, .wready,
      .wdata, .wstrb, .wlast, .bvalid, .bready, .bresp);
  // ---- memories; only `res` has two writers, of which load waits
  logic res_we;
  logic [AR-1:0] res_wa;
  logic [C*8-1:0] res_wd;
  assign l_res = 32'(l_to) == os_cfg::LOAD_TO_E_RES;
  assign blocked = l_res && x_we;
  assign res_we = x_we || (l_we && l_res);
  assign res_wa = x_we ? x_wa[AR-1:0] : l_wa[AR-1:0];
  assign res_wd = x_we ? x_wd : l_wd;
  dlc_sram #(.D(os_cfg::ACT_W), .W(C*8)) act (.clk, .we(l_we && 32'(l_to) == os_cfg::LOAD_TO_E_ACT), .wa(l_wa[AA-1:0]), .wd(l_wd), .re(a_re),
      .ra(a_ra[AA-1:0]), .rd(act_q));
  dlc_sram #(.D(os_cfg::WGT_W), .W(C*8)) wgt (.clk, .we(l_we && 32'(l_to) == os_cfg::LOAD_TO_E_WGT), .wa(l_wa[AW-1:0]), .wd(l_wd), .re(w_re),
      .ra(w_ra[AW-1:0]), .rd(wgt_q));
  dlc_sram #(.D(os_cfg::PAR_WORDS), .W(C*8)) par (.clk, .we(l_we && 32'(l_to) == os_cfg::LOAD_TO_E_PAR), .wa(l_wa[AP-1:0]), .wd(l_wd), .re(p_re),
      .ra(p_ra[AP-1:0]), .rd(par_q));
  dlc_sram #(.D(os_cfg::RES_W), .W(C*8)) res0 (.clk, .we(res_we), .wa(res_wa), .wd(res_wd), .re(r_re), .ra(r_ra[AR-1:0]), .rd(res0_q));
  dlc_sram #(.D(os_cfg::RES_W), .W(C*8)) res1 (.clk, .we(res_we), .wa(res_wa), .wd(res_wd), .re(s_re), .ra(s_ra[AR-1:0]), .rd(res1_q));
  // ---- faults and the watchdog; the first fault stops everything
  logic [31:0] still;
  always_comb begin
    err = run && !halt;
    err_cause = 3'(os_cfg::FAULT_ILLEGAL);
    err_queue = 2'(FETCH);
    if (illegal) err_cause = 3'(os_cfg::FAULT_ILLEGAL);
    else if (rd_error[0]) err_cause = 3'(os_cfg::FAULT_AXI);
    else if (rd_error[1]) {err_cause, err_queue} = {3'(os_cfg::FAULT_AXI), 2'(LOAD)};
    else if (wr_error) {err_cause, err_queue} = {3'(os_cfg::FAULT_AXI), 2'(STORE)};
    else if (fault[LOAD] != '0) {err_cause, err_queue} = {fault[LOAD], 2'(LOAD)};
    else if (fault[EXEC] != '0) {err_cause, err_queue} = {fault[EXEC], 2'(EXEC)};
    else if (fault[STORE] != '0) {err_cause, err_queue} = {fault[STORE], 2'(STORE)};
    else if (over[LOAD]) {err_cause, err_queue} = {3'(os_cfg::FAULT_SEM), 2'(LOAD)};
    else if (over[EXEC]) {err_cause, err_queue} = {3'(os_cfg::FAULT_SEM), 2'(EXEC)};
    else if (over[STORE]) {err_cause, err_queue} = {3'(os_cfg::FAULT_SEM), 2'(STORE)};
    else if (watchdog != '0 && still >= watchdog) err_cause = 3'(os_cfg::FAULT_WATCHDOG);
    else err = 1'b0;
  end
  always_ff @(posedge clk)
    if (rst) begin
      run <= 1'b0;
      halt <= 1'b0;
      still <= '0;
    end else begin
      if (start) run <= 1'b1;
      else if (done) run <= 1'b0;
      if (err) halt <= 1'b1;
      still <= start || retire != '0 ? '0 : still + 32'(run && !halt);
    end
  // ---- counters
  logic [os_cfg::CSR_CNT_N-1:0] tick;
  always_comb begin
    tick[os_cfg::CNT_CYCLES] = run && !halt;
    tick[os_cfg::CNT_EXEC] = useful;
    tick[os_cfg::CNT_LOAD] = busy[LOAD];
    tick[os_cfg::CNT_STORE] = busy[STORE];
    tick[os_cfg::CNT_WAIT_LOAD] = waiting[LOAD];
    tick[os_cfg::CNT_WAIT_EXEC] = waiting[EXEC];
    tick[os_cfg::CNT_WAIT_STORE] = waiting[STORE];
    tick[os_cfg::CNT_CONFLICT] = blocked && busy[LOAD];
  end
  always_ff @(posedge clk)
    for (int i = 0; i < os_cfg::CSR_CNT_N; i++)
      if (rst || start) cnt[i] <= '0;
      else if (tick[i]) cnt[i] <= cnt[i] + 1'b1;
  logic unused;
  assign unused = &{1'b0, busy[EXEC], running, l_wa, a_ra, w_ra, p_ra, r_ra, s_ra, x_wa};
`ifdef DLC_PROBE
  // ---- what simulators/port reads
  logic [7:0] l_memory;
  always_comb
    case (32'(l_to))
      os_cfg::LOAD_TO_E_ACT: l_memory = 8'(os_cfg::M_ACT);
      os_cfg::LOAD_TO_E_WGT: l_memory = 8'(os_cfg::M_WGT);
      os_cfg::LOAD_TO_E_PAR: l_memory = 8'(os_cfg::M_PAR);
      default:               l_memory = 8'(os_cfg::M_RES);
    endcase
  dlc_probe #(.BITS(C*8)) probe_0 (.start(go[LOAD]), .retire(retire[LOAD] && !over[LOAD]), .index(running[LOAD]), .we(l_we),
      .memory(l_memory), .at(32'(l_wa)), .data(l_wd));
  dlc_probe #(.BITS(C*8)) probe_1 (.start(go[EXEC]), .retire(retire[EXEC] && !over[EXEC]), .index(running[EXEC]), .we(x_we),
      .memory(8'(os_cfg::M_RES)), .at(32'(x_wa)), .data(x_wd));
  dlc_probe #(.BITS(8)) probe_2 (.start(go[STORE]), .retire(retire[STORE] && !over[STORE]), .index(running[STORE]), .we(1'b0),
      .memory('0), .at('0), .data('0));
`endif
endmodule
