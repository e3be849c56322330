// One output channel: R weights in two sets, a dot product, one register.
module nx_col (
    input  logic clk,
    input  logic w_row, w_clear, w_all, input logic [$clog2(nx_cfg::R)-1:0] w_at,    // shadow set: one weight or all
    input  logic [7:0] w, input logic [nx_cfg::R-1:0][7:0] w_word, input logic swap,
    input  logic en, dw, input logic [nx_cfg::R-1:0][15:0] x, input logic [2:0][15:0] taps,
    output logic [31:0] p);
  localparam int R = nx_cfg::R;
  logic [R-1:0][7:0] shadow, active;
  logic signed [31:0] sum;
  always_comb begin
    sum = '0;
    for (int r = 0; r < R; r++)
      sum += 32'(signed'(r < 3 && dw ? taps[r % 3] : x[r]))*32'(signed'(active[r]));
  end
  always_ff @(posedge clk) begin
    if (w_row) begin
      if (w_clear) shadow <= '0;
      shadow[w_at] <= w;
    end
    if (w_all) shadow <= w_word;
    if (swap) active <= shadow;
    if (en) p <= sum;
  end
endmodule
