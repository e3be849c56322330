// How many beats the next burst takes: it stays inside a block of DRAM_BOUNDARY bytes and has at most DRAM_BURST_MAX beats.
module nx_split (input logic [39:0] addr, input logic [8:0] left, output logic [8:0] beats);
  localparam int B = nx_cfg::AXI_B, EDGE = nx_cfg::DRAM_BOUNDARY, MOST = nx_cfg::DRAM_BURST_MAX;
  localparam int L = $clog2(EDGE), N = L + 1;
  logic [L:0] room;
  assign room = (N'(EDGE) - {1'b0, addr[L-1:0]}) / N'(B);
  always_comb begin
    beats = left > 9'(MOST) ? 9'(MOST) : left;
    if (N'(beats) > room) beats = 9'(room);
  end
  logic unused;
  assign unused = &{1'b0, addr[39:L]};
endmodule
