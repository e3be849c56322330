// Keeps the word of a shared read port for a client that may stall: `fresh` says that the port read for this client
// in the last cycle; later reads of others then do not disturb it.
module nx_hold #(parameter int W = 128) (input logic clk, fresh, input logic [W-1:0] q, output logic [W-1:0] d);
  logic [W-1:0] kept;
  assign d = fresh ? q : kept;
  always_ff @(posedge clk) if (fresh) kept <= q;
endmodule
