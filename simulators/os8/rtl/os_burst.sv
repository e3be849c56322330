// How many beats the next burst takes: at most DRAM_BURST_MAX, and none beyond the DRAM_BOUNDARY bytes it begins in.
module os_burst (input logic [31:0] addr, input logic [7:0] left, output logic [7:0] beats);
  localparam int MOST = os_cfg::DRAM_BURST_MAX, B = os_cfg::C, L = $clog2(os_cfg::DRAM_BOUNDARY/B);
  logic [L:0] room;
  assign room = (L+1)'(1 << L) - {1'b0, addr[$clog2(B) +: L]};
  always_comb begin
    beats = left > 8'(MOST) ? 8'(MOST) : left;
    if ((L+1)'(beats) > room) beats = 8'(room);
  end
  logic unused;
  assign unused = &{1'b0, addr};
endmodule
