// The read half of the AXI4 master: fetch (id 0) and ld (id 1) share it. The address channel is a register, so that it
// is stable while it waits. When the core stops (`flush`), what is open is received and dropped.
module nx_rd (
    input  logic clk, rst, flush,
    input  logic f_v, input logic [39:0] f_addr, input logic [7:0] f_len, output logic f_ack, f_beat,
    input  logic l_v, input logic [39:0] l_addr, input logic [7:0] l_len, output logic l_ack, l_beat, input logic l_ready,
    output logic idle, output logic [1:0] error,
    output logic arvalid, input logic arready, output logic arid, output logic [39:0] araddr, output logic [7:0] arlen,
    input  logic rvalid, output logic rready, input logic rid, rlast, input logic [1:0] rresp);
  localparam int F = $clog2(nx_cfg::ISSUE_AHEAD + 1), L = $clog2(nx_cfg::LD_OPEN + 1), EDGE = $clog2(nx_cfg::DRAM_BOUNDARY);
  logic free, l_room;
  logic [F-1:0] f_open;
  logic [L-1:0] l_open;
  assign free = (!arvalid || arready) && !flush;
  assign l_room = l_open != L'(nx_cfg::LD_OPEN);
  assign f_ack = free && f_v;
  assign l_ack = free && !f_v && l_v && l_room;
  assign rready = !rid || l_ready || flush;
  assign f_beat = rvalid && !rid;
  assign l_beat = rvalid && rid && !flush;
  assign error = {rvalid && rready && rid && rresp != '0, rvalid && rready && !rid && rresp != '0};
  assign idle = !arvalid && f_open == '0 && l_open == '0;
  always_ff @(posedge clk)
    if (rst) begin
      arvalid <= 1'b0;
      arid <= 1'b0;
      araddr <= '0;
      arlen <= '0;
      f_open <= '0;
      l_open <= '0;
    end else begin
      if (f_ack || l_ack) begin
        arvalid <= 1'b1;
        arid <= l_ack;
        araddr <= f_ack ? f_addr : l_addr;
        arlen <= f_ack ? f_len : l_len;
      end else if (arready) arvalid <= 1'b0;
      f_open <= f_open + F'(f_ack) - F'(rvalid && rready && !rid && rlast);
      l_open <= l_open + L'(l_ack) - L'(rvalid && rready && rid && rlast);
    end
`ifndef SYNTHESIS
  logic held;
  logic [48:0] was;
  always_ff @(posedge clk) begin
    held <= !rst && arvalid && !arready;
    if (arvalid) was <= {arid, araddr, arlen};
    if (!rst) begin
      if (held) a_stable: assert (arvalid && was == {arid, araddr, arlen});
      if (arvalid) a_4k: assert (32'(araddr[EDGE-1:0]) + (32'(arlen) + 1)*nx_cfg::AXI_B <= nx_cfg::DRAM_BOUNDARY);
      if (rvalid) a_expected: assert (rid ? l_open != '0 : f_open != '0);
    end
  end
`endif
endmodule
