// AXI4 bursts stay inside 4 KiB and have at most 256 beats: how many beats the next one takes.
module nx_split (input logic [39:0] addr, input logic [8:0] left, output logic [8:0] beats);
  localparam int B = nx_cfg::AXI_B;
  logic [12:0] room;
  assign room = (13'd4096 - {1'b0, addr[11:0]}) / 13'(B);
  always_comb begin
    beats = left > 9'd256 ? 9'd256 : left;
    if (13'(beats) > room) beats = 9'(room);
  end
  logic unused;
  assign unused = &{1'b0, addr[39:12]};
endmodule
