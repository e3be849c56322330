// One write port, one registered read port; a read of the word that is being written gives the old one.
module os_ram #(parameter int D = 1024, parameter int W = 64) (
    input  logic clk,
    input  logic we, input logic [$clog2(D)-1:0] wa, input logic [W-1:0] wd,
    input  logic re, input logic [$clog2(D)-1:0] ra, output logic [W-1:0] rd);
  logic [W-1:0] words [D];
  always_ff @(posedge clk) begin
    if (we) words[wa] <= wd;
    if (re) rd <= words[ra];
  end
endmodule
