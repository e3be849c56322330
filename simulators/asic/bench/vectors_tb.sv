// A test bench for the vectors of `dlc export-vectors`: loads the memory, writes the registers, waits for the interrupt,
// and compares every word that a queue writes, and what lies in memory at the end.
//
//   dlc export-vectors model.dlca -o vectors
//   dlc hw emit asic.yaml --as sv -o nx_cfg.svh
//   simulate nx_cfg.svh, the files of rtl/nx.f and this one, top vectors_tb, vectors.svh in the include path,
//   with +vectors=vectors/partition1. With Verilator: --binary --timing -Ivectors/partition1.
//
// What knows this machine: the registers' bus, AXI, and where queues write (the four instances of vectors_queue).

// The expected writes of one queue. Those of one instruction may come in any order.
module vectors_queue #(parameter int N = 1, DATA_BITS = 8, parameter string NAME = "") (
    input logic clk, we, input logic [7:0] memory, input logic [39:0] address, input logic [DATA_BITS-1:0] data,
    output int left, errors);
  logic [79+DATA_BITS:0] want [N > 0 ? N : 1];   // instruction, memory, address, data
  bit seen [N > 0 ? N : 1];
  int first;                                     // the first that has not been seen
  string folder;
  initial begin
    void'($value$plusargs("vectors=%s", folder));
    if (N > 0) $readmemh({folder, "/writes_", NAME, ".hex"}, want);
    left = N;
    errors = 0;
    first = 0;
  end
  always @(posedge clk) if (we) begin : compare
    automatic int at = -1, place = first;        // the word itself; where it should be
    for (int i = first; i < N && at < 0 && want[i][79+DATA_BITS-:32] == want[first][79+DATA_BITS-:32]; i++)
      if (!seen[i]) begin
        if (want[i][47+DATA_BITS:0] == {memory, address, data}) at = i;
        if (want[i][47+DATA_BITS-:48] == {memory, address}) place = i;
      end
    if (at < 0) begin
      errors = errors + 1;
      if (errors <= 4)
        $display("%s: memory %0d, address 0x%0h: 0x%0h is not what instruction %0d writes", NAME, memory, address, data,
                 first < N ? want[first][79+DATA_BITS-:32] : 32'd0);
      at = place;
    end
    if (at < N) begin
      seen[at] = 1'b1;
      left = left - 1;
      while (first < N && seen[first]) first = first + 1;
    end
  end
endmodule

module vectors_tb;
  `include "vectors.svh"
  localparam int B = nx_cfg::AXI_B;
  localparam int LATENCY = 80;
  localparam int PATIENCE = 10_000_000;          // cycles
  logic clk = 1'b0, rst_n = 1'b0;
  always #5 clk = !clk;

  // ---- the machine
  logic irq, psel = 1'b0, penable = 1'b0, pready, pslverr;
  logic [11:0] paddr = '0;
  logic [31:0] pwdata = '0, prdata;
  logic arvalid, arready, arid, rvalid, rready, rid, rlast, awvalid, awready, awid, wvalid, wready, wlast, bvalid, bready;
  logic [39:0] araddr, awaddr;
  logic [7:0] arlen, awlen;
  logic [2:0] arsize, awsize;
  logic [1:0] arburst, awburst;
  logic [B*8-1:0] rdata, wdata;
  logic [B-1:0] wstrb;
  nx_top dut (.clk, .rst_n, .irq, .psel, .penable, .pwrite(1'b1), .paddr, .pwdata, .prdata, .pready, .pslverr,
      .arvalid, .arready, .arid, .araddr, .arlen, .arsize, .arburst, .rvalid, .rready, .rid, .rdata, .rlast, .rresp(2'b00),
      .awvalid, .awready, .awid, .awaddr, .awlen, .awsize, .awburst, .wvalid, .wready, .wdata, .wstrb, .wlast,
      .bvalid, .bready, .bid(1'b0), .bresp(2'b00), .tb_stall(4'b0000));

  // ---- memory: one burst of each kind at a time
  logic [B*8-1:0] dram [MEMORY_WORDS];
  logic reading = 1'b0, writing = 1'b0, answer = 1'b0;
  logic [39:0] r_at, w_at;
  logic [7:0] r_left;
  int r_wait;
  assign arready = !reading;
  assign rvalid = reading && r_wait == 0;
  assign rlast = r_left == 0;
  assign rdata = dram[32'(r_at) / B];
  assign awready = !writing && !answer;
  assign wready = writing;
  assign bvalid = answer;
  always @(posedge clk) begin
    if (arvalid && arready) begin
      reading <= 1'b1;
      rid <= arid;
      r_at <= araddr;
      r_left <= arlen;
      r_wait <= LATENCY;
    end else if (reading && r_wait != 0) r_wait <= r_wait - 1;
    else if (rvalid && rready) begin
      r_at <= r_at + 40'(B);
      r_left <= r_left - 8'd1;
      if (rlast) reading <= 1'b0;
    end
    if (awvalid && awready) begin
      writing <= 1'b1;
      w_at <= awaddr;
    end
    if (wvalid && wready) begin
      for (int i = 0; i < B; i++) if (wstrb[i]) dram[32'(w_at) / B][i*8+:8] <= wdata[i*8+:8];
      w_at <= w_at + 40'(B);
      if (wlast) begin
        writing <= 1'b0;
        answer <= 1'b1;
      end
    end
    if (bvalid && bready) answer <= 1'b0;
  end

  // ---- what the queues write
  int left [4], errors [4];
  logic [7:0] l_memory;
  always_comb
    case (32'(dut.core.l_to))
      nx_cfg::LD_TO_E_IN: l_memory = 8'(MEMORY_IN);
      nx_cfg::LD_TO_E_W: l_memory = 8'(MEMORY_W);
      nx_cfg::LD_TO_E_PAR: l_memory = 8'(MEMORY_PAR);
      nx_cfg::LD_TO_E_OUT: l_memory = 8'(MEMORY_OUT);
      default: l_memory = 8'(MEMORY_TAB);
    endcase
  vectors_queue #(.N(WRITES_LD), .DATA_BITS(DATA_BITS), .NAME("ld")) ld (.clk, .we(dut.core.l_we), .memory(l_memory),
      .address(40'(dut.core.l_wa)), .data(DATA_BITS'(dut.core.l_wd)), .left(left[0]), .errors(errors[0]));
  vectors_queue #(.N(WRITES_MAC), .DATA_BITS(DATA_BITS), .NAME("mac")) mac (.clk,
      .we(dut.core.m_acc_we && dut.core.m_acc_last), .memory(8'(MEMORY_ACC)), .address(40'(dut.core.m_acc_wa)),
      .data(DATA_BITS'(dut.core.acc_wd)), .left(left[1]), .errors(errors[1]));
  vectors_queue #(.N(WRITES_VEC), .DATA_BITS(DATA_BITS), .NAME("vec")) vec (.clk, .we(dut.core.v_wr && dut.core.v_step),
      .memory(dut.core.v_wr_in ? 8'(MEMORY_IN) : 8'(MEMORY_OUT)), .address(40'(dut.core.v_wa)),
      .data(DATA_BITS'(dut.core.v_wd)), .left(left[2]), .errors(errors[2]));
  vectors_queue #(.N(WRITES_ST), .DATA_BITS(DATA_BITS), .NAME("st")) st (.clk, .we(wvalid && wready && wstrb != '0),
      .memory(8'(MEMORY_DRAM)), .address(w_at), .data(DATA_BITS'(wdata)), .left(left[3]), .errors(errors[3]));

  // ---- the run
  logic [63:0] registers [REGISTERS];            // offset, value
  logic [39+B*8:0] results [RESULTS];            // address, data
  string folder;
  int wrong = 0, cycles = 0;
  initial begin
    if (!$value$plusargs("vectors=%s", folder)) $fatal(1, "+vectors=FOLDER is missing");
    for (int i = 0; i < MEMORY_WORDS; i++) dram[i] = '0;
    $readmemh({folder, "/memory.hex"}, dram);
    $readmemh({folder, "/registers.hex"}, registers);
    $readmemh({folder, "/results.hex"}, results);
    repeat (4) @(negedge clk);
    rst_n = 1'b1;
    for (int i = 0; i < REGISTERS; i++) begin
      @(negedge clk);
      psel = 1'b1;
      {paddr, pwdata} = {registers[i][43:32], registers[i][31:0]};
      @(negedge clk);
      penable = 1'b1;
      @(negedge clk);
      psel = 1'b0;
      penable = 1'b0;
    end
    while (!irq && cycles < PATIENCE) begin
      @(negedge clk);
      cycles = cycles + 1;
    end
    if (!irq) $fatal(1, "FAIL: no interrupt within %0d cycles", PATIENCE);
    for (int i = 0; i < RESULTS; i++)
      if (dram[32'(results[i][39+B*8-:40]) / B] != results[i][B*8-1:0]) wrong = wrong + 1;
    for (int q = 0; q < 4; q++) wrong = wrong + left[q] + errors[q];
    if (wrong != 0) $fatal(1, "FAIL: %0d words are wrong or missing", wrong);
    $display("PASS: %0d writes, %0d results, %0d cycles", WRITES_LD + WRITES_MAC + WRITES_VEC + WRITES_ST, RESULTS, cycles);
    $finish;
  end
  logic unused;
  assign unused = &{1'b0, pready, pslverr, prdata, awid, arsize, awsize, arburst, awburst, awlen};
endmodule
