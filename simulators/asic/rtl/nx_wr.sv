// The write half of the AXI4 master. Address and data channels are registers. When the core stops (`flush`), the beats
// that are owed go out without a strobe.
module nx_wr (
    input  logic clk, rst, flush,
    input  logic a_v, input logic [39:0] a_addr, input logic [7:0] a_len, output logic a_ack,
    input  logic d_v, input logic [nx_cfg::AXI_B*8-1:0] d, output logic d_ack,
    output logic idle, b_done, error,
    output logic awvalid, input logic awready, output logic [39:0] awaddr, output logic [7:0] awlen,
    output logic wvalid, input logic wready, output logic [nx_cfg::AXI_B*8-1:0] wdata, output logic [nx_cfg::AXI_B-1:0] wstrb,
    output logic wlast, input logic bvalid, output logic bready, input logic [1:0] bresp);
  localparam int N = $clog2(nx_cfg::ST_OPEN + 1), EDGE = $clog2(nx_cfg::DRAM_BOUNDARY);
  logic [7:0] len, at;
  logic l_empty, l_full, beat, last;
  logic [N-1:0] open;
  // a burst's data may go out from the cycle after its address is in the register
  dlc_fifo #(.D(4), .W(8)) lens (.clk, .rst, .push(a_ack), .d(a_len), .pop(beat && last), .q(len), .empty(l_empty),
      .full(l_full));
  assign a_ack = a_v && (!awvalid || awready) && !l_full && open != N'(nx_cfg::ST_OPEN) && !flush;
  assign last = at == len;
  assign beat = !l_empty && (d_v || flush) && (!wvalid || wready);
  assign d_ack = beat && d_v;
  assign bready = 1'b1;
  assign b_done = bvalid;
  assign error = bvalid && bresp != '0;
  assign idle = !awvalid && !wvalid && l_empty && open == '0;
  always_ff @(posedge clk)
    if (rst) begin
      awvalid <= 1'b0;
      awaddr <= '0;
      awlen <= '0;
      wvalid <= 1'b0;
      wdata <= '0;
      wstrb <= '0;
      wlast <= 1'b0;
      at <= '0;
      open <= '0;
    end else begin
      if (a_ack) begin
        awvalid <= 1'b1;
        awaddr <= a_addr;
        awlen <= a_len;
      end else if (awready) awvalid <= 1'b0;
      if (beat) begin
        wvalid <= 1'b1;
        wdata <= d;
        wstrb <= {nx_cfg::AXI_B{d_v && !flush}};
        wlast <= last;
        at <= last ? '0 : at + 1'b1;
      end else if (wready) wvalid <= 1'b0;
      open <= open + N'(a_ack) - N'(bvalid);
    end
`ifndef SYNTHESIS
  logic held, w_held;
  logic [47:0] was;
  logic [nx_cfg::AXI_B*9:0] w_was;
  always_ff @(posedge clk) begin
    held <= !rst && awvalid && !awready;
    w_held <= !rst && wvalid && !wready;
    if (awvalid) was <= {awaddr, awlen};
    if (wvalid) w_was <= {wlast, wstrb, wdata};
    if (!rst) begin
      if (held) a_stable: assert (awvalid && was == {awaddr, awlen});
      if (w_held) a_wstable: assert (wvalid && w_was == {wlast, wstrb, wdata});
      if (awvalid) a_4k: assert (32'(awaddr[EDGE-1:0]) + (32'(awlen) + 1)*nx_cfg::AXI_B <= nx_cfg::DRAM_BOUNDARY);
      if (bvalid) a_expected: assert (open != '0);
    end
  end
`endif
endmodule
