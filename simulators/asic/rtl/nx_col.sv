// One output channel: R weights in two sets, a dot product, one register.
//
// Inputs and weights, their zero points subtracted, are numbers of 9 bits in words of 32, which a simulation handles
// whole; a multiplier has 9 of them.
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
  function automatic logic signed [31:0] nine(input logic [8:0] v);
    nine = 32'(signed'(v));
  endfunction
  always_comb begin
    sum = '0;
    for (int r = 0; r < R; r++) sum += nine(x[r][8:0])*$signed(active[r]);
  end
  always_ff @(posedge clk) begin
    if (w_row) begin
      if (w_clear) shadow <= '0;
      shadow[w_at] <= 32'(signed'(w)) - 32'(signed'(zw));
    end
    if (w_all)
      for (int r = 0; r < R; r++) shadow[r] <= 32'(signed'(w_word[r*8 +: 8])) - 32'(signed'(zw));
    if (en) begin                      // exclusive: one set of multipliers does both
      if (dw)
        p <= nine(taps[0][8:0])*$signed(active[0]) + nine(taps[1][8:0])*$signed(active[1])
           + nine(taps[2][8:0])*$signed(active[2]);
      else p <= sum;
    end
  end
  for (genvar r = 0; r < R; r++) begin : g_w
    always_ff @(posedge clk) if (swap) active[r] <= nine(shadow[r][8:0]);
  end
  logic unused;
  assign unused = &{1'b0, x, taps, shadow};
endmodule
