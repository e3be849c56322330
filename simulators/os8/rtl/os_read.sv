// The read half of the bus: fetch (id 0) and load (id 1). When the machine stops, what is open is received and dropped.
module os_read (
    input  logic clk, rst, halt,
    input  logic f_v, input logic [31:0] f_addr, input logic [7:0] f_beats, output logic f_ack, f_beat,
    input  logic l_v, input logic [31:0] l_addr, input logic [7:0] l_beats, output logic l_ack, l_beat, input logic l_ready,
    output logic idle, output logic [1:0] error,
    output logic arvalid, input logic arready, output logic arid, output logic [39:0] araddr, output logic [7:0] arlen,
    input  logic rvalid, output logic rready, input logic rid, rlast, input logic [1:0] rresp);
  localparam int F = $clog2(os_cfg::ISSUE_AHEAD + 1), L = $clog2(os_cfg::LOAD_OPEN + 1), EDGE = $clog2(os_cfg::DRAM_BOUNDARY);
  logic free;
  logic [F-1:0] f_open;
  logic [L-1:0] l_open;
  assign free = (!arvalid || arready) && !halt;
  assign f_ack = free && f_v;
  assign l_ack = free && !f_v && l_v && l_open != L'(os_cfg::LOAD_OPEN);
  assign rready = !rid || l_ready || halt;
  assign f_beat = rvalid && !rid;
  assign l_beat = rvalid && rid && !halt;
  assign error = {2{rvalid && rready && rresp != '0}} & {rid, !rid};
  assign idle = !arvalid && f_open == '0 && l_open == '0;
  always_ff @(posedge clk)
    if (rst) begin
      arvalid <= 1'b0;
      f_open <= '0;
      l_open <= '0;
    end else begin
      if (f_ack || l_ack) begin
        arvalid <= 1'b1;
        arid <= l_ack;
        araddr <= {8'b0, f_ack ? f_addr : l_addr};
        arlen <= (f_ack ? f_beats : l_beats) - 1'b1;
      end else if (arready) arvalid <= 1'b0;
      f_open <= f_open + F'(f_ack) - F'(rvalid && rready && !rid && rlast);
      l_open <= l_open + L'(l_ack) - L'(rvalid && rready && rid && rlast);
    end
`ifndef SYNTHESIS
  logic held;
  logic [48:0] was;
  always_ff @(posedge clk) begin
    held <= !rst && arvalid && !arready;
    was <= {arid, araddr, arlen};
    if (!rst) begin
      if (held) a_stable: assert (arvalid && was == {arid, araddr, arlen});
      if (arvalid) a_4k: assert (32'(araddr[EDGE-1:0]) + (32'(arlen) + 1)*os_cfg::C <= os_cfg::DRAM_BOUNDARY);
      if (rvalid) a_expected: assert (rid ? l_open != '0 : f_open != '0);
    end
  end
`endif
endmodule
