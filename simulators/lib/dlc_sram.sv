// One write port, one registered read port: every memory of a machine is one of these, which a chip has as macros. A read
// in the cycle of a write to the same word gives the old word.
module dlc_sram #(parameter int D = 1024, parameter int W = 128) (
    input  logic clk,
    input  logic we, input logic [$clog2(D)-1:0] wa, input logic [W-1:0] wd,
    input  logic re, input logic [$clog2(D)-1:0] ra, output logic [W-1:0] rd);
  logic [W-1:0] m [D];
  always_ff @(posedge clk) begin
    if (we) m[wa] <= wd;
    if (re) rd <= m[ra];
  end
endmodule
