// One output channel: R weights in two sets, a dot product, one register.
//
// Inputs and weights, their zero points subtracted (9 bits), are carried sign-extended to 32: a simulation then
// multiplies whole words, and synthesis merges the equal bits.
module nx_col (
    input  logic clk,
    input  logic w_row, w_clear, w_all, input logic [$clog2(nx_cfg::R)-1:0] w_at,    // shadow set: one weight or all
    input  logic [7:0] w, input logic [nx_cfg::R*8-1:0] w_word,
    input  logic [7:0] zw, input logic swap,
    input  logic en, dw, input logic [nx_cfg::R-1:0][31:0] x, input logic [2:0][31:0] taps,   // dw: only taps count
    output logic [31:0] p);
  localparam int R = nx_cfg::R;
  logic [R-1:0][31:0] shadow, active;
  logic [31:0] sum;
  always_comb begin
    sum = '0;
    for (int r = 0; r < R; r++) sum += x[r]*active[r];
  end
  always_ff @(posedge clk) begin
    if (w_row) begin
      if (w_clear) shadow <= '0;
      shadow[w_at] <= 32'(signed'(w)) - 32'(signed'(zw));
    end
    if (w_all)
      for (int r = 0; r < R; r++) shadow[r] <= 32'(signed'(w_word[r*8 +: 8])) - 32'(signed'(zw));
    if (swap) active <= shadow;
    if (en) begin                      // exclusive: one set of multipliers does both
      if (dw) p <= taps[0]*active[0] + taps[1]*active[1] + taps[2]*active[2];
      else p <= sum;
    end
  end
endmodule
